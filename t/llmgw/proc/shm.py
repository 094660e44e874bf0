"""What nginx's processes share, read and written from outside."""

import pathlib
import struct


class Memory:
    """A zone's, by way of the master: `address` is that of its magic number,
    at the beginning of what zone/zone.h or choice/prefix_zone.c has in it."""

    def __init__(self, nginx, magic):
        self.path = f"/proc/{nginx.proc.pid}"
        self.address = self._find(magic)

    def _find(self, magic):
        maps = pathlib.Path(self.path, "maps").read_text().splitlines()
        for line in maps:
            span, rights = line.split()[:2]
            if rights != "rw-s":
                continue
            first, last = (int(x, 16) for x in span.split("-"))
            at = self.read(first, last - first).find(magic)
            if at >= 0:
                return first + at
        raise AssertionError("no zone in the master's memory")

    def read(self, address, n):
        with open(self.path + "/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(n)

    def write(self, address, kind, value):
        with open(self.path + "/mem", "r+b", buffering=0) as memory:
            memory.seek(address)
            memory.write(struct.pack(kind, value))

    def word(self, address):
        return struct.unpack("Q", self.read(address, 8))[0]
