"""llmgw-weights, and a client of it: what docs/weights.md says of the lines."""

import contextlib
import fcntl
import hashlib
import json
import mmap
import os
import socket
import subprocess

from ..proc import place
from ..proc.daemon import Daemon
from ..proc.wait import PATIENCE, QUICK, Stopwatch, TooLate, wait_for

CHUNK = 64 << 20
SEALS = (fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
         | fcntl.F_SEAL_SEAL)


def id_of(data):
    """SHA-256 over the list of those of each 64 MiB."""
    hashes = b"".join(hashlib.sha256(data[at:at + CHUNK]).digest()
                      for at in range(0, len(data), CHUNK))
    return hashlib.sha256(hashes).hexdigest()


def memfd(data=b"", flags=os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING, seals=0):
    """The descriptor of a file in memory that holds data."""
    fd = os.memfd_create("test-weights", flags)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]
    if seals:
        seal(fd, seals)
    return fd


def seal(fd, seals=SEALS):
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)


def read(fd):
    """All that is in it."""
    size = os.fstat(fd).st_size
    with mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ) as m:
        return m[:]


class WeightsClient:
    """One connection.  It is an engine's as far as the service knows."""

    def __init__(self, path, engine="e1"):
        self.engine = engine
        self.buffer, self.fds = b"", []
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    # lines

    def send(self, fd=None, **request):
        line = json.dumps(request).encode() + b"\n"
        self.send_bytes(line, [] if fd is None else [fd])

    def send_bytes(self, data, fds=()):
        """The descriptors travel with the first byte."""
        n = socket.send_fds(self.sock, [data], fds) if fds else 0
        self.sock.sendall(data[n:])

    def line(self, takes=QUICK, progress=False):
        """The next line; None: the service has closed the connection."""
        watch = Stopwatch(takes)
        self.sock.settimeout(max(takes, PATIENCE) * place.SLOW)
        while True:
            while b"\n" not in self.buffer:
                try:
                    data, fds, _, _ = socket.recv_fds(self.sock, 65536, 8)
                except (TimeoutError, BlockingIOError):
                    raise TooLate(f"{self.engine}: no line") from None
                except ConnectionResetError:
                    return None
                self.fds += fds
                if not data:
                    return None
                self.buffer += data
            line, _, self.buffer = self.buffer.partition(b"\n")
            got = json.loads(line)
            if progress or got.get("type") != "hashing":
                watch.over(f"a line for {self.engine}")
                return got

    def expect(self, type, takes=QUICK):
        got = self.line(takes)
        assert got and got.get("type") == type, (type, got)
        return got

    def refused(self):
        """The reason."""
        got = self.expect("refused")
        assert got["error"], got
        return got["reason"]

    # requests

    def hello(self, mode="rw_or_ro", timeout_ms=10000):
        self.send(cmd="hello", mode=mode, timeout_ms=timeout_ms,
                  engine=self.engine)
        return self

    def granted(self, takes=QUICK):
        """The mode."""
        return self.expect("granted", takes)["mode"]

    def put(self, fd, bytes=None, name="model.gguf"):
        self.send(fd, cmd="put", name=name,
                  bytes=os.fstat(fd).st_size if bytes is None else bytes)
        return self

    def commit(self):
        self.send(cmd="commit")
        return self

    def write(self, data, name="model.gguf"):
        """Puts and commits; the id, and the descriptor."""
        fd = memfd(data)
        self.put(fd, name=name).commit()
        return self.expect("committed")["id"], fd

    def get(self):
        """What the slot is, and its descriptor."""
        self.send(cmd="get")
        slot = self.expect("slot")
        return slot, self.fds.pop(0)

    def adopt(self, fd, id, name="model.gguf"):
        self.send(fd, cmd="adopt", id=id, name=name, engine=self.engine)
        return self

    def state(self):
        self.send(cmd="state")
        return self.line()


class WeightsService(Daemon):
    """adopt_window: "0" lets the first engine write at once."""

    def __init__(self, cluster, device=0, adopt_window="0", start=True,
                 socket=None):
        self.path = str(socket or cluster.dir / f"weights{device}.sock")
        super().__init__(cluster, f"weights-{device}", [
            place.binary("llmgw-weights"), "--socket", self.path,
            "--device", str(device), "--adopt-window", adopt_window])
        if start:
            self.start()

    def start(self):
        super().start()
        wait_for(self._serves, "the weights service to serve")
        return self

    def _serves(self):
        assert self.proc.alive(), self.proc.text()
        return "serving" in self.proc.text()

    def client(self, engine="e1"):
        made = WeightsClient(self.path, engine)
        self.cluster.closers.append(made.close)
        return made

    def state(self):
        with WeightsClient(self.path, "test") as client:
            return client.state()

    def roles(self):
        """Each engine's role, oldest first."""
        return {c["engine"]: c["role"] for c in self.state()["clients"]}

    def wait_roles(self, **roles):
        wait_for(lambda: self.roles() == roles, f"roles {roles}")

    def memfds(self):
        """How many files in memory it holds."""
        found = 0
        for fd in os.scandir(f"/proc/{self.proc.pid}/fd"):
            with contextlib.suppress(OSError):      # closed meanwhile
                found += os.readlink(fd.path).startswith("/memfd:")
        return found

    def ctl(self, *words):
        return subprocess.run(
            [place.binary("llmgwctl"), *words, "weights", "status",
             "--weights", self.path],
            capture_output=True, text=True, timeout=PATIENCE)
