"""The memory of a device, as a directory: a file for each process that has
some, with its bytes; `total`; and `late`, as long as which is there what dead
processes had is not free.  t/preload/nvml.c tells it as a device's library
does."""

import os
import pathlib


def make(directory, total):
    directory.mkdir()
    (directory / "total").write_text(str(total))
    return directory


def lives(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def used(directory):
    directory = pathlib.Path(directory)
    is_late = (directory / "late").exists()
    return sum(int(f.read_text() or 0) for f in directory.iterdir()
               if f.name.isdigit() and (is_late or lives(f.name)))


def take(directory, need):
    """Whether this process gets so many bytes."""
    directory = pathlib.Path(directory)
    if used(directory) + need > int((directory / "total").read_text()):
        return False
    (directory / str(os.getpid())).write_text(str(need))
    return True
