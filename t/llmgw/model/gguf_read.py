"""Reads the head of a GGUF file: its facts, and where its tensors lie.

It is written from the format's description, so that what the slicer writes is
not judged by the library that it was written with.
"""

import math
import pathlib
import struct

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?",
           10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
ALIGNMENT = 32
BLOCKS = {0: (1, 4), 8: (32, 34)}       # weights and bytes: f32, q8_0


class Tensor:
    def __init__(self, data, shape, kind, at, n):
        self.shape, self.kind, self.at, self.n = shape, kind, at, n
        self.bytes = data[at:at + n]

    def __eq__(self, other):
        return (self.shape, self.kind, self.bytes) == (
            other.shape, other.kind, other.bytes)


class Gguf:
    """facts: key -> value; tensors: name -> Tensor, at from the file's
    beginning."""

    def __init__(self, path):
        self.data, self.at = pathlib.Path(path).read_bytes(), 0
        magic, version, tensors, facts = self._take("<4sIQQ")
        assert magic == b"GGUF" and version == 3
        self.facts = dict(self._fact() for _ in range(facts))
        heads = [self._tensor() for _ in range(tensors)]
        base = self.at + -self.at % ALIGNMENT
        self.tensors = {
            name: Tensor(self.data, shape, kind, base + at, n)
            for name, shape, kind, at, n in heads}
        assert len(self.tensors) == tensors

    def _take(self, layout):
        taken = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return taken

    def _string(self):
        n, = self._take("<Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def _value(self, kind):
        if kind == STRING:
            return self._string()
        if kind != ARRAY:
            return self._take("<" + SCALARS[kind])[0]
        kind, n = self._take("<IQ")
        return [self._value(kind) for _ in range(n)]

    def _fact(self):
        key = self._string()
        kind, = self._take("<I")
        return key, self._value(kind)

    def _tensor(self):
        name = self._string()
        dimensions, = self._take("<I")
        shape = self._take(f"<{dimensions}Q")
        kind, at = self._take("<IQ")
        weights, size = BLOCKS[kind]
        return name, shape, kind, at, math.prod(shape) // weights * size


def flip(path, at, bit=0):
    """One bit of a file becomes another."""
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1 << bit]))
