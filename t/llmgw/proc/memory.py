"""Memory that processes share, as the kernel counts it."""

import os
import pathlib

NAME = "/memfd:llmgw-weights"


def pss_shmem(pid):
    """Bytes of shared memory, each page parted among those who map it."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").open():
        if line.startswith("Pss_Shmem:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no Pss_Shmem in smaps_rollup")


def shmem():
    """Bytes of shared memory of the whole machine."""
    for line in pathlib.Path("/proc/meminfo").open():
        if line.startswith("Shmem:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no Shmem in meminfo")


def anonymous(pid):
    """Bytes that are the process's own."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").open():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no Anonymous in smaps_rollup")


def _is_weights(text):
    return text.startswith(NAME)


def opened(pid):
    """The inodes of weights of which it has a descriptor."""
    found = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if _is_weights(os.readlink(fd)):
                found.add(fd.stat().st_ino)
        except FileNotFoundError:
            pass
    return found


def mapped(pid):
    """The inodes of weights that it has mapped."""
    rows = (line.split(None, 5) for line in
            pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines())
    return {int(row[4]) for row in rows if len(row) > 5
            and _is_weights(row[5])}
