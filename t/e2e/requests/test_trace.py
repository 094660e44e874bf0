"""A request's id in logs and at replicas, its trace, its access log line."""

import json
import pathlib
import re

import pytest

from llmgw.fleet import words
from llmgw.proc.wait import wait_for
from llmgw.speak import rawh2, rpc

DOC = (pathlib.Path(__file__).resolve().parents[3]
       / "docs" / "logging.md").read_text()
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


def documented_log():
    """The lines of docs/logging.md, which log into the test's directory."""
    block = re.search(r"```nginx\n(.*?)```", DOC, re.S).group(1)
    form, line = re.fullmatch(r"(log_format .*?;)\s+(access_log .*?;)\s+",
                              block, re.S).groups()
    assert "/var/log/nginx/llmgw.log" in line
    return {"http": form, "location": line.replace("/var/log/nginx/llmgw.log",
                                                   "@dir@/llmgw.json")}


@pytest.fixture
def engines(cluster):
    """engines({...}, ...): engines with these options behind nginx, which log
    their calls."""
    def make(*each):
        made = [cluster.pyreplica(f"p{i}", tell=True, token_delay_ms=1,
                                  **options) for i, options in enumerate(each)]
        nginx = cluster.static(made, pool="llmgw_breaker off;",
                               **documented_log())
        nginx.engines = made
        return nginx
    return make


def moved(c, **fields):
    """A stream that fails over to the other engine after 3 tokens."""
    for i in range(50):
        got = c.stream(f"prompt {i}", 7, request_id=f"id-{i}", **fields)
        assert got.code == "OK"
        if len(got.replicas) == 2:
            return f"id-{i}"
    raise AssertionError("the engine that breaks off was never asked")


def calls(nginx, n, id=None):
    """The engines' calls, in order of tokens already generated."""
    def read():
        found = [json.loads(line.partition(" ")[2])
                 for e in nginx.engines
                 for line in e.proc.log.read_text().splitlines()
                 if line.startswith("CALL ")]
        found = [c for c in found if id in (None, c["request_id"])]
        return found if len(found) >= n else None
    found = wait_for(read, f"{n} calls")
    assert len(found) == n
    return sorted(found, key=lambda c: c["already"])


def fields(call, name):
    return [v for k, v in call["fields"] if k == name]


def logged(nginx, n=1):
    path = nginx.dir / "llmgw.json"
    lines = wait_for(lambda: path.exists()
                     and len(got := path.read_text().splitlines()) >= n
                     and got, "the access log")
    return [json.loads(line) for line in lines]


def test_trace_goes_on_with_a_span_for_each_attempt(engines, client):
    nginx = engines({"end_after": 3}, {})
    id = moved(client(nginx), metadata=[("traceparent", PARENT),
                                        ("tracestate", "a=1,b=2")])
    spans = set()
    for call in calls(nginx, 2, id):
        parent, = fields(call, "traceparent")
        version, trace, span, flags = parent.split("-")
        assert (version, trace, flags) == ("00", TRACE, "01")
        assert re.fullmatch("[0-9a-f]{16}", span) and int(span, 16)
        assert fields(call, "tracestate") == ["a=1,b=2"]
        spans.add(span)
    assert len(spans | {"b7ad6b7169203331"}) == 3
    line = logged(nginx, int(id[3:]) + 1)[-1]
    assert (line["request_id"], line["failovers"], line["trace_id"]) \
        == (id, "1", TRACE)
    last, = fields(calls(nginx, 2, id)[-1], "traceparent")
    assert line["span_id"] == last.split("-")[2]


@pytest.mark.parametrize("sent", [
    [], [("traceparent", PARENT), ("traceparent", PARENT)],
    *(pytest.param([("traceparent", text)], marks=pytest.mark.soak)
      for text in ("00-" + "0" * 32 + "-b7ad6b7169203331-01", "garbage"))])
def test_no_valid_trace_is_no_trace(engines, client, sent):
    nginx = engines({})
    got = client(nginx).stream("x", 2, metadata=[*sent, ("tracestate", "a=1")])
    assert got.code == "OK"
    call, = calls(nginx, 1)
    assert fields(call, "traceparent") == fields(call, "tracestate") == []
    line, = logged(nginx)
    assert line["trace_id"] == line["span_id"] == ""


@pytest.mark.soak
def test_unsampled_trace_and_long_state(engines, client):
    nginx = engines({})
    members = [f"vendor{i}={'x' * 100}" for i in range(6)]
    got = client(nginx).stream("x", 2, metadata=[
        ("traceparent", f"00-{TRACE}-b7ad6b7169203331-00"),
        ("tracestate", members[0]), ("tracestate", ",".join(members[1:]))])
    assert got.code == "OK"
    call, = calls(nginx, 1)
    assert fields(call, "traceparent")[0].endswith("-00")
    assert fields(call, "tracestate") == [",".join(members[:4])]


