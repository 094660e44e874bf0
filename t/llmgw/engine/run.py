"""One generation: its place, its pace, its faults."""

import asyncio
import collections
import os
import signal
import time

from . import model
from .answer import Choice
from .faults import Faults
from .ledger import Ledger, whose

BLOCK = 16              # ids of a block of the prefix cache
CACHE_BLOCKS = 200_000


class Engine:
    """What all requests of a process share."""

    def __init__(self, dialect, log, options):
        """options: of engine_mock.py."""
        self.dialect, self.log = dialect, log
        self.model, self.adapters = options.model, options.adapter
        self.reads = options.reads
        self.max_running = options.max_running
        self.max_context = options.max_context
        self.keep_alive = options.keep_alive
        self.api_key, self.strict = options.api_key, options.strict
        self.reasoning = options.reasoning
        self.sampling_defaults = options.sampling_defaults
        self.priorities, self.adds = options.priorities, options.adds
        self.ledger = Ledger(options.ledger)
        self.faults = Faults()
        self.connections = self.requests = 0
        self.running, self.waiting = {}, collections.deque()
        self.places = self.max_running      # that nobody has
        self.peak = self.prompt_tokens = self.tokens = self.iterations = 0
        self.finished = self.aborted = self.ended_tokens = 0
        self.delivered = time.monotonic()   # something, to anybody
        self.names = set()                  # of requests under way
        self.cache = set()
        self.faults_changed = asyncio.Event()
        self.server = None                  # of wire.py

    def serves(self):
        """The names that it takes."""
        return (self.faults.loads or self.model, *self.adapters)

    def listed(self):
        """The names that it says it takes."""
        return (self.faults.lists or self.serves()[0], *self.adapters)

    def let_go(self):
        self.set_faults(gate=None, hang=None)

    def set_faults(self, **values):
        self.faults.set(**values)
        if self.faults.deaf:
            for listener in self.server.servers:
                listener.close()
        self.faults_changed.set()
        self.faults_changed = asyncio.Event()

    def cached(self, ids):
        """How many ids of the prompt's begin were seen before."""
        if len(self.cache) > CACHE_BLOCKS:
            self.cache.clear()
        chain, known, same = 0, 0, True
        for n in range(0, len(ids) - BLOCK, BLOCK):
            chain = hash((chain, *ids[n:n + BLOCK]))
            same = same and chain in self.cache
            known += BLOCK if same else 0
            self.cache.add(chain)
        return known

    def state(self):
        return {"running": len(self.running), "waiting": len(self.waiting),
                "peak": self.peak, "tokens": self.tokens,
                "prompt_tokens": self.prompt_tokens,
                "requests": self.requests, "connections": self.connections,
                "finished": self.finished, "aborted": self.aborted,
                "pid": os.getpid(), "faults": vars(self.faults)}


class Cut(Exception):
    """The stream ends here, as the faults say: how."""


class Run:
    """A generation, from its place in the queue to its last token."""

    def __init__(self, call, prompts, want, n=1):
        engine = call.engine
        self.engine, self.number, self.cycle = engine, call.number, call.cycle
        self.whose = whose(model.decode(prompts[0]))
        self.prompts = prompts
        self.choices = [Choice(p, want, engine.reads, i)
                        for p in prompts for i in range(n)]
        for index, choice in enumerate(self.choices):
            choice.index = index
        self.sent = 0
        self.prompt_tokens = sum(map(len, prompts))
        self.cached_tokens = sum(map(engine.cached, prompts))

    @property
    def tokens(self):
        return sum(len(c.ids) for c in self.choices)

    @property
    def thoughts(self):
        return sum(c.thoughts for c in self.choices)

    async def steps(self):
        """(choice, step) in turn, each at its time."""
        engine = self.engine
        how = "aborted"
        try:
            if self._is_lost():
                await asyncio.Event().wait()
            await self._place()
            await self._sleep(engine.faults.first_delay)
            engine.prompt_tokens += self.prompt_tokens
            open_ones = list(self.choices)
            while open_ones:
                await self._sleep(engine.faults.token_delay
                                  if self.sent else 0)
                self._break()
                engine.iterations += 1
                for choice in open_ones:
                    step = choice.step()
                    if step.finish and engine.faults.finish:
                        step.finish = engine.faults.finish
                    engine.tokens += 1
                    engine.ledger.made(self.whose,
                                       not self.cycle.disconnected)
                    yield choice, step
                self.sent += 1
                engine.delivered = time.monotonic()
                if engine.faults.die_at_finish and any(
                        c.finish for c in open_ones):
                    die()
                open_ones = [c for c in open_ones if not c.finish]
            how = "complete"
        finally:
            self._leave(how)

    async def _place(self):
        engine = self.engine
        if engine.places and not engine.waiting:
            engine.places -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            engine.waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in engine.waiting:
                    engine.waiting.remove(turn)
                elif not turn.cancelled():
                    give_back(engine)
                raise
        engine.running[self.number] = self
        engine.peak = max(engine.peak, len(engine.running))
        engine.log("place", id=self.number)

    def _is_lost(self):
        text = self.engine.faults.lose
        return text and any(text in model.decode(p) for p in self.prompts)

    async def _sleep(self, seconds):
        await asyncio.sleep(seconds)
        while self._is_held():
            await self.engine.faults_changed.wait()

    def _is_held(self):
        faults = self.engine.faults
        return faults.hang or 0 <= faults.gate <= self.sent

    def _break(self):
        faults = self.engine.faults
        if self.sent == faults.die_at:
            die()
        for how in ("error", "close", "reset", "end"):
            if self.sent == getattr(faults, how + "_at"):
                raise Cut(how)

    def _leave(self, how):
        engine = self.engine
        if engine.running.pop(self.number, None) is None:
            how = "aborted in the queue"
        else:
            give_back(engine)
        engine.ended_tokens += self.tokens
        engine.finished += how == "complete"
        engine.aborted += how != "complete"
        engine.log("end", id=self.number, how=how, tokens=self.tokens)


def give_back(engine):
    """A place: to the first that waits."""
    while engine.waiting:
        turn = engine.waiting.popleft()
        if not turn.done():
            turn.set_result(None)
            return
    engine.places += 1


def die():
    os.kill(os.getpid(), signal.SIGKILL)
