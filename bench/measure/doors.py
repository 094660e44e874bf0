"""What stands between a client and a replica: TLS to replicas beside clear
text, and keys, limits and usage beside none.  The rows of bench/doors.py.

A first token over a new connection comes behind a relay that has lost the one
before.  A second relay delays: what grows with the delay, beyond what grows in
clear text, are round trips.
"""

import contextlib
import copy
import hashlib
import itertools
import os
import signal
import statistics
import sys
import threading

from llmgw.fleet.certs import Pki

from . import instructions, machine, paired, peers
from .machine import Fail
from .stand import Stand


def like(scenario, name, stand, kinds):
    """A scenario of paired.py, with other proxies and replicas."""
    s = copy.copy(next(s for s in paired.SCENARIOS if s.name == scenario))
    s.name, s.stand, s.kinds, s.has_slow = name, stand, kinds, False
    return s


# --- TLS to replicas

class Replicas(Stand):
    """Some replicas in clear text, and as many with TLS."""

    def __init__(self, bench, kind, replicas=2, **options):
        super().__init__(bench, kind, 2 * replicas, **options)
        self.clear = self.replica_ports[:replicas]
        self.tls = self.replica_ports[replicas:]
        self.pki = Pki(self.dir)

    def start_replica(self, name, port, options):
        if port in self.tls:
            pair = self.pki.issue(name, "--ip", "127.0.0.1")
            options = {**options, **self.pki.replica(name, "gw", pair)}
        return super().start_replica(name, port, options)


class Relayed(Replicas):
    """One of each, behind a relay that delays."""

    def __init__(self, bench, kind, delay_ms, **options):
        super().__init__(bench, kind, 1, **options)
        self.delay_ms, self.relays = delay_ms, {}

    def __enter__(self):
        super().__enter__()
        try:
            self.clear, self.tls = ([self.relay(*ports)]
                                    for ports in (self.clear, self.tls))
        except BaseException:
            self.close()
            raise
        return self

    def relay(self, target):
        port = self.ports.take()
        proc = machine.start(
            f"delay-{port}", [sys.executable, machine.ROOT /
                              "bench/peers/delay.py", port, target,
                              self.delay_ms], self.dir, self.pinning.rest)
        self.procs.append(proc)
        self.wait(lambda: "ready" in proc.text(), "a relay", proc)
        self.relays[port] = proc
        return port


class Clear(peers.Llmgw):
    name = "clear text"

    def ports(self):
        return self.stand.clear

    def upstream(self):
        return " ".join([*(f"server 127.0.0.1:{p};" for p in self.ports()),
                         "llmgw_hash prefix=64;",
                         self.options.get("pool", "")])

    def location(self):
        return super().location() + self.options.get("location", "")


class ClearAgain(Clear):
    name = "clear text again"


class Tls(Clear):
    name, more = "TLS", ""

    def ports(self):
        return self.stand.tls

    def upstream(self):
        return f"{super().upstream()} {self.stand.pki.nginx(more=self.more)}"


class TlsAnew(Tls):
    name, more = "TLS, no session", "llmgw_ssl_session_reuse off;"


ONE_WAY_MS = 10
ASKS = {    # name -> (proxy, over a new connection)
    "a new connection in clear text": (Clear, True),
    "a full handshake": (TlsAnew, True),
    "a resumed session": (Tls, True),
    "a connection that stands, clear text": (Clear, False),
    "a connection that stands, TLS": (Tls, False),
}
GIVES_UP = dict(location=" llmgw_first_token_timeout 200ms; llmgw_tries 1;",
                pool="llmgw_breaker off;")


def ask(stand, peer, is_new):
    """Milliseconds to the first token.  nginx closes a connection that has gone
    silent when a request has failed on it: the next one opens another."""
    if is_new:
        stand.relays[peer.ports()[0]].popen.send_signal(signal.SIGUSR1)
    for failed in range(4):
        got = stand.finish(stand.begin(peer, dict(
            requests=1, max_tokens=1, ramp="0s", duration="5s")),
            may_fail=True)
        first = got["ms"]["first_token"]
        if first and (failed > 0) == is_new:
            return first["max"]
        if first:
            break
    raise Fail("no first token over a "
               + ("new connection" if is_new else "connection that stands"))


def first_tokens_at(bench, delay_ms, tries):
    """{name: the median of each round}, in ms."""
    with Relayed(bench, "same", delay_ms, token_delay="0ms") as stand:
        up = {kind: stand.peer(kind, **GIVES_UP)
              for kind in (Clear, Tls, TlsAnew)}
        for peer in up.values():    # each has connected once
            ask(stand, peer, False)
        rounds = {name: [] for name in ASKS}
        for _ in range(bench.options.rounds):
            got = {name: [] for name in ASKS}
            for _ in range(tries):
                for name, (kind, is_new) in ASKS.items():
                    got[name].append(ask(stand, up[kind], is_new))
            for name, times in got.items():
                rounds[name].append(statistics.median(times))
    return rounds


