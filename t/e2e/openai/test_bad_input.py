"""OpenAI's API: bodies that are wrong, large, slow or cut, and what a good one
may look like.  Each error is OpenAI's JSON with the right status, and the next
request on the connection is not touched by it."""

import json
import socket
import time

import pytest

from llmgw.proc.wait import PATIENCE, wait_for
from llmgw.speak import rawh2, sse

MIB = 1024 * 1024
JSON = "invalid_json"
TYPE, VALUE = "invalid_type", "invalid_value"
MISSING = "missing_required_parameter"

USER = {"role": "user", "content": "x"}


def body(**keys):
    return {"model": "m", "messages": [USER], "max_tokens": 1, **keys}


def raw(members):
    return ('{"model":"m","messages":[{"role":"user"}],' + members
            + "}").encode()


# what: body, code, param
BAD = {
    "empty": (b"", None, None),
    "spaces": (b"  ", JSON, None),
    "word": (b"hello", JSON, None),
    "array": (b"[]", None, None),
    "number": (b"1e400", None, None),
    "string": (b'"{}"', None, None),
    "cut in a key": (b'{"mod', JSON, None),
    "cut behind a value": (b'{"model":"m"', JSON, None),
    "trailing comma": (raw('"a":1,'), JSON, None),
    "trailing garbage": (raw('"a":1') + b"x", JSON, None),
    "two bodies": (raw('"a":1') * 2, JSON, None),
    "unfinished string behind": (raw('"a":1') + b'"x', JSON, None),
    "comment": (raw('"a":1 /* b */'), JSON, None),
    "single quotes": (b"{'model':'m'}", JSON, None),
    "leading zero": (raw('"a":01'), JSON, None),
    "NaN": (raw('"a":NaN'), JSON, None),
    "newline in a string": (raw('"a":"\n"'), JSON, None),
    "raw NUL": (raw('"a":"\0"'), JSON, None),
    "NUL in a key": (raw('"stream\\u0000":true'), None, None),
    "NUL in the model": (raw('"model":"a\\u0000"'), VALUE, "model"),
    "newline in the model": (raw('"model":"a\\n"'), VALUE, "model"),
    "vertical tab": (raw('\v"a":1'), JSON, None),
    "byte order mark": (b"\xef\xbb\xbf" + raw('"a":1'), JSON, None),
    "Latin-1": (raw('"a":"\xe9"').decode().encode("latin-1"), JSON, None),
    "overlong UTF-8": (raw('"a":"x"').replace(b"x", b"\xc0\xaf"), JSON, None),
    "surrogate in UTF-8": (raw('"a":"x"').replace(b"x", b"\xed\xa0\x80"),
                           JSON, None),
    "half a surrogate pair": (raw('"a":"\\ud83d"'), JSON, None),
    "the other half": (raw('"a":"\\ude00"'), JSON, None),
    "65 levels": (raw('"a":' + "[" * 64 + "]" * 64), JSON, None),
    "100,000 levels": (raw('"a":' + "[" * 100000), JSON, None),
    "1,025 keys": (json.dumps({f"k{i}": 1 for i in range(1025)}).encode(),
                   None, None),
    "no model": ({"messages": [USER]}, MISSING, "model"),
    "model null": (body(model=None), MISSING, "model"),
    "model a number": (body(model=7), TYPE, "model"),
    "model empty": (body(model=""), VALUE, "model"),
    "model too long": (body(model="x" * 513), VALUE, "model"),
    "no messages": ({"model": "m"}, MISSING, "messages"),
    "messages a string": (body(messages="hi"), TYPE, "messages"),
    "messages empty": (body(messages=[]), VALUE, "messages"),
    "message a string": (body(messages=["hi"]), TYPE, "messages[0]"),
    "message without a role": (body(messages=[USER, {"content": "x"}]),
                               MISSING, "messages[1].role"),
    "role a number": (body(messages=[{"role": 1}]), TYPE, "messages[0].role"),
    "stream a string": (body(stream="true"), TYPE, "stream"),
    "stream a number": (body(stream=1), TYPE, "stream"),
    "stream_options true": (body(stream_options=True), TYPE,
                            "stream_options"),
    "include_usage a string": (
        body(stream_options={"include_usage": "no"}), TYPE,
        "stream_options.include_usage"),
    "n 0": (body(n=0), VALUE, "n"),
    "n 129": (body(n=129), VALUE, "n"),
    "max_tokens 0": (body(max_tokens=0), VALUE, "max_tokens"),
    "max_tokens negative": (body(max_tokens=-1), VALUE, "max_tokens"),
    "max_tokens 1.5": (body(max_tokens=1.5), TYPE, "max_tokens"),
    "max_tokens 10^400": (body(max_tokens=10 ** 400), VALUE, "max_tokens"),
    "max_tokens a string": (body(max_tokens="9"), TYPE, "max_tokens"),
    "tools an object": (body(tools={}), TYPE, "tools"),
    "stop a number": (body(stop=1), TYPE, "stop"),
    "temperature a string": (body(temperature="hot"), TYPE, "temperature"),
    "last key counts": (raw('"stream":true,"\\u0073tream":"x"'), TYPE,
                        "stream"),
}

