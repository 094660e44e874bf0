#!/usr/bin/env python3
"""`make bench`: builds and runs what is in bench/micro/.

Each is one C file over the core, compiled with -O2 whatever BUILD is, pinned
to one processor.  Figures of a shared machine drift: compare runs in turns.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FLAGS = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror",
         "-Wno-unused-parameter", "-D_GNU_SOURCE", "-I.", "-Iproto",
         "-Ibuild/gen", "-Ingx_http_llmgw_module/core"]


def run(source, directory):
    binary = pathlib.Path(directory, source.stem)
    core = sorted(ROOT.glob("ngx_http_llmgw_module/core/*.c"))
    subprocess.run([os.environ.get("CC", "gcc"), *FLAGS, "-o", binary, source,
                    *core, "-lxxhash", "-lm"], cwd=ROOT, check=True)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return subprocess.run([binary], cwd=ROOT).returncode


def main():
    wanted, failed = sys.argv[1:], 0
    with tempfile.TemporaryDirectory(prefix="llmgw-bench-") as directory:
        for source in sorted((ROOT / "bench" / "micro").glob("*.c")):
            if wanted and source.stem not in wanted:
                continue
            print(f"== {source.stem}", flush=True)
            failed += run(source, directory) != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
