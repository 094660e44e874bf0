"""A fresh Debian 12 for what happens with our packages.

It is a directory in memory, in namespaces of its own: its network is its
loopback, and Debian's packages come from a mirror of those that ours need, in
/mirror.  fresh.sh prepares it.  Making the base system and the mirror, in
build/evening/, needs the network; both are kept.  Root.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / "build" / "evening"
DEBS = ROOT / "build" / "deb"


def why_not():
    if os.geteuid() != 0:
        return "not root"
    for program in ("mmdebstrap", "apt-ftparchive", "unshare"):
        if not shutil.which(program):
            return f"no {program}"
    if not list(DEBS.glob("llmgw_*.deb")):
        return f"no packages in {DEBS}: make deb"
    return None


def base():
    """A tar of Debian's base system, as an installer leaves it."""
    tar = KEPT / "base.tar"
    if not tar.exists():
        print("making Debian's base system", flush=True)
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=important",
             "--include=ca-certificates,sudo", "bookworm", "new.tar"],
            cwd=KEPT, check=True)
        (KEPT / "new.tar").rename(tar)
    return tar


def mirror(tar, work):
    """A directory for apt, of what the packages need and the base system has
    not.  Where there is no network, the last one."""
    where = KEPT / "mirror"
    (where / "partial").mkdir(parents=True, exist_ok=True)
    status = "var/lib/dpkg/status"
    subprocess.run(["tar", "-xf", tar, "-C", work, f"./{status}"], check=True)
    got = subprocess.run(
        ["apt-get", "install", "-qq", "-y", "--download-only",
         "-o", f"Dir::State::status={work}/{status}",
         "-o", f"Dir::Cache::archives={where}",
         "-o", "APT::Install-Recommends=1",
         "-o", "Debug::NoLocking=1", *DEBS.glob("*.deb")])
    index = where / "Packages"
    if got.returncode and not index.exists():
        sys.exit("no mirror of what the packages need could be made")
    with open(index, "w") as out:
        subprocess.run(["apt-ftparchive", "packages", "."], cwd=where,
                       stdout=out, check=True)
    return where


@contextlib.contextmanager
def work_dir():
    KEPT.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="llmgw-fresh-"))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def run(script, limit_s):
    """The exit status of script, which has the root directory as its word."""
    why = why_not()
    if why:
        sys.exit(f"cannot have a fresh Debian here: {why}")
    with work_dir() as work:
        tar = base()
        return subprocess.run(
            ["unshare", "--pid", "--mount", "--uts", "--ipc", "--net",
             "--fork", "--kill-child", "sh", str(HERE / "fresh.sh"),
             str(work), str(tar), str(mirror(tar, work)), str(DEBS),
             str(script)],
            stdin=subprocess.DEVNULL, timeout=limit_s).returncode