GOOD = {
    "1e400": raw('"a":1e400,"max_tokens":1'),
    "many digits": raw('"a":' + "9" * 1000 + ',"max_tokens":1'),
    "escaped keys": raw('"ma\\u0078_tokens":1'),
    "last key counts": raw('"max_tokens":-1,"max_tokens":1'),
    "null": raw('"stream":null,"stop":null,"n":null,"max_tokens":1'),
    "64 levels": raw('"a":' + "[" * 63 + "]" * 63 + ',"max_tokens":1'),
    "escaped NUL": raw('"a":"\\u0000","max_tokens":1'),
    "surrogate pair": raw('"a":"\\ud83d\\ude00","max_tokens":1'),
    "integral fraction": raw('"max_tokens":1.0'),
}

SERVER = """
        location /slow/ {
            client_max_body_size 64m;
            client_body_timeout 500ms;
            llmgw_openai llm;
        }
        location /small/ { client_max_body_size 1000k; llmgw_openai llm; }
"""


@pytest.fixture(scope="module")
def plain(shared):
    return shared.fleet(1, nginx={
        "openai": True, "server": SERVER})


def refused(r, status, code, param=None, kind="invalid_request_error"):
    r.read()
    assert r.status == status, r.body
    assert r.headers["content-type"] == "application/json"
    error = r.json["error"]
    assert (error["type"], error["code"], error["param"]) \
        == (kind, code, param), error
    assert error["message"]


def answered(r):
    r.read()
    assert r.status == 200, r.body
    assert r.json["choices"][0]["finish_reason"] == "length"


def sent(c, path, parts, *headers):
    """A request whose body comes in parts, with or without a length."""
    c.send("\r\n".join([f"POST {path} HTTP/1.1", "host: x",
                        "content-type: application/json", *headers, "",
                        ""]).encode())
    for part in parts:
        c.send(part)
    return sse.Response(c, True, "POST")


def chunks(data, size):
    for at in range(0, len(data), size):
        part = data[at:at + size]
        yield b"%x\r\n%s\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


def large(size, **keys):
    return json.dumps(body(metadata={"pad": "x" * size}, **keys)).encode()


@pytest.mark.parametrize("chunked", [False, pytest.param(
    True, marks=pytest.mark.soak)])
def test_bad_bodies_on_one_connection(plain, chunked):
    assert len(BAD) >= 40
    with sse.Connection(plain.api) as c:
        for what, (bad, code, param) in BAD.items():
            data = bad if isinstance(bad, bytes) else json.dumps(bad).encode()
            try:
                r = sent(c, sse.CHAT, chunks(data, 7000),
                         "transfer-encoding: chunked") if chunked \
                    else c.request(sse.CHAT, data)
                refused(r, 400, code, param)
            except AssertionError as e:
                raise AssertionError(f"{what}: {e}") from None
        answered(c.request(sse.CHAT, body()))


def test_odd_bodies_that_are_good(plain):
    with sse.Connection(plain.api) as c:
        for what, data in GOOD.items():
            r = c.request(sse.CHAT, data)
            r.read()
            assert r.status == 200, (what, r.body)


@pytest.mark.soak
def test_unknown_model_is_told(plain):
    """Behind replicas that say nothing of models all names are good."""
    with sse.Connection(plain.api) as c:
        answered(c.request(sse.CHAT, body(model="no/such-model")))


@pytest.mark.parametrize("size", [
    70000, 30 * MIB, *(pytest.param(n, marks=pytest.mark.soak)
                       for n in (60000, 400000))])
def test_large_bodies(plain, size):
    """Over 64 kB they are walked in a thread; none goes to a file."""
    data = large(size)
    with sse.Connection(plain.api, 30) as c:
        answered(c.request(sse.CHAT, data))
        answered(sent(c, sse.CHAT, chunks(data, 100000),
                      "transfer-encoding: chunked"))
        refused(c.request(sse.CHAT, data[:-1]), 400, JSON)
        answered(c.request(sse.CHAT, body()))
    assert "temporary file" not in plain.log()


@pytest.mark.soak
def test_body_in_small_pieces(plain):
    data = large(3000)
    with sse.Connection(plain.api) as c:
        answered(sent(c, sse.CHAT, (data[i:i + 97] for i in
                                    range(0, len(data), 97)),
                      f"content-length: {len(data)}"))
        answered(sent(c, sse.CHAT, chunks(data, 1),
                      "transfer-encoding: chunked"))


@pytest.mark.parametrize("chunked", [False, True])
def test_30_mb_where_1_is_allowed(plain, chunked):
    with sse.Connection(plain.api) as c:
        if chunked:
            r = sent(c, "/small/v1/chat/completions",
                     chunks(large(2 * MIB), 1000000),
                     "transfer-encoding: chunked")
        else:
            r = sent(c, "/small/v1/chat/completions", [b"{"],
                     f"content-length: {30 * MIB}")
        refused(r, 413, "request_too_large")


