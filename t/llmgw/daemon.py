"""A process that a test can start again."""

import signal

from .proc import ENDS


class Daemon:
    """A daemon that can be started again with the same options."""

    def __init__(self, cluster, name, argv):
        self.cluster, self.name, self.argv = cluster, name, argv
        self.env = None
        self.starts = 0
        self.proc = None

    def start(self):
        self.starts += 1
        self.proc = self.cluster.run(f"{self.name}.{self.starts}", self.argv,
                                     env=self.env)
        return self

    def kill(self):
        self.proc.kill()

    def stop(self, sig=signal.SIGTERM, takes=ENDS):
        self.proc.send(sig)
        return self.proc.wait(takes)
