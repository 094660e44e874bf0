"""Requests that are large, broken or not for us."""

import struct
import urllib.error
import urllib.request

import grpc
import pytest

from llmgw.speak import rawh2, rpc
from llmgw.speak.rpc import pb


@pytest.fixture(scope="module")
def nginx(shared):
    return shared.fleet(1)


@pytest.fixture
def raw(nginx):
    with rawh2.RawH2(nginx.target) as h:
        yield h


@pytest.fixture(autouse=True)
def serves_on(nginx, expect):
    """After every test here the gateway answers the next client."""
    yield
    with rpc.Client(nginx.target) as c:
        c.stream("and now", 2).check(expect("and now", 2))


@pytest.fixture
def with_line(nginx):
    """with_line(text): puts that line into the location for this test."""
    def reload(line):
        nginx.configure(location=line)
        nginx.reload()
    yield reload
    reload("")


def infer(prompt="hello", max_tokens=3, **fields):
    return pb.InferRequest(prompt=prompt, max_tokens=max_tokens,
                           **fields).SerializeToString()


def grpc_answer(answer, status):
    """Checks for a gRPC answer with this status, and no HTML."""
    assert answer.grpc_status == status, vars(answer)
    assert answer.headers[":status"] == "200"
    assert answer.headers["content-type"].startswith("application/grpc")
    assert b"<html" not in answer.data.lower()
    return answer


INVALID, UNIMPLEMENTED, EXHAUSTED = 3, 12, 8


def test_prompt_of_1_mib(nginx, client, expect):
    prompt = "0123456789abcdef" * 65536
    client(nginx).stream(prompt, 3).check(expect(prompt, 3))


def test_prompt_in_a_temporary_file(with_line, nginx, client, expect):
    """With a body buffer of 8 kB the rest goes through a file."""
    with_line("client_body_buffer_size 8k;")
    prompt = "x" * 300_000 + "y"
    client(nginx).stream(prompt, 3).check(expect(prompt, 3))


@pytest.mark.soak
def test_body_kept_in_a_file(with_line, nginx, client, expect):
    with_line("client_body_in_file_only clean;")
    client(nginx).stream("filed", 3).check(expect("filed", 3))


def test_prompt_in_many_small_frames(raw, expect):
    body = rawh2.frame(infer("slowly " * 30, 4))
    sid = raw.request(rpc.INFER, end=False)
    for i in range(0, len(body), 3):
        raw.send(sid, body[i:i + 3], end=i + 3 >= len(body))
    messages, _ = rawh2.unframe(raw.wait(sid).data)
    assert [pb.InferResponse.FromString(m).token for m in messages] \
        == expect("slowly " * 30, 4)


def test_above_the_body_limit(nginx, client, raw):
    got = client(nginx).stream("z" * (9 << 20), 1)
    assert got.code == "RESOURCE_EXHAUSTED", (got.code, got.details)
    grpc_answer(raw.wait(raw.request(
        rpc.INFER, rawh2.frame(infer("z" * (8 << 20))))), EXHAUSTED)


@pytest.mark.soak
def test_above_the_limit_said_beforehand(raw):
    sid = raw.request(rpc.INFER, rawh2.frame(infer()), end=False,
                      headers=[("content-length", str(9 << 20))])
    grpc_answer(raw.wait(sid), EXHAUSTED)


@pytest.mark.parametrize("body", [
    b"",                                            # no message
    b"\x00",                                        # no whole prefix
    b"\x00\x00\x00\x00",
    b"\x00\x00\x00\x00\x64abc",                     # less than it says
    b"\x00\x00\x00\x00\x00",                        # empty: max_tokens 0
    rawh2.frame(infer()) + b"\x00",                 # more than it says
    rawh2.frame(infer()) * 2,                       # two messages
    rawh2.frame(b"\xff" * 40),                      # no protobuf
    rawh2.frame(infer()[:-1]),                      # cut protobuf
    rawh2.frame(b"\x12\xff\xff\xff\xff\x0f"),       # a string of 4 GB
    rawh2.frame(b"\x12\x02\xc3\x28\x18\x01"),       # prompt not UTF-8
    rawh2.frame(b"\x0a\x01\xff\x12\x01a\x18\x01"),  # client id not UTF-8
    rawh2.frame(b"\x12\x01a\x18\x01\x2a\x01\x9b"),     # request id is not
    rawh2.frame(infer(max_tokens=0)),
    rawh2.frame(infer(max_tokens=-5)),
    struct.pack(">BI", 0, 0xffffffff) + b"abc",     # 4 GB to come
    b"GET / HTTP/1.1\r\n\r\n",
], ids=lambda b: f"{len(b)}-{b[:8].hex()}")
def test_malformed_request(raw, body):
    answer = raw.wait(raw.request(rpc.INFER, body))
    if body[:1] == b"G":    # 'G' as a flag is neither 0 nor 1
        assert answer.grpc_status in (INVALID, UNIMPLEMENTED)
    else:
        grpc_answer(answer, INVALID)


@pytest.mark.soak
def test_two_messages_from_a_grpc_client(nginx, client):
    assert client(nginx).raw([infer(), infer()]).code == "INVALID_ARGUMENT"


