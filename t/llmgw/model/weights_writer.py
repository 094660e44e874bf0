"""An engine that loads: writes each slot that it may, commits the first ones,
and is killed by the test.

weights_writer.py COMMITS SOCKET...
"""

import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from llmgw.model.weights import WeightsClient, memfd  # noqa: E402


def load(client, i, commits):
    got = client.hello("rw_or_ro").expect("granted")
    if got["mode"] == "rw":
        client.put(memfd(os.urandom(1 << 20)))
        if i < commits:
            got = client.commit().expect("committed")
    print(f"device {i}: {got}", flush=True)
    return client


kept = [load(WeightsClient(path, "primary"), i, int(sys.argv[1]))
        for i, path in enumerate(sys.argv[2:])]
signal.pause()