def base_of(name):
    """Clear text over a connection of that age."""
    return next(base for base, (kind, is_new) in ASKS.items()
                if kind is Clear and is_new == ASKS[name][1])


def first_tokens(bench, tries):
    """Rows of ms near and far, what they are more than clear text, and how
    many round trips of that."""
    rounds = {key: first_tokens_at(bench, delay_ms, tries)
              for key, delay_ms in (("near", 0), ("far", ONE_WAY_MS))}
    rows = {}
    for name in ASKS:
        row = rows[name] = {}
        for key, of in rounds.items():
            row[key] = paired.summary(of[name])
            row[f"{key}_more"] = paired.summary([
                mine - clear for mine, clear in zip(of[name],
                                                    of[base_of(name)])])
        row["trips"] = (row["far_more"]["median"] - row["near_more"]["median"]
                        ) / (2 * ONE_WAY_MS)
        bench.say(f"first token, {name}: {row['near']['median']:.2f} ms,"
                  f" {row['trips']:.2f} round trips more")
    return rows


# --- keys, limits and usage

KEY = "sk-llmgw-" + "k" * 43
MAY = ("rpm=1000000000 tpm=1000000000 streams=100000"
       " budget=1000000000000/month")


class Keyed(Stand):
    """A file of keys; each request brings one of them, whether the gateway
    looks or not."""

    def __init__(self, bench, kind, **options):
        super().__init__(bench, kind, **options)
        self.key, self.keys = self.dir / "key", self.dir / "keys"
        self.key.write_text(KEY)
        self.others = ""
        self.write_keys(0)

    def write_keys(self, version):
        """As llmgwctl does: a file beside, renamed over the old one."""
        said = hashlib.sha256(KEY.encode()).hexdigest()
        fresh = self.keys.with_suffix(".new")
        fresh.write_text(f"# version {version}\nbench {said} {MAY}\n"
                         + self.others)
        os.replace(fresh, self.keys)

    def add_others(self, n):
        self.others = "".join(
            f"other{i} {hashlib.sha256(str(i).encode()).hexdigest()} {MAY}\n"
            for i in range(n))
        self.write_keys(0)

    def argv(self, peer, shape):
        return super().argv(peer, {"api_key_file": self.key, **shape})


class Off(peers.Llmgw):
    name = "no keys"


class OffAgain(Off):
    name = "no keys again"


class On(Off):
    name = "keys"

    def load(self):
        return f"{super().load()} error_log {self.dir}/notice.log notice;"

    def http(self):
        return (f"llmgw_keys {self.stand.keys} zone=keys:32m"
                f" state={self.dir}/state; llmgw_usage_log"
                f" {self.dir}/usage.log;")

    def times_read(self):
        return (self.dir / "notice.log").read_text().count("was read again")


def counted(bench):
    """Instructions with and without."""
    rows = {}
    for kind in (Off, On):
        rows[kind.name] = row = instructions.of(bench, kind, Keyed)
        bench.say(f"instructions, {kind.name}: {row['request']:.0f} a request,"
                  f" {row['token']:.0f} a token")
    return rows


OTHERS = 9999
EACH_S = 2.5        # a file is read once it has stood still from one look,
                    # each second, to the next


@contextlib.contextmanager
def rewriting(stand):
    over = threading.Event()

    def write():
        for version in itertools.count(1):
            stand.write_keys(version)
            if over.wait(EACH_S):
                return
    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def rewritten(bench, seconds, rounds):
    """The worst gap between tokens of a stream, with the file rewritten and
    without, alternating."""
    shape = dict(connections=4, streams=50, max_tokens=50, ramp="200ms",
                 token_delay="20ms", poisson=True, warmup="500ms",
                 duration=f"{seconds}s")
    worst = {False: [], True: []}
    with Keyed(bench, "split", token_delay="20ms") as stand:
        stand.add_others(OTHERS)
        peer = stand.peer(On)
        for _ in range(rounds):
            for is_written, gaps in worst.items():
                with rewriting(stand) if is_written else \
                        contextlib.nullcontext():
                    got = stand.run(peer, **shape)
                gaps.append(got["ms"]["gap"]["max"])
        read = peer.times_read()
    if read < rounds:
        raise Fail(f"the file was read {read} times in {rounds} rounds")
    rows = {"still": {"gap": paired.summary(worst[False]), "read": 0},
            "rewritten": {"gap": paired.summary(worst[True]), "read": read}}
    bench.say("worst gap: " + ", ".join(
        f"{name} {row['gap']['max']:.1f} ms" for name, row in rows.items()))
    return rows


TLS = [Clear, Tls, ClearAgain]
KEYS = [Off, On, OffAgain]
SCENARIOS = [
    like("p200", "tls200", Replicas, TLS),
    like("p1000", "tls1000", Replicas, TLS),
    like("rps", "tls_rps", Replicas, TLS),
    like("p200", "keys200", Keyed, KEYS),
    like("rps", "keys_rps", Keyed, KEYS),
]
