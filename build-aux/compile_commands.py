"""Prints compile_commands.json: how each C file is compiled.

usage: compile_commands.py COMMAND NGINX_SRC NGINX_OBJS
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ["proto", "common", "ngx_http_llmgw_module", "agent", "replica",
          "client", "t/unit", "t/sim", "t/fuzz", "bench/micro"]


def main():
    command, nginx, objs = sys.argv[1:]
    parts = ["core", "event", "event/modules", "os/unix", "http",
             "http/modules", "http/v2"]
    glue = " ".join(f"-I{nginx}/src/{p}" for p in parts) + f" -I{objs}"
    entries = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.c")):
            name = str(path.relative_to(ROOT))
            more = f" {glue}" if folder.startswith("ngx_") else ""
            entries.append({"directory": str(ROOT), "file": name,
                            "command": f"{command}{more} -c {name}"})
    json.dump(entries, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
