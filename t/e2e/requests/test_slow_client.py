"""A client that stops reading delays no other and fills no memory."""

import pytest

from llmgw.proc.place import FLAVOUR
from llmgw.proc.process import rss_kb
from llmgw.proc.wait import never, still, wait_for
from llmgw.speak import rawh2, rpc

SOME = 16_000
TOKENS = 200_000
# asan keeps freed memory for a while; the whole stream is 8 MB on the wire,
# and more in memory.
SLACK_KB = 65536 if FLAVOUR == "asan" else 4096


class Memory:
    """Resident memory of nginx's worker and of the replica."""

    def __init__(self, nginx, replica):
        self.pids = {"nginx": nginx.workers()[0], "replica": replica.proc.pid}
        self.first = self.now()

    def now(self):
        return {name: rss_kb(pid) for name, pid in self.pids.items()}

    def flat(self):
        now = self.now()
        for name, kb in now.items():
            assert kb - self.first[name] < SLACK_KB, (name, self.first, now)


def stall(h, prompt, tokens):
    """A stream of h that has filled all windows; returns its id."""
    h.reading = False
    sid = rpc.ask(h, prompt, tokens)
    while h.pump(0.3):
        pass
    return sid


def test_stalled_client_delays_no_other_and_gets_it_all(cluster, client,
                                                        expect):
    nginx = cluster.fleet(1, replica={"token_delay": "0ms"},
                          nginx={"location": "llmgw_token_timeout 300ms;"})
    replica, c = cluster.replicas["r1"], client(nginx)
    with rawh2.RawH2(nginx.target) as h:
        sid = stall(h, "stalled", SOME)
        c.stream("another", 500).check(expect("another", 500))
        assert replica.stats().tokens < SOME, "never held up"
        assert replica.stats().active_requests == 1
        # longer than the token timeout
        never(lambda: h.pump(0.02) or h.answers[sid].ended, during=0.6)
        h.resume()
        answer = h.wait(sid)
    assert rpc.tokens(answer) == expect("stalled", SOME)
    assert nginx.pool()["totals"]["attempts"] == 2


@pytest.mark.first
@pytest.mark.soak
def test_memory_stays_flat_while_a_client_stalls(cluster, client, expect):
    nginx = cluster.fleet(1, replica={"token_delay": "0ms"})
    replica, c = cluster.replicas["r1"], client(nginx)
    c.stream("warm", 1000)
    memory = Memory(nginx, replica)

    with rawh2.RawH2(nginx.target) as h:
        sid = stall(h, "stalled", TOKENS)
        made = still(lambda: replica.stats().tokens)
        assert made < TOKENS / 2, "the replica was never held up"
        memory.flat()
        c.stream("another", 2000).check(expect("another", 2000))
        assert replica.stats().active_requests == 1
        never(lambda: h.pump(0.02) or h.answers[sid].ended, during=1)
        memory.flat()
        h.resume()
        answer = h.wait(sid, 120)
    memory.flat()
    assert rpc.tokens(answer) == expect("stalled", TOKENS)


@pytest.mark.soak
def test_fifty_stalled_clients(cluster, client, expect):
    nginx = cluster.fleet(1, replica={"token_delay": "0ms"})
    replica, c = cluster.replicas["r1"], client(nginx)
    c.stream("warm", 1000)
    before = {"nginx": rss_kb(nginx.workers()[0]),
              "replica": rss_kb(replica.proc.pid)}

    stalled = []
    for i in range(50):
        h = rawh2.RawH2(nginx.target)
        h.reading = False
        rpc.ask(h, f"stalled {i}", TOKENS)
        stalled.append(h)
    wait_for(lambda: nginx.in_flight() == 50, "50 streams")
    still(lambda: replica.stats().tokens)
    c.stream("another", 500).check(expect("another", 500))
    after = {"nginx": rss_kb(nginx.workers()[0]),
             "replica": rss_kb(replica.proc.pid)}
    for name in before:     # 50 x 200,000 tokens would be over 400 MB
        assert after[name] - before[name] < 50 * 512 + SLACK_KB, \
            (before, after)

    for h in stalled:
        h.close()
    wait_for(lambda: not nginx.counts(), "counts of zero")


@pytest.mark.parametrize("window", [
    100, pytest.param(1, marks=pytest.mark.soak)])
def test_tiny_windows(cluster, expect, window):
    """A client that takes a byte or a hundred at a time gets it all."""
    nginx = cluster.fleet(1, replica={"token_delay": "0ms"})
    with rawh2.RawH2(nginx.target, window=window) as h:
        answer = h.wait(rpc.ask(h, "sip by sip", 20))
    assert rpc.tokens(answer) == expect("sip by sip", 20)


@pytest.mark.timed
def test_limited_rate_delays_and_loses_nothing(cluster, client, expect):
    """limit_rate has a timer of its own; 400 tokens are 8 kB."""
    nginx = cluster.fleet(1, nginx={"location": "limit_rate 2k;"},
                          replica={"token_delay": "1ms"})
    got = client(nginx).stream("limited", 400, timeout=30)
    got.check(expect("limited", 400))
    assert 1 < got.seconds < 10
