"""What happens to the fleet.

What was in a socket when a process died is lost, and the books would show that
as a fault.  So whatever breaks streams of the doubles, whose tokens are
counted, is struck at rest (books.py): all streams are held, every byte has come
to where it goes, and then the process is killed.  The rest happens beside
running streams.

A process must live long enough to be compared with itself.  So everything is
struck in the first rounds of each half alone; later the second replica of each
model and its agent, the gateways' agents and the two oldest workers are spared,
and nothing is reloaded.
"""

import collections
import os
import signal
import time

from llmgw.fleet.books import wait_rest
from llmgw.proc.packaged import sh
from llmgw.proc.wait import within

from fleet import AGENT_OF, ENGINES, REPLICAS, WORKERS

MENDED_S = 60           # a double takes a second to start on a busy machine
SPARED_WORKERS = 2
ABORTED = 3
RELOADS = 3


class Chaos:
    """early: whether everything may be struck now.  wild: whether nothing is
    held before."""

    def __init__(self, fleet, askers, rng):
        self.fleet, self.askers, self.rng = fleet, askers, rng
        self.counts = collections.Counter()
        self.early, self.wild, self.bag = True, False, []

    AT_REST = ("abort", "worker", "engine", "adapter", "agent")
    BESIDE = ("keys", "drain", "simulated", "agent_of_simulated")
    EARLY = ("reload", "agent_of_gateway")

    def strike(self):
        """One thing, and waits until all is whole again."""
        what = self._next()
        self.counts[what] += 1
        if what in self.AT_REST and not self.wild:
            self._at_rest(getattr(self, what))
        else:
            getattr(self, what)()
        within(MENDED_S, self.fleet.is_whole, f"all to be whole after {what}",
               interval=.2)

    def _next(self):
        """Each comes once before one comes again."""
        if not self.bag:
            self.bag = [*self.AT_REST, *self.BESIDE, *self.early * self.EARLY]
            self.rng.shuffle(self.bag)
        what = self.bag.pop()
        return what if self.early or what not in self.EARLY else self._next()

    def _at_rest(self, strike):
        self.fleet.gate(self.rng.randrange(1, 20))
        try:
            wait_rest(self.fleet, self.fleet.nginx)
            strike()
            wait_rest(self.fleet, self.fleet.nginx)
        finally:
            self.fleet.gate(-1)

    def _one(self, ids):
        """Of these, or of those that are not spared."""
        return self.rng.choice([i for i in ids
                                if self.early or i.endswith("1")])

    def _kill(self, pid, sig=signal.SIGKILL):
        try:
            os.kill(pid, sig)
        except ProcessLookupError:
            self.counts["missed"] += 1

    # at rest

    def abort(self):
        for one in self.rng.sample(self.askers, ABORTED):
            one.abort()

    def worker(self):
        workers = self.fleet.nginx.accepting()
        self._kill(self.rng.choice(
            workers if self.early else workers[SPARED_WORKERS:]))

    def engine(self):
        self._kill(self.fleet.engines[self._one(ENGINES)].proc.pid)

    def adapter(self):
        self._kill(self.fleet.replicas[self._one(ENGINES)].proc.pid)

    def agent(self):
        self._kill(self.fleet.agent_pid(self._one(ENGINES)))

    # beside running streams

    def keys(self):
        """The file is read again."""
        self.fleet.keyfile.lines.append(f"# {self.counts['keys']}")
        self.fleet.keyfile.write()

    def drain(self):
        id = self._one(REPLICAS)
        ctl = f"llmgwctl -s /run/llmgw/{AGENT_OF[id[0]]}.sock"
        sh(f"{ctl} drain {id} --drain-timeout 5s", check=False)
        time.sleep(self.rng.uniform(0, 1))
        sh(f"{ctl} undrain {id}")

    def simulated(self):
        self._kill(self.fleet.replicas[self._one(REPLICAS[4:])].proc.pid)

    def agent_of_simulated(self):
        self._kill(self.fleet.agent_pid(self._one(REPLICAS[4:])))

    def agent_of_gateway(self):
        self._kill(self.fleet.agent_pid(self.rng.choice(("gw1", "gw2"))))

    def reload(self):
        """As often as generations of workers may run at once."""
        for _ in range(RELOADS):
            before = set(self.fleet.nginx.accepting())
            sh("systemctl reload nginx")
            within(MENDED_S, lambda: len(set(self.fleet.nginx.accepting())
                                         - before) == WORKERS, "new workers")
