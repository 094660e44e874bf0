"""Rows that compare.

Every proxy of a scenario runs all the time, but is idle outside its turn.  In
a round each proxy has one turn; the order rotates from round to round.  A
ratio is always between two turns of the same round; reported are its median,
least and greatest.  So changes of the machine between rounds do not matter.
"nginx again" is a second nginx: its ratio shows the noise.
"""

import statistics

from . import peers
from .machine import Fail
from .stand import Stand

USUAL = [peers.Nginx, peers.Haproxy, peers.Floor, peers.Llmgw,
         peers.NginxAgain]
FEW_ROUNDS = 2      # for slow proxies


class Scenario:
    """value: takes the figure to compare from a turn's report.

    kinds: the proxies, if not the usual; more: proxies beside those.
    """

    stand = Stand

    def __init__(self, name, title, kind, unit, value, shape, replica,
                 kinds=None, more=(), window_ms=None, warmup_ms=None):
        self.name, self.title, self.kind = name, title, kind
        self.window_ms, self.warmup_ms = window_ms, warmup_ms
        self.unit, self.value = unit, value
        self.shape, self.replica = shape, replica
        self.kinds = [*(kinds or USUAL), *more]
        self.has_slow = kinds is None


def per_token(got):
    return got["us_per_token"]


def per_request(got):
    return got["us_per_request"]


def first_token(got):
    return got["ms"]["first_token"]["p50"] * 1000


TOKENS = dict(max_tokens=200, token_delay="20ms", ramp="200ms", poisson=True)

SCENARIOS = [
    Scenario("p200", "4 connections x 50 streams, a token each 20 ms", "same",
             "us CPU a token", per_token,
             dict(connections=4, streams=50, **TOKENS),
             dict(token_delay="20ms"), more=[peers.LlmgwWaits]),
    Scenario("p200c", "200 connections x 1 stream, a token each 20 ms",
             "same", "us CPU a token", per_token,
             dict(connections=200, streams=1, **TOKENS),
             dict(token_delay="20ms")),
    Scenario("p200l", "as p200, all streams in step", "same",
             "us CPU a token", per_token,
             dict(connections=4, streams=50, max_tokens=200, lockstep=True,
                  token_delay="20ms"),
             dict(token_delay="20ms"),
             [peers.Nginx, peers.Haproxy, peers.Floor, peers.Llmgw]),
    Scenario("rps", "one-token streams, closed loop, 200 at a time",
             "split", "us CPU a request", per_request,
             dict(connections=4, streams=50, max_tokens=1, ramp="0s"),
             dict(token_delay="0ms")),
    Scenario("arrivals", "one-token streams, open loop, 2000 a second",
             "same", "us CPU a request", per_request,
             dict(connections=4, streams=50, max_tokens=1, rate=2000,
                  poisson=True),
             dict(token_delay="0ms")),
    Scenario("ttft1", "first token, one stream at a time", "same", "us p50",
             first_token,
             dict(connections=1, streams=1, max_tokens=1, ramp="0s"),
             dict(token_delay="0ms"), [*USUAL, peers.Direct], window_ms=600),
    Scenario("p1000", "20 connections x 50 streams, a token each 20 ms",
             "split", "us CPU a token", per_token,
             dict(connections=20, streams=50, **TOKENS),
             dict(token_delay="20ms"),
             more=[peers.LlmgwAtOnce, peers.LlmgwWaits],
             warmup_ms=800),    # nginx makes a thousand connections
    Scenario("flood", "throughput, no delay between tokens", "split",
             "us CPU a token", per_token,
             dict(connections=4, streams=50, max_tokens=1000, ramp="100ms"),
             dict(token_delay="0ms")),
    Scenario("storm", "20 connections x 50 streams, a token each ms",
             "split", "us CPU a token", per_token,
             dict(connections=20, streams=50, max_tokens=1000, ramp="100ms"),
             dict(token_delay="1ms"),
             [peers.Nginx, peers.Haproxy, peers.Floor, peers.Llmgw]),
]


STREAMS = [40, 200, 1000, 2000]     # for the plot