@pytest.mark.soak
def test_blanks_around_the_state_go_no_further(engines):
    """In HTTP/2 a request is malformed where a value begins or ends with a
    blank, and an engine that refuses it would look broken."""
    nginx = engines({})
    body = rpc.pb.InferRequest(prompt="x", max_tokens=2).SerializeToString()
    with rawh2.RawH2(nginx.target) as h:
        for state in (" \ta=1,b=2", "a=1,b=2\t ", " \t "):
            answer = h.wait(h.request(rpc.INFER, rawh2.frame(body), headers=[
                ("traceparent", PARENT), ("tracestate", state)]))
            assert answer.grpc_status == 0
    states = [fields(call, "tracestate") for call in calls(nginx, 3)]
    assert sorted(states) == [[], ["a=1,b=2"], ["a=1,b=2"]]


def test_request_id_of_the_client_is_everywhere(engines, client):
    nginx = engines({"end_after": 3}, {})
    id = moved(client(nginx))
    assert [c["already"] for c in calls(nginx, 2, id)] == [0, 3]
    assert logged(nginx, int(id[3:]) + 1)[-1]["request_id"] == id
    about = [line for line in nginx.error_log.read_text().splitlines()
             if "llmgw: stream " in line]
    assert len(about) == 2
    assert "lost replica" in about[0] and "continues at replica" in about[1]
    assert all(line.endswith(f', request_id: "{id}"') for line in about)


@pytest.mark.soak
def test_request_without_an_id_has_that_of_nginx(cluster, client):
    engine = cluster.pyreplica("p", tell=True)
    nginx = cluster.static(
        [engine], http="log_format ids '$request_id $llmgw_request_id';",
        location="access_log @dir@/ids.log ids;")
    nginx.engines = [engine]
    for _ in range(2):
        assert client(nginx).stream("x", 1).code == "OK"
    ids = [c["request_id"] for c in calls(nginx, 2)]
    assert len(set(ids)) == 2
    assert all(re.fullmatch("[0-9a-f]{32}", id) for id in ids)
    path = nginx.dir / "ids.log"
    lines = wait_for(lambda: len(got := path.read_text().split()) == 4
                     and got, "two lines")
    assert lines == [ids[0], ids[0], ids[1], ids[1]] \
        or lines == [ids[1], ids[1], ids[0], ids[0]]


def test_id_cannot_forge_a_log_line(cluster, client):
    nginx = cluster.fleet(1, nginx=documented_log())
    cluster.replicas["r1"].faults(reject_all=True)
    evil = 'x"\\\n2026/01/01 [warn] forged\x7f\x9b31m' + "y" * 500
    client(nginx).stream("x", 2, request_id=evil)
    text = nginx.error_log.read_text()
    assert 'request_id: "x...2026/01/01 [warn] forged...31m' + "y" * 94 + '"' \
        in text
    assert "\n2026/01/01" not in text
    assert "\x9b" not in text
    assert logged(nginx)[0]["request_id"] == evil[:127]


@pytest.mark.soak
def test_long_id_is_cut_between_characters(engines, client):
    nginx = engines({})
    id = "x" + "ü" * 200
    assert client(nginx).stream("x", 1, request_id=id).code == "OK"
    assert calls(nginx, 1)[0]["request_id"] == id
    assert logged(nginx)[0]["request_id"] == "x" + "ü" * 63


def test_refused_request_is_told_with_its_id(cluster, client, caller):
    nginx = cluster.fleet(1, nginx={"pool": "llmgw_queue off;",
                                    **documented_log()},
                          replica={"max_capacity": 1})
    cluster.hold(1)
    busy = caller(nginx).ask("busy", 2)
    busy.wait_first()
    refused = client(nginx).stream("x", 2, request_id="refused-one")
    assert refused.code == "RESOURCE_EXHAUSTED"
    line = logged(nginx)[0]
    assert (line["code"], line["reason"], line["request_id"]) \
        == ("RESOURCE_EXHAUSTED", words.QUEUE_FULL, "refused-one")
    assert line["replica"] == line["first_token_time"] == ""
    told, = [x for x in nginx.error_log.read_text().splitlines()
             if "llmgw: answered" in x]
    assert "answered RESOURCE_EXHAUSTED, queue_full" in told
    assert told.endswith(', request_id: "refused-one"')
    busy.cancel()
    wait_for(lambda: [x for x in logged(nginx) if (x["code"], x["reason"])
                      == ("CANCELLED", words.CLIENT_GONE)], "the other's line")


def test_documented_log_of_a_served_request(cluster, client):
    nginx = cluster.fleet(2, nginx=documented_log())
    got = client(nginx).stream("logged", 7)
    line, = logged(nginx)
    assert {**line, "time": "", "request_id": "", "first_token_time": "",
            "request_time": "", "queue_time": ""} == {
        "time": "", "request_id": "", "trace_id": "", "span_id": "",
        "client": "127.0.0.1", "code": "OK", "reason": "",
        "replica": got.replicas[0], "route": "affinity", "tries": "1",
        "failovers": "0", "resume": "", "tokens": "7", "queue_time": "",
        "first_token_time": "", "request_time": ""}
    assert 0 <= float(line["queue_time"]) <= float(line["first_token_time"]) \
        <= float(line["request_time"]) + 0.01
