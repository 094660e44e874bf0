"""A process that holds a group as an engine does, without being one.

It waits for its group, takes the lock file, holds memory, and is Active until
it is killed.  It loses the service and comes back, for ever.  What happens to
it stands in its standard output, one line each: WHAT EPOCH MONOTONIC_NS.
"""

import argparse
import ctypes
import mmap
import os
import pathlib
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from llmgw.standby import lock  # noqa: E402

PR_SET_PDEATHSIG = 1


def say(what, epoch=0):
    print(what, epoch, time.monotonic_ns(), flush=True)


def hold_memory(mb, directory):
    """Shared memory of this process alone, each page touched: a file without
    a name, in a directory of a tmpfs."""
    fd = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.ftruncate(fd, mb << 20)
    memory = mmap.mmap(fd, mb << 20, mmap.MAP_SHARED)
    os.close(fd)
    for at in range(0, mb << 20, mmap.PAGESIZE):
        memory[at] = 1
    return memory


def start_worker(client, options):
    """A child that is registered before it allocates.  It says that it has."""
    go_out, go_in = os.pipe()
    done_out, done_in = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(client.sock.detach())      # the connection is the engine's
        os.close(go_in)
        if options.pdeathsig:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.read(go_out, 1)
        memory = hold_memory(options.memory, options.memory_dir)
        os.write(done_in, b"x")
        signal.pause()
        del memory
        os._exit(0)
    os.close(done_in)
    client.worker(pid)
    os.write(go_in, b"x")
    if os.read(done_out, 1) != b"x":
        sys.exit("the worker ended")
    say("worker", pid)


def connect(options, nonce):
    while True:
        try:
            return lock.LockClient(options.lock, options.group, options.id,
                                   nonce)
        except OSError:
            time.sleep(0.01)


def wait_for_grant(options):
    """Waits, over as many connections as it takes."""
    client = connect(options, None)
    while True:
        try:
            client.acquire(waking_timeout_ms=options.waking_timeout)
            client.expect("queued")
            say("queued")
            while True:
                offer = client.expect("offer", takes=1e9)
                try:
                    granted = client.take(offer)
                    say("granted", granted["epoch"])
                    return client
                except lock.Refused as refused:
                    if str(refused) not in lock.NOT_FINAL:
                        raise
                    say("late", offer["epoch"])
        except (lock.Refused, OSError) as problem:
            if isinstance(problem, lock.Refused) and str(problem) != "closed":
                sys.exit(f"refused: {problem}")
            client.close()
            client = connect(options, client.nonce)


def hold_on(options, client):
    """The service may come and go."""
    while True:
        try:
            client.expect("never", takes=1e9)
        except lock.Refused as refused:
            if str(refused) != "closed":
                say(f"refused-{refused}", client.epoch)
        client.close()
        before, client = client, connect(options, client.nonce)
        client.state, client.epoch = before.state, before.epoch
        client.streams = before.streams
        try:
            client.acquire(epoch=client.epoch)
            say("regranted", client.expect("granted")["epoch"])
        except (lock.Refused, OSError):
            time.sleep(0.01)


def check_file(path, fd):
    while True:
        time.sleep(0.2)
        try:
            named, opened = os.stat(path), os.fstat(fd)
            same = (named.st_dev, named.st_ino) == (opened.st_dev,
                                                    opened.st_ino)
        except OSError:
            same = False
        if not same:
            say("lock file lost")
            os._exit(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lock", required=True)
    parser.add_argument("--group", default="g")
    parser.add_argument("--id", required=True)
    parser.add_argument("--memory", type=int, default=0, help="MiB")
    parser.add_argument("--memory-dir")
    parser.add_argument("--in-worker", action="store_true")
    parser.add_argument("--pdeathsig", action="store_true")
    parser.add_argument("--never-wakes", action="store_true")
    parser.add_argument("--stuck", action="store_true",
                        help="a stream runs, without progress")
    parser.add_argument("--waking-timeout", type=int, default=60000)
    options = parser.parse_args()
    socket.setdefaulttimeout(None)

    client = wait_for_grant(options)
    path = lock.lock_path(options.lock, options.group)
    fd = lock.take_lock_file(path)
    if fd is None:
        say("no lock file")
        sys.exit(1)
    os.set_inheritable(fd, True)
    threading.Thread(target=check_file, args=(path, fd), daemon=True).start()

    if options.never_wakes:
        hold_on(options, client)
    if options.in_worker:
        start_worker(client, options)
    else:
        memory = options.memory and hold_memory(options.memory,
                                                options.memory_dir)
    client.streams = 1 if options.stuck else 0
    client.state = "active"
    say("active", client.epoch)
    hold_on(options, client)
    del memory


main()
