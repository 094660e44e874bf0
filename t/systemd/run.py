#!/usr/bin/env python3
"""`make test-systemd`: the unit files under a systemd that is booted for them.

It needs root and the cgroup hierarchy of systemd (cgroups version 1), and
takes half a minute, mostly waiting for the watchdog.  boot.sh prepares the
root directory and boots, units.sh runs the checks.
"""

import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CGROUPS = pathlib.Path("/sys/fs/cgroup/systemd")
LIMIT_S = 180
CLEAN_S = 10


def why_not():
    if os.geteuid() != 0:
        return "not root"
    if not os.access(CGROUPS / "cgroup.procs", os.W_OK):
        return f"no cgroups of systemd in {CGROUPS}"
    if not os.path.exists("/lib/systemd/systemd"):
        return "no systemd is installed"
    return None


def listen(console, process):
    """Its output, until it ends or the time is over."""
    said, end = b"", time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        ready, _, _ = select.select([console], [], [], 0.5)
        try:
            data = os.read(console, 1 << 16) if ready else None
        except OSError:         # its last process is gone
            break
        if data == b"" or (data is None and process.poll() is not None):
            break
        said += data or b""
    return said.decode(errors="replace")


def boot(work, cgroup):
    console, terminal = pty.openpty()
    cgroup.mkdir()
    process = subprocess.Popen(
        ["unshare", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup",
         "--fork", "--kill-child", "sh", str(HERE / "boot.sh"), str(work)],
        stdin=terminal, stdout=terminal, stderr=terminal,
        start_new_session=True, preexec_fn=lambda: (
            cgroup / "cgroup.procs").write_text(str(os.getpid())))
    os.close(terminal)
    try:
        return listen(console, process)
    finally:
        process.send_signal(signal.SIGKILL)     # kills everything inside
        process.wait()
        os.close(console)


def tell(said):
    """The exit status.  All that was said is shown if it is not 0."""
    facts = re.findall(r"(PASSED|FAILED) ([^\r\n]+)", said)
    failed = sum(result == "FAILED" for result, _ in facts)
    for result, fact in facts:
        print(result, fact)
    if failed or not facts or "DONE" not in said:
        print(said)
        failed = failed or 1
    print(f"{len(facts) - failed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


def remove(cgroup):
    """A process that was killed is in its cgroup until it has ended."""
    end = time.monotonic() + CLEAN_S
    while cgroup.exists():
        try:
            for path, _, _ in os.walk(cgroup, topdown=False):
                os.rmdir(path)
        except OSError as error:
            if time.monotonic() > end:
                print(f"cannot remove {cgroup}: {error}", file=sys.stderr)
                return
            time.sleep(0.1)


def main():
    why = why_not()
    if why:
        sys.exit(f"cannot boot a systemd here: {why}")
    work = pathlib.Path(tempfile.mkdtemp(prefix="llmgw-systemd-"))
    cgroup = CGROUPS / work.name
    try:
        subprocess.run(["make", "-s", "install", f"DESTDIR={work}/install"],
                       cwd=HERE.parents[1], check=True,
                       stdout=subprocess.DEVNULL)
        shutil.copy(HERE / "units.sh", work)
        return tell(boot(work, cgroup))
    finally:
        remove(cgroup)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
