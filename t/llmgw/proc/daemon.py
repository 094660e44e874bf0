"""A process that a test can start again."""

import signal

from .process import ENDS


class Daemon:
    """A daemon that can be started again with the same options; on that
    machine (machine.py), or on this one."""

    def __init__(self, cluster, name, argv, machine=None):
        self.cluster, self.name, self.argv = cluster, name, argv
        self.machine = machine
        self.env = None
        self.starts = 0
        self.proc = None

    def start(self):
        self.starts += 1
        argv = self.machine.inside(self.argv) if self.machine else self.argv
        self.proc = self.cluster.run(f"{self.name}.{self.starts}", argv,
                                     env=self.env)
        return self

    def kill(self):
        self.proc.kill()

    def stop(self, sig=signal.SIGTERM, takes=ENDS):
        self.proc.send(sig)
        return self.proc.wait(takes)
