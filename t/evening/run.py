#!/usr/bin/env python3
"""`make test-evening`: the first evening with llmgw, by README.md alone.

A fresh Debian 12 (llmgw/proc/fresh.py) and the packages of `make deb`; two
engines, gpu1 and gpu2. The three commands of README.md, as they are printed
there, have brought the first token within a minute. Then the engine that serves
is killed, and the answer goes on. evening.py is what happens there.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from llmgw.proc import fresh  # noqa: E402

LIMIT_S = 300

if __name__ == "__main__":
    sys.exit(fresh.Debian().run(HERE / "evening.py", LIMIT_S))
