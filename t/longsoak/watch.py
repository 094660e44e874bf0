"""What each process has, looked at when all is at rest: memory of its own and
descriptors.

A process is compared with itself alone: one that was started again is another
one.  Of its looks, the mean of the first third and that of the last third.

An allocator keeps what was once needed at a time.  So before the first look
more clients ask than later, and more workers run, each with connections to all
replicas: what grows beyond that is not needed by more work.
"""

import dataclasses
import os
import statistics

from llmgw.proc import packaged
from llmgw.proc.memory import anonymous

MEMORY_PERCENT = 2
DESCRIPTORS = 4         # connections to replicas come and go
LOOKS = 9               # of one that is compared: three for each third


@dataclasses.dataclass
class Life:
    role: str
    kb: list = dataclasses.field(default_factory=list)
    fds: list = dataclasses.field(default_factory=list)

    def is_long(self):
        return len(self.kb) >= LOOKS

    def thirds(self, looks):
        n = max(1, len(looks) // 3)
        return statistics.mean(looks[:n]), statistics.mean(looks[-n:])

    def growth(self):
        """Of its memory, in percent."""
        first, last = self.thirds(self.kb)
        return 100 * (last - first) / first

    def more_fds(self):
        first, last = self.thirds(self.fds)
        return last - first


class Watch:
    def __init__(self, fleet):
        self.fleet = fleet
        self.lives = {}         # of (pid, when it started)

    def roles(self):
        """{pid: what it is}"""
        found = {pid: "nginx, master" for pid in packaged.masters()}
        found.update({pid: "nginx, worker"
                      for pid in self.fleet.nginx.accepting()})
        for id, part in self.fleet.replicas.items():
            found[part.proc.pid] = f"adapter {id}" if id[0] != "m" \
                else f"replica {id}"
            found[self.fleet.agent_pid(id)] = f"agent {id}"
        for id in ("gw1", "gw2"):
            found[self.fleet.agent_pid(id)] = f"agent {id}"
        return found

    def look(self):
        for pid, role in self.roles().items():
            born = packaged.started(pid)
            if born is not None:
                life = self.lives.setdefault((pid, born), Life(role))
                life.kb.append(anonymous(pid) >> 10)
                life.fds.append(len(os.listdir(f"/proc/{pid}/fd")))

    def long(self):
        """The lives that are compared, by what they are."""
        return sorted((life for life in self.lives.values()
                       if life.is_long()), key=lambda life: life.role)

    def table(self):
        print("| process | looks | memory, first third, kB | last third, kB |"
              " growth, % | descriptors, first third | last third |")
        print("| --- " * 7 + "|")
        for life in self.long():
            kb, fds = life.thirds(life.kb), life.thirds(life.fds)
            print(f"| {life.role} | {len(life.kb)} | {kb[0]:.0f} |"
                  f" {kb[1]:.0f} | {life.growth():+.1f} | {fds[0]:.1f} |"
                  f" {fds[1]:.1f} |", flush=True)

    def check(self, fact):
        long = self.long()
        if not long:
            return print(f"| no process lived for {LOOKS} rounds |")
        for life in long:
            if life.growth() >= MEMORY_PERCENT or \
                    life.more_fds() > DESCRIPTORS:
                print(life)
        fact(all(life.growth() < MEMORY_PERCENT for life in long),
             f"no process that lived for {LOOKS} rounds has grown by"
             f" {MEMORY_PERCENT} %")
        fact(all(life.more_fds() <= DESCRIPTORS for life in long),
             "descriptors are flat")
