"""Outlives the harness by a moment: when its standard input ends, whatever
process groups were named there and not taken back are killed.  So a test run
that is itself killed leaves nothing behind, nginx's workers included."""

import os
import signal
import sys


def main():
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, signal.SIG_IGN)
    groups = set()
    for line in sys.stdin:
        word, pgid = line.split()
        (groups.add if word == "add" else groups.discard)(int(pgid))
    for pgid in groups:
        try:
            os.killpg(pgid, signal.SIGKILL)
        except ProcessLookupError:
            pass


if __name__ == "__main__":
    main()
