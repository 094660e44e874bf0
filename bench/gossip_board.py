"""What members say of each other during bench/gossip.py, and when."""

import os
import selectors
import time

GIVE_UP_S = 60                  # the limit of every wait


class Loop:
    """One thread that reads what the members write, until the run's end."""

    def __init__(self, end):
        self.end = end
        self.selector = selectors.DefaultSelector()
        self.timers = []        # [due, period, call]

    def read(self, file, call):
        self.selector.register(file, selectors.EVENT_READ, call)

    def forget(self, file):
        self.selector.unregister(file)

    def every(self, period, call):
        timer = [time.monotonic(), period, call]
        self.timers.append(timer)
        return timer

    def turn(self, until):
        now = time.monotonic()
        if now >= self.end:
            raise RuntimeError("out of time")
        for timer in list(self.timers):
            if timer[0] <= now:
                timer[0] = now + timer[1]
                timer[2]()
        due = min([until] + [t[0] for t in self.timers])
        for key, _ in self.selector.select(max(0, due - time.monotonic())):
            key.data()

    def sleep(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.turn(until)

    def wait(self, fact, what):
        until = time.monotonic() + GIVE_UP_S
        while not fact():
            if time.monotonic() >= until:
                raise RuntimeError(f"waited {GIVE_UP_S} s for {what}")
            self.turn(until)


class Lines:
    """Reads a descriptor line by line, with the time of each read."""

    def __init__(self, loop, file, hear):
        self.loop, self.file, self.hear = loop, file, hear
        self.rest = b""
        os.set_blocking(file.fileno(), False)
        loop.read(file, self.ready)

    def ready(self):
        try:
            data = os.read(self.file.fileno(), 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now = time.monotonic()
        if not data:
            self.close()
            return
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.hear(now, line)

    def close(self):
        if self.file is not None:
            self.loop.forget(self.file)
            self.file.close()
            self.file = None


class Board:
    """The last state each member reported of each, and the history."""

    def __init__(self):
        self.says = {}          # observer -> {member: word}
        self.history = []       # (time, observer, member, word)
        self.killed = set()

    def note(self, when, observer, member, word):
        if word != "SUSPECT":   # Serf does not log the end of a suspicion
            self.says.setdefault(observer, {})[member] = word
        self.history.append((when, observer, member, word,
                             member in self.killed))

    def all_say(self, observers, member, word):
        return all(self.says.get(o, {}).get(member) == word
                   for o in observers)

    def first(self, since, member, word):
        return min((t for t, _, m, w, _ in self.history
                    if t >= since and m == member and w == word), default=None)

    def last(self, since, member, word):
        """When the last observer first reported it."""
        heard = {}
        for t, o, m, w, _ in self.history:
            if t >= since and m == member and w == word and o != member:
                heard.setdefault(o, t)
        return max(heard.values())

    def wronged(self, word):
        """How often it was reported of a member that was running."""
        return sum(w == word and not killed
                   for _, _, _, w, killed in self.history)
