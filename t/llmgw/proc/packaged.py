"""A host with our packages, seen from within: commands, members, versions."""

import json
import os
import pathlib
import re
import subprocess

PACKAGES = pathlib.Path("/packages")


def sh(command, check=True):
    return subprocess.run(command, shell=True, check=check, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def members(control):
    """By id; empty while the agent does not answer."""
    out = sh(f"llmgwctl -s {control} --json members", check=False)
    try:
        return {m["id"]: m for m in json.loads(out.stdout)["members"]}
    except ValueError:
        return {}


def are_ready(control, ids):
    found = members(control)
    return all(found.get(r, {}).get("service") == "READY"
               and found[r]["state"] == "ALIVE" for r in ids)


def debs(version, *names):
    found = [next(iter((PACKAGES / version).glob(f"{name}_*.deb")))
             for name in names]
    return " ".join(map(str, found))


def version_of(release):
    name = pathlib.Path(debs(release, "llmgw-agent")).name
    return name.split("_")[1]


def install(fact, to, *names):
    out = sh(f"dpkg -i {debs(to, *names)}", check=False)
    if not fact(out.returncode == 0 and "goes on with" not in out.stdout,
                f"{' and '.join(names)}: dpkg -i"):
        print(out.stdout)


def update(fact, control, *words):
    """The adapters, by a rolling update."""
    out = sh(" ".join(["llmgwctl -s", control, "rolling-update", *words]),
             check=False)
    if not fact(out.returncode == 0, "rolling-update"):
        print(out.stdout)


# --- what runs

def processes(title, pids=None):
    """{pid: command line} of those (None: of all) whose command line begins
    so, as a pattern."""
    found = {}
    for pid in pids or filter(str.isdigit, os.listdir("/proc")):
        try:
            line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        line = line.replace(b"\0", b" ").decode(errors="replace")
        if re.match(title, line):
            found[int(pid)] = line.strip()
    return found


def started(pid):
    """When, in ticks since the machine's start; None: it has ended."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


def masters():
    return [*processes("nginx: master")]


def outdated(name):
    """Processes of a program whose file has been replaced."""
    files = sh(f"pgrep -x {name} | xargs -I P readlink /proc/P/exe",
               check=False).stdout.splitlines()
    return [file for file in files if file.endswith("(deleted)")]