def test_compressed_flag(raw, nginx, client):
    grpc_answer(raw.wait(raw.request(
        rpc.INFER, rawh2.frame(infer(), flag=1))), UNIMPLEMENTED)
    got = client(nginx).raw([infer("squeeze me " * 500)],
                            compression=grpc.Compression.Gzip)
    assert got.code == "UNIMPLEMENTED"


def test_unknown_fields_are_ignored(raw):
    body = infer() + b"\x9a\x06\x03abc" + b"\xa0\x06\x05"
    grpc_answer(raw.wait(raw.request(rpc.INFER, rawh2.frame(body))), 0)


@pytest.mark.parametrize("path", [
    "/", "/llmgateway.InferenceGateway/Nothing", "/llmgateway.Other/Infer",
    rpc.GENERATE, rpc.DRAIN, rpc.INFER + "/", rpc.INFER + "x",
    "/x" + rpc.INFER, "/index.html"])
def test_unknown_method(raw, path):
    grpc_answer(raw.wait(raw.request(path, rawh2.frame(infer()))),
                UNIMPLEMENTED)


@pytest.mark.soak
def test_unknown_method_of_a_grpc_client(nginx, client):
    got = client(nginx).raw([infer()], method="/llmgateway.No/Such")
    assert got.code == "UNIMPLEMENTED"


@pytest.mark.soak
def test_get_of_a_browser_over_http2(raw):
    answer = raw.wait(raw.request("/", method="GET", content_type=None,
                                  headers=[("accept", "text/html")]))
    assert b"<" not in answer.data
    assert "html" not in answer.headers.get("content-type", "")


@pytest.mark.parametrize("path", ["/", "/favicon.ico", rpc.INFER])
def test_get_of_a_browser_over_http1(nginx, path):
    """It is answered with a status, and never with HTML."""
    url = f"http://127.0.0.1:{nginx.status_port}{path}"
    try:
        answer = urllib.request.urlopen(url, timeout=5)
    except urllib.error.HTTPError as e:
        answer = e
    assert b"<" not in answer.read()
    assert "html" not in answer.headers.get("content-type", "")


def test_body_that_never_ends_is_not_html(with_line, nginx):
    """nginx's own 408 is a gRPC answer or a reset."""
    with_line("client_body_timeout 300ms;")
    with rawh2.RawH2(nginx.target) as h:
        sid = h.request(rpc.INFER, rawh2.frame(infer())[:9], end=False)
        answer = h.wait(sid)
    assert b"<" not in answer.data
    assert answer.reset is not None or answer.grpc_status not in (None, 0) \
        or h.closed


@pytest.mark.parametrize("line, status", [
    ("deny all;", 7), ("return 403;", 7), ("return 404;", 12),
    ("return 503;", 14), ("return 429;", 8)])
def test_status_that_nginx_raises(with_line, nginx, line, status):
    """It is mapped as gRPC maps HTTP statuses; never HTML."""
    with_line(line)
    with rawh2.RawH2(nginx.target) as h:
        answer = h.wait(h.request(rpc.INFER, rawh2.frame(infer())))
    grpc_answer(answer, status)


@pytest.mark.soak
def test_client_that_gives_up_in_the_body(raw):
    sid = raw.request(rpc.INFER, rawh2.frame(infer("x" * 1000))[:500],
                      end=False)
    raw.cancel(sid)
    grpc_answer(raw.wait(raw.request(rpc.INFER, rawh2.frame(infer()))), 0)


@pytest.mark.parametrize("value", ["", "x", "5", "-5m", "99999999999S", "5x",
                                   "m"])
def test_malformed_grpc_timeout_never_hangs(raw, value):
    answer = raw.wait(raw.request(rpc.INFER, rawh2.frame(infer()),
                                  headers=[("grpc-timeout", value)]))
    assert answer.grpc_status in (0, INVALID)


def test_answer_headers(raw):
    answer = grpc_answer(raw.wait(raw.request(
        rpc.INFER, rawh2.frame(infer()))), 0)
    assert answer.headers["content-type"] == "application/grpc"
    assert answer.trailers["grpc-status"] == "0"
    assert "content-length" not in answer.headers


@pytest.mark.soak
def test_many_broken_requests_on_one_connection(raw):
    sids = [raw.request(rpc.INFER, rawh2.frame(b"\xff" * (i % 50)))
            for i in range(200)]
    for sid in sids:
        grpc_answer(raw.wait(sid), INVALID)


@pytest.mark.parametrize("entries", [1000, 5000])
def test_more_metadata_than_nginx_takes(nginx, client, entries):
    """It is refused before a location is found, and not with HTML."""
    sent = [(f"x-entry-{i}", "v" * 20) for i in range(entries)]
    result = rpc.drain(client(nginx).start("hello", 1, metadata=sent))
    assert (result.code, result.details) == ("INVALID_ARGUMENT",
                                             "refused by the gateway")


@pytest.mark.soak
def test_other_requests_of_the_server_keep_their_html(raw):
    answer = raw.wait(raw.request(
        "/status", content_type=None,
        headers=[(f"x-entry-{i}", "v" * 20) for i in range(2000)]))
    assert answer.headers[":status"] == "400"
    assert b"<html" in answer.data.lower()
