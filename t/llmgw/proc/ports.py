"""Ports to listen on.

They are below those that the kernel takes for outgoing connections.  A process
reserves a random block by locking a file, so that test runs at the same time do
not collide.  Each port is tried for TCP and UDP before it is handed out, and
comes again only when all others of the block have been.
"""

import fcntl
import os
import pathlib
import random
import socket
import tempfile

FIRST, LAST, BLOCK = 10240, 32000, 320
OUTGOING = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def _last():
    try:
        outgoing = int(OUTGOING.read_text().split()[0])
    except OSError:
        return LAST
    return min(LAST, outgoing) if outgoing > FIRST + BLOCK else LAST


def _is_free(port):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


class Ports:
    def __init__(self):
        self.dir = os.path.join(tempfile.gettempdir(), "llmgw-ports")
        os.makedirs(self.dir, mode=0o777, exist_ok=True)
        blocks = list(range(FIRST, _last() - BLOCK + 1, BLOCK))
        random.shuffle(blocks)
        for base in blocks:
            if self._lock(base):
                self.base, self.next = base, 0
                return
        raise RuntimeError("every block of ports is taken")

    def _lock(self, base):
        self.fd = os.open(os.path.join(self.dir, str(base)),
                          os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            os.close(self.fd)
            return False

    def take(self):
        for _ in range(BLOCK):
            port = self.base + self.next % BLOCK
            self.next += 1
            if _is_free(port):
                return port
        raise RuntimeError("no free port in this run's block")


def outer_address():
    """An IPv4 address of this host that is not loopback; None: it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("198.51.100.1", 9))       # sends nothing
        except OSError:
            return None
        address = sock.getsockname()[0]
    return None if address.startswith("127.") else address
