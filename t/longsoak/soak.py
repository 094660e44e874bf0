#!/usr/bin/python3
"""Everything is on, everything fails, and the packages are upgraded in between.

The time is divided into rounds.  In each, clients ask all the time, and
something is struck every few seconds; then they rest, and everything else must
come to rest: every whole answer was exact, the books balance, every count is
zero.  In the last rounds streams are not held when something is struck, and the
books have bounds.  A line for each fact, then tables, then DONE.
"""

import collections
import json
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, "/t")
sys.path.insert(0, "/t/longsoak")
from llmgw.fleet import books  # noqa: E402
from llmgw.fleet.ways_in import MESSAGES  # noqa: E402
from llmgw.pages.facts import Facts  # noqa: E402
from llmgw.proc import logs, packaged  # noqa: E402
from llmgw.proc.packaged import debs, install, sh  # noqa: E402
from llmgw.proc.wait import TooLate, within  # noqa: E402
from llmgw.speak import sse  # noqa: E402
from llmgw.speak.askers import Asker, InferAsker, MessagesAsker  # noqa: E402

from chaos import Chaos  # noqa: E402
from fleet import GATEWAY, USAGE, WORKERS, Fleet  # noqa: E402
from watch import Watch  # noqa: E402

SETTINGS = json.loads(pathlib.Path("/t/settings.json").read_text())
SECONDS = SETTINGS["seconds"]
ROUNDS = max(6, round(SECONDS / 60))
HALF = ROUNDS // 2
TENTH = max(1, ROUNDS // 10)
ENDS_S = 90
RESTS_S = 3             # what the end of a round takes
UNSEEN = 10             # percent of what is made, where nothing is held
UPGRADED = ("libnginx-mod-http-llmgw", "llmgw-agent", "llmgw-replica",
            "llmgw-tools")

ALPHA, BETA = {"model": "alpha"}, {"model": "beta"}
STREAM, IDS = {"stream": True}, {"stream": True, "return_token_ids": True}
ASKS = [(sse.CHAT, {**ALPHA, **STREAM}), (sse.CHAT, {**BETA, **STREAM}),
        (sse.CHAT, ALPHA), (sse.CHAT, BETA),
        (sse.TEXT, {**ALPHA, **IDS}), (sse.TEXT, {**BETA, **IDS}),
        (sse.TEXT, ALPHA), (sse.TEXT, BETA),
        (sse.CHAT, {**ALPHA, **STREAM, "n": 2})]
MESSAGES_ASKS = [(MESSAGES, {**ALPHA, **STREAM}), (MESSAGES, ALPHA)]
SPARED = ("v2", "s2", "m2")
KEYS = ("k0", "k1", "k2", "k3")
CROWD = 6               # clients for each key that warm processes up
LIMITED, RPM = "limited", 10
COUNTED = (*KEYS, LIMITED)
# Whole answers of Anthropic's API come from the engine in one piece, so that
# what a killed engine has made for them is not known.
ANTHROPIC, INFER = "anthropic", ("i0", "i1")

fact = Facts()


class Clients:
    """keys: {name: key}.  expect: {prompt: tokens} of Infer."""

    def __init__(self, fleet, keys, expect):
        tls, nginx = (fleet.pki.ca, GATEWAY), fleet.nginx
        self.expect = expect
        self.counted = [
            Asker(nginx, (name, keys[name]), ASKS, n, tls=tls)
            for n, name in enumerate((*KEYS, *KEYS, LIMITED))]
        self.messages = [
            MessagesAsker(nginx, (ANTHROPIC, keys[ANTHROPIC]), MESSAGES_ASKS,
                          n, tls=tls) for n in range(2)]
        self.infer = [
            InferAsker(nginx, (name, keys[name]), n, tls, self.right)
            for n, name in enumerate(INFER * 2)]
        self.crowd = [
            Asker(nginx, (name, keys[name]), ASKS, n, tls=tls)
            for n, name in enumerate(KEYS * CROWD)]
        self.counted += self.crowd
        self.all = self.counted + self.messages + self.infer

    def right(self, prompt, n):
        return self.expect[prompt][:n]

    def rest(self):
        """Each ends what it has asked: whether all could."""
        for one in self.all:
            one.rest()
        return all([one.has_ended(ENDS_S) for one in self.all])

    def go_on(self, with_crowd):
        for one in self.all:
            if with_crowd or one not in self.crowd:
                one.go_on()

    def whole(self, name=None):
        return sum(one.whole.total() for one in self.all
                   if name in (None, one.name_))

    def answers(self):
        """{(key, tokens of the prompt, of the answer): number}"""
        found = collections.Counter()
        for one in self.counted:
            for used, n in one.whole.items():
                found[one.name_, *used] += n
        return found

    def wrong(self):
        return [wrong for one in self.all for wrong in one.wrong]

    def got(self):
        """{key: tokens}"""
        found = collections.Counter()
        for one in self.all:
            found[one.name_] += one.got
        return found

    def errors(self):
        return sum((one.errors for one in self.all), collections.Counter())


class Soak:
    def __init__(self, fleet, clients):
        rng = random.Random(SETTINGS["seed"])
        self.fleet, self.clients = fleet, clients
        self.chaos = Chaos(fleet, clients.counted, rng)
        self.watch, self.rng = Watch(fleet), rng
        self.began = time.monotonic()
        self.known = None       # (made, in the books), before nothing is held

    def run(self):
        """A round has its part of the time, and one strike at least."""
        for n in range(ROUNDS):
            self.chaos.early = n % HALF < TENTH
            self.chaos.wild = n >= ROUNDS - TENTH
            with_crowd = n % HALF <= TENTH
            self.clients.go_on(with_crowd)
            if n == HALF:
                self.upgrade()
            over = self.began + (n + 1) * SECONDS / ROUNDS - RESTS_S
            self.chaos.strike()
            while time.monotonic() < over:
                time.sleep(self.rng.uniform(0, 2))
                self.chaos.strike()
            if not self.rest(n):
                break               # what follows would only hide it
            if not with_crowd:
                self.watch.look()

    def rest(self, n):
        """Whether all is as it should be when nobody asks."""
        ended = self.clients.rest()
        try:
            within(ENDS_S, lambda: not self.counts(), "counts of zero")
            if self.chaos.wild:
                within(ENDS_S, self.is_settled, "the books to be settled")
            else:
                books.check_balance(USAGE, self.fleet.ledgers, COUNTED)
                self.known = self.totals()
            self.check_charges()
            why = "" if ended else ": a client waits for ever"
        except (TooLate, AssertionError) as e:
            why = f": {e}"
        wrong = self.clients.wrong()
        if wrong:
            why += f": {len(wrong)} wrong answers, the first is {wrong[0]}"
        return fact(not why, f"round {n + 1}: {self.clients.whole()} whole"
                    " answers so far, each exact; the books balance"
                    f"{' within bounds' if self.chaos.wild else ''}; counts"
                    f" are zero{why}")

    def counts(self):
        """What is not zero: places, queues, streams, slots of engines, workers
        of before a reload or an upgrade."""
        found = self.fleet.nginx.counts()
        for pool in self.fleet.nginx.status()["pools"]:
            if pool["streams"]:
                found[f"streams of {pool['name']}"] = pool["streams"]
        found.update(self.fleet.running())
        old = len(self.fleet.nginx.workers()) - WORKERS
        return {**found, "old workers": old} if old else found

    def totals(self):
        """(made, in the books), of the keys whose tokens are known."""
        made = books.made(self.fleet.ledgers)
        mine = books.by_key(books.records(USAGE), "completion_tokens",
                            "wasted_tokens")
        return tuple(sum(x[key] for key in COUNTED) for x in (made, mine))

    def is_settled(self):
        """Nothing is in the books that was not made, and little that was made
        is missing."""
        made, mine = self.totals()
        since, _ = self.known
        return mine <= made <= mine + (made - since) * UNSEEN / 100

    def check_charges(self):
        """A client got no more than was charged, and for a whole answer just
        that was charged."""
        records = books.records(USAGE)
        charged = books.by_key(records, "completion_tokens")
        for name, got in self.clients.got().items():
            assert got <= charged[name], (name, got, charged[name])
        ended = collections.Counter(
            (r["key"], r["prompt_tokens"], r["completion_tokens"])
            for r in records if r["outcome"] == "ok")
        missed = self.clients.answers() - ended
        assert not missed, missed

    # the upgrade

    def upgrade(self):
        """All packages at once, as apt does it; then the first adapter of each
        model.  The others run on for the whole time."""
        spared = [self.fleet.replicas[r].proc.pid for r in SPARED]
        install(fact, "now", *UPGRADED)
        within(ENDS_S, lambda: not packaged.outdated("llmgw-agent")
               and self.fleet.is_whole(), "the new agents", interval=.2)
        for agent, ids in (("gw1", "v1,s1"), ("gw2", "m1")):
            packaged.update(fact, f"/run/llmgw/{agent}.sock", "--to", "v1",
                            "--members", ids)
        within(ENDS_S, lambda: len(packaged.masters()) == 1
               and self.fleet.is_whole(), "the old master to end", interval=.2)
        fact(spared == [self.fleet.replicas[r].proc.pid for r in SPARED],
             "adapters that were not updated ran on beneath new agents")

    # the end

    def check(self):
        minutes = (time.monotonic() - self.began) / 60
        # A new master counts anew, and another one beside the old one.
        fact(self.clients.whole(LIMITED) <= RPM * (minutes + 2),
             f"the key with rpm={RPM} had no more")
        fact(self.clients.errors()["rate_limit_exceeded"],
             "and was refused more")
        for path in self.logs():
            bad = logs.complaints(path, ["exited on signal 9",
                                         "was locked by"])
            fact(not bad, f"no complaint in {path.name} {bad[:3] or ''}")
        self.watch.check(fact)

    def logs(self):
        journal = pathlib.Path("/var/log/journal.txt")
        journal.write_text(sh("journalctl -o cat", check=False).stdout)
        return pathlib.Path("/var/log/nginx/error.log"), journal

    def table(self):
        self.watch.table()
        print("|\n| answers | number |\n| --- | --- |")
        rows = {"whole and exact": self.clients.whole(),
                **dict(sorted(self.clients.errors().items()))}
        for what, n in rows.items():
            print("|", what, "|", n, "|")
        print("|\n| strike | number |\n| --- | --- |")
        for what, n in sorted(self.chaos.counts.items()):
            print("|", what, "|", n, "|", flush=True)


def main():
    pathlib.Path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)
    out = sh(f"dpkg -i {debs('now', *UPGRADED)}", check=False)
    if not fact(out.returncode == 0, "the packages are installed"):
        return print(out.stdout)
    fleet = Fleet()
    keys = {name: fleet.keyfile.add(name, *may) for name, *may in (
        *((name,) for name in (*KEYS, ANTHROPIC, *INFER)),
        (LIMITED, f"rpm={RPM}"))}
    fleet.configure()
    fleet.start()
    within(ENDS_S, fleet.is_whole, "the fleet", interval=.2)
    expect = fleet.reference(
        ask for name in INFER for ask in InferAsker.asks(name))
    soak = Soak(fleet, Clients(fleet, keys, expect))
    try:
        soak.run()
        soak.check()
    finally:
        soak.table()
    print("DONE", flush=True)


try:
    main()
finally:
    sys.stdout.flush()
    subprocess.run(["systemctl", "exit", "0"])