@pytest.mark.parametrize("size", [200000, *(
    pytest.param(n, marks=pytest.mark.soak) for n in (1, 20000))])
def test_slow_body(plain, size):
    with sse.Connection(plain.api) as c:
        r = sent(c, "/slow/v1/chat/completions", [large(size)[:size]],
                 f"content-length: {size + 1000}")
        refused(r, 408, "request_timeout")


def test_pipelined_requests(plain):
    parts = [large(100000), large(10), raw('"a":01'), large(20000)]
    with sse.Connection(plain.api) as c:
        c.send(b"".join(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(p), p) for p in parts))
        for bad in (False, False, True, False):
            r = sse.Response(c, True, "POST")
            refused(r, 400, JSON) if bad else answered(r)


@pytest.mark.soak
def test_http_1_0(plain):
    host, _, port = plain.api.rpartition(":")
    for data, status in ((large(100000), b" 200 "), (b"{", b" 400 ")):
        with socket.create_connection((host, int(port)), 10) as s:
            s.sendall(b"POST /v1/chat/completions HTTP/1.0\r\n"
                      b"content-length: %d\r\n\r\n%s" % (len(data), data))
            head, _, answer = s.makefile("rb").read().partition(b"\r\n\r\n")
        assert status in head.split(b"\r\n")[0]
        assert ("error" in json.loads(answer)) == (data == b"{")


@pytest.mark.soak
def test_expect_100_continue(plain):
    data = large(100000)
    with sse.Connection(plain.api) as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: "
               b"100-continue\r\ncontent-length: %d\r\n\r\n" % len(data))
        deadline = time.monotonic() + PATIENCE
        assert c.line(deadline) == b"HTTP/1.1 100 Continue"
        assert c.line(deadline) == b""
        c.send(data)
        answered(sse.Response(c, True, "POST"))


@pytest.mark.parametrize("size, share", [
    (300000, 0.5), (20 * MIB, 1),
    *(pytest.param(*case, marks=pytest.mark.soak)
      for case in ((1000, 0.5), (1000, 1), (300000, 1), (20 * MIB, 0.5)))])
def test_client_goes_while_its_body_is_read(plain, size, share):
    """Also in the middle of the walk."""
    data = large(size, max_tokens=100000, stream=True)
    for _ in range(3):
        c = sse.Connection(plain.api)
        sent(c, sse.CHAT, [data[:int(len(data) * share)]],
             f"content-length: {len(data)}")
        c.reset()
    wait_for(lambda: not plain.in_flight(), "no stream")
    with sse.Connection(plain.api) as c:
        answered(c.request(sse.CHAT, body()))


# --- HTTP/2

def over_h2(c, path, data, part=None, length=True):
    """The answer; of a body of which only a part is sent."""
    headers = [("content-length", str(len(data)))] if length else []
    sid = c.request(path, data if part is None else data[:part],
                    headers=headers, content_type="application/json",
                    end=part is None)
    return c.wait(sid)


@pytest.mark.parametrize("length", [True, False])
def test_bodies_over_http_2(plain, length):
    """With a length nginx offers the window for all of it, in one block."""
    with rawh2.RawH2(plain.target) as c:
        for size in (10, 65000, 70000, 400000, 3 * MIB):
            answer = over_h2(c, sse.CHAT, large(size), length=length)
            assert answer.headers[":status"] == "200", bytes(answer.data)
        answer = over_h2(c, sse.CHAT, large(400000)[:-1], length=length)
        assert answer.headers[":status"] == "400"
        assert json.loads(answer.data)["error"]["code"] == JSON
        answer = over_h2(c, "/small/v1/chat/completions", large(2 * MIB),
                         length=length)
        assert answer.headers[":status"] == "413"


@pytest.mark.soak
@pytest.mark.parametrize("part", [1, 70000, 200000])
def test_slow_body_over_http_2(plain, part):
    with rawh2.RawH2(plain.target) as c:
        answer = over_h2(c, "/slow/v1/chat/completions", large(300000), part)
        assert answer.headers[":status"] == "408"
        assert json.loads(answer.data)["error"]["code"] == "request_timeout"
        answer = over_h2(c, sse.CHAT, large(100000))
        assert answer.headers[":status"] == "200"


@pytest.mark.soak
def test_body_that_is_reset_over_http_2(plain):
    data = large(8 * MIB, max_tokens=100000, stream=True)
    with rawh2.RawH2(plain.target) as c:
        for part in (1, 70000, len(data)):
            sid = c.request(sse.CHAT, data[:part], end=part == len(data),
                            headers=[("content-length", str(len(data)))],
                            content_type="application/json")
            c.cancel(sid)
        answer = over_h2(c, sse.CHAT, large(10))
        assert answer.headers[":status"] == "200"
    wait_for(lambda: not plain.in_flight(), "no stream")
