"""A systemd that is booted for what happens there, over a copy of this machine.

It needs root and the cgroup hierarchy of systemd (cgroups version 1).
booted.sh prepares the root directory and boots.
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
CLEAN_S = 10


def why_not():
    if os.geteuid() != 0:
        return "not root"
    if not os.access(CGROUPS / "cgroup.procs", os.W_OK):
        return f"no cgroups of systemd in {CGROUPS}"
    if not os.path.exists("/lib/systemd/systemd"):
        return "no systemd is installed"
    return None


def listen(console, process, limit_s):
    """Its output, until it ends or the time is over."""
    said, end = b"", time.monotonic() + limit_s
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


def boot(work, cgroup, limit_s):
    console, terminal = pty.openpty()
    cgroup.mkdir()
    process = subprocess.Popen(
        ["unshare", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup",
         "--fork", "--kill-child", "sh", str(HERE / "booted.sh"), str(work)],
        stdin=terminal, stdout=terminal, stderr=terminal,
        start_new_session=True, preexec_fn=lambda: (
            cgroup / "cgroup.procs").write_text(str(os.getpid())))
    os.close(terminal)
    try:
        return listen(console, process, limit_s)
    finally:
        process.send_signal(signal.SIGKILL)     # kills everything inside
        process.wait()
        os.close(console)


def tell(said):
    """The exit status.  All that was said is shown if it is not 0."""
    facts = re.findall(r"(PASSED|FAILED|\|) ([^\r\n]+)", said)
    for result, fact in facts:
        print(result, fact)
    facts = [result for result, _ in facts if result != "|"]
    failed = facts.count("FAILED")
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


def run(prepare, limit_s):
    """The exit status of what /look says: lines that begin with PASSED, FAILED,
    or, of a table, with |; then DONE.  prepare(overlay) fills the directory
    that is laid over the root."""
    why = why_not()
    if why:
        sys.exit(f"cannot boot a systemd here: {why}")
    work = pathlib.Path(tempfile.mkdtemp(prefix="llmgw-systemd-"))
    cgroup = CGROUPS / work.name
    try:
        (work / "overlay").mkdir()
        prepare(work / "overlay")
        return tell(boot(work, cgroup, limit_s))
    finally:
        remove(cgroup)
        shutil.rmtree(work, ignore_errors=True)
