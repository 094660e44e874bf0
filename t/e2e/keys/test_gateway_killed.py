"""One of two gateways is killed, nginx's master and all its workers: what it
served ends at once and is asked again at the other, which loses nothing, and
the books of both say what was charged."""

import concurrent.futures
import contextlib
import os
import signal

from llmgw.fleet.books import by_key, records, wait_records
from llmgw.proc.wait import wait_for
from llmgw.speak import clients, rpc, sse
from llmgw.speak.keyfile import bearer

STREAMS, TOKENS, FIRST = 100, 9, 4


def begun(c, name, key):
    """Streams that have their first tokens, and are held."""
    calls = [c.start(f"{name} {i}", TOKENS, metadata=bearer(key))
             for i in range(STREAMS)]
    for call in calls:
        for _ in range(FIRST):
            next(call)
    return calls


def check_rest(calls, name, expect):
    for i, call in enumerate(calls):
        assert [t.token for t in call] == expect(f"{name} {i}",
                                                 TOKENS)[FIRST:]


def kill(nginx):
    """Its master and all its workers, at once."""
    nginx.proc.told_to_end = True
    os.killpg(nginx.proc.pid, signal.SIGKILL)


def started(cluster):
    return sum(r.stats().active_requests for r in cluster.replicas.values())


def test_one_of_two_gateways_killed_under_200_streams(cluster, keyfile,
                                                      expect):
    keys = {name: keyfile.add(name) for name in ("mover", "stayer")}
    logs = [cluster.dir / f"usage{i}.log" for i in (1, 2)]
    http = [f"{keyfile.directive()} llmgw_usage_log {log} gateway=gw{i};"
            for i, log in enumerate(logs, 1)]
    one = cluster.fleet(2, nginx={"http": http[0], "workers": 2})
    other = cluster.nginx(http=http[1], workers=2,
                          gateway=cluster.agent("gw2", "gateway"))
    wait_for(lambda: other.routable() == ["r1", "r2"], "both replicas")

    with contextlib.ExitStack() as stack:
        # clients know both addresses, and use the first that answers
        both = stack.enter_context(rpc.Client(
            f"ipv4:{one.target},{other.target}"))
        c = stack.enter_context(rpc.Client(other.target))
        both.stream("before", TOKENS, metadata=bearer(keys["mover"])).check(
            expect("before", TOKENS))
        wait_records(logs[0], 1)

        cluster.hold(FIRST)
        lost = begun(both, "lost", keys["mover"])
        kept = begun(c, "kept", keys["stayer"])
        assert started(cluster) == 2 * STREAMS
        kill(one)

        for call in lost:
            got = rpc.drain(call)
            assert (got.code, got.tokens) == ("UNAVAILABLE", [])
        wait_for(lambda: started(cluster) == STREAMS, "replicas to know")
        again = begun(both, "lost", keys["mover"])
        cluster.let_go()
        check_rest(again, "lost", expect)
        check_rest(kept, "kept", expect)

    whole = STREAMS * TOKENS
    wait_records(logs[1], 2 * STREAMS)
    assert by_key(records(logs[1]), "completion_tokens", "wasted_tokens") \
        == {"mover": whole, "stayer": whole}

    # it is there again: what was in flight is in no record, as docs say
    cluster.launch(one)
    wait_for(lambda: one.routable() == ["r1", "r2"], "the gateway again")
    with rpc.Client(one.target) as c:
        c.stream("after", TOKENS, metadata=bearer(keys["mover"])).check(
            expect("after", TOKENS))
    assert by_key(wait_records(logs[0], 2), "completion_tokens") \
        == {"mover": 2 * TOKENS}
    made = sum(r.stats().tokens for r in cluster.replicas.values())
    assert made == 2 * whole + 2 * TOKENS + STREAMS * FIRST
    assert all(n.counts() == {} for n in (one, other))


# A name with two addresses, as DNS would have it.
HOSTS = """\
const dns = require("dns");
const lookup = dns.lookup;
const both = ["127.0.0.1", "127.0.0.2"].map(
  (address) => ({ address, family: 4 }));
dns.lookup = (name, options, done) => (name === "llmgw.test"
  ? done(null, ...(options.all ? [both] : ["127.0.0.1", 4]))
  : lookup(name, options, done));
"""


def test_sdks_ask_again_at_the_other_address(cluster, keyfile, monkeypatch):
    """By themselves, what has no answer yet; it is charged once."""
    clients.need_js()
    key = keyfile.add("alice")
    logs = [cluster.dir / f"usage{i}.log" for i in (1, 2)]
    http = [f"{keyfile.directive()} llmgw_usage_log {log};" for log in logs]
    one = cluster.engines_fleet(1, nginx={"http": http[0]})
    port = one.status_port
    other = cluster.nginx(
        openai=True, gateway=cluster.agent("gw2", "gateway"),
        http=http[1] + f" server {{ listen 127.0.0.2:{port};"
                       " location /v1/ { llmgw_openai llm; } }")
    wait_for(lambda: other.routable() == ["a1"], "the adapter")
    hosts = cluster.dir / "hosts.cjs"
    hosts.write_text(HOSTS)
    monkeypatch.setenv("NODE_OPTIONS", f"--require {hosts}")

    cluster.hold()
    jobs = [(f"{sdk} {stream}", sdk, f"http://llmgw.test:{port}/v1", "chat",
             stream, sse.chat("hi len=9;", max_tokens=50), key, 5)
            for sdk in ("openai", "ai") for stream in (False, True)]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        told = pool.submit(clients.run_js, jobs)
        wait_for(lambda: one.in_flight() == len(jobs), "all", takes=20)
        kill(one)
        wait_for(lambda: other.in_flight() == len(jobs), "all again",
                 takes=20)
        cluster.let_go()
        got = told.result()
    texts = {result["text"][0] for result in got.values()}
    assert [r["error"] for r in got.values()] == [None] * len(jobs)
    assert len(texts) == 1 and texts.pop()
    found = wait_records(logs[1], len(jobs))
    assert {r["outcome"] for r in found} == {"ok"}
    assert records(logs[0]) == []
