"""Outlives the harness by a moment: when its standard input ends, it kills the
process groups that were named there and not taken back.  So a test run that is
itself killed leaves nothing behind, not even nginx's workers."""

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