def by_streams(n):
    return Scenario(f"streams{n}", f"{n} streams, a token each 100 ms",
                    "same", "us CPU a token", per_token,
                    dict(connections=max(1, n // 50), streams=min(50, n),
                         max_tokens=100, ramp="100ms", poisson=True),
                    dict(token_delay="100ms"),
                    [peers.Nginx, peers.Haproxy, peers.Floor, peers.Llmgw])


def summary(values):
    return {"median": statistics.median(values), "min": min(values),
            "max": max(values), "n": len(values)}


class Rounds:
    """The turns of one scenario."""

    def __init__(self, bench, scenario, slow=()):
        self.bench, self.scenario = bench, scenario
        self.kinds = list(scenario.kinds)
        if peers.Llmgw in self.kinds and peers.LlmgwBefore.module:
            self.kinds.append(peers.LlmgwBefore)
        self.slow = slow if scenario.has_slow else []
        self.values, self.reports, self.failed = {}, {}, {}

    def run(self, rounds):
        s = self.scenario
        with s.stand(self.bench, s.kind, **s.replica) as stand:
            self.pinning = str(stand.pinning)
            up = self.start(stand)
            for i in range(rounds):
                if i and self.bench.is_late():
                    self.bench.say(f"{s.name}: out of time at round {i + 1}")
                    break
                for peer in up[i % len(up):] + up[:i % len(up)]:
                    self.turn(stand, peer, i)
                self.bench.say(f"{s.name} {i + 1}/{rounds}: " + self.line(i))
        return self.result()

    def start(self, stand):
        up = []
        for kind in [*self.kinds, *self.slow]:
            try:
                up.append(stand.peer(kind))
            except (Fail, OSError) as e:
                self.failed[kind.name] = str(e)
        if not up:
            raise Fail("; ".join(self.failed.values()))
        return up

    def turn(self, stand, peer, i):
        if peer.name in self.failed or (type(peer) in self.slow
                                        and i >= FEW_ROUNDS):
            return
        try:
            s = self.scenario
            window_ms = s.window_ms or self.bench.window_ms
            warmup_ms = s.warmup_ms or self.bench.warmup_ms
            got = stand.run(peer, duration=f"{window_ms}ms",
                            warmup=f"{warmup_ms}ms", **s.shape)
            value = s.value(got)
            if value is None:
                raise Fail("nothing came within the window")
        except (Fail, OSError, ValueError, TypeError, KeyError) as e:
            self.failed[peer.name] = f"round {i + 1}: {e}"
            return
        self.values.setdefault(peer.name, {})[i] = value
        self.reports.setdefault(peer.name, []).append(got)

    def line(self, i):
        return ", ".join(f"{name} {of[i]:.2f}"
                         for name, of in self.values.items() if i in of) + \
            "".join(f", {name} FAIL" for name in self.failed)

    def result(self):
        s = self.scenario
        base = s.kinds[0].name
        of_base = self.values.get(base, {})
        got = {"title": s.title, "unit": s.unit, "pinning": self.pinning,
               "base": base, "rows": {}}
        for name, of in self.values.items():
            if name in self.failed:
                continue
            row = {"value": summary(list(of.values()))}
            both = [(of[i], of_base[i]) for i in of if i in of_base]
            if both and name != base:
                row["ratio"] = summary([mine / bases for mine, bases in both])
                row["more"] = summary([mine - bases for mine, bases in both])
            row["to"] = {
                other: summary([of[i] / theirs[i] for i in of if i in theirs])
                for other, theirs in self.values.items()
                if other not in (name, base) and set(of) & set(theirs)}
            got["rows"][name] = {**row, **self.more(name)}
        for name, why in self.failed.items():
            got["rows"][name] = {"fail": why}
        return got

    def more(self, name):
        reports = self.reports[name]

        def median(value):
            values = [v for v in map(value, reports) if v is not None]
            return statistics.median(values) if values else None

        def time(kind, at):
            return median(lambda r: (r["ms"][kind] or {}).get(at))
        return {
            "tokens_per_second": median(lambda r: r["tokens"]["per_second"]),
            "requests_per_second":
                median(lambda r: r["requests"]["per_second"]),
            "cpu": median(lambda r: r.get("cpu")),
            "client_us_per_token": median(
                lambda r: r["client_cpu_seconds"] * 1e6
                / r["tokens"]["count"] if r["tokens"]["count"] else None),
            "first_token_ms": [time("first_token", "p50"),
                               time("first_token", "p99")],
            "lag_ms": [time("lag", "p50"), time("lag", "p99")],
            "gap_p99_ms": time("gap", "p99")}
