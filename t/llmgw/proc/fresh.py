"""A fresh Debian for what happens with our packages.

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
BUILD = HERE.parents[2] / "build"


class Debian:
    """suite: bookworm, whose packages are those of `make deb`, or another one,
    of `make deb SUITE=...`."""

    def __init__(self, suite="bookworm"):
        suffix = "" if suite == "bookworm" else f"-{suite}"
        self.suite = suite
        self.kept = BUILD / f"evening{suffix}"
        self.debs = BUILD / f"deb{suffix}"

    def why_not(self):
        if os.geteuid() != 0:
            return "not root"
        for program in ("mmdebstrap", "apt-ftparchive", "unshare"):
            if not shutil.which(program):
                return f"no {program}"
        if not list(self.debs.glob("llmgw_*.deb")):
            return f"no packages in {self.debs}: make deb"
        return None

    def base(self):
        """A tar of Debian's base system, as an installer leaves it."""
        tar = self.kept / "base.tar"
        if not tar.exists():
            print("making Debian's base system", flush=True)
            subprocess.run(
                ["mmdebstrap", "--quiet", "--variant=important",
                 "--include=ca-certificates,sudo", self.suite, "new.tar"],
                cwd=self.kept, check=True)
            (self.kept / "new.tar").rename(tar)
        return tar

    def mirror(self, tar, work):
        """A directory for apt, of what the packages need and the base system
        has not.  Where there is no network, the last one."""
        where, lists = self.kept / "mirror", self.kept / "lists"
        for made in (where, lists):
            (made / "partial").mkdir(parents=True, exist_ok=True)
        status, sources = "var/lib/dpkg/status", "etc/apt/sources.list"
        subprocess.run(["tar", "-xf", tar, "-C", work, f"./{status}",
                        f"./{sources}"], check=True)
        apt = ["apt-get", "-qq", "-y",
               "-o", f"Dir::State::status={work}/{status}",
               "-o", f"Dir::State::lists={lists}",
               "-o", f"Dir::Etc::sourcelist={work}/{sources}",
               "-o", "Dir::Etc::sourceparts=/dev/null",
               "-o", f"Dir::Cache::archives={where}",
               "-o", "Dir::Cache::pkgcache=",
               "-o", "Dir::Cache::srcpkgcache=",
               "-o", "APT::Install-Recommends=1",
               "-o", "Debug::NoLocking=1"]
        subprocess.run([*apt, "update"])
        got = subprocess.run([*apt, "install", "--download-only",
                              *self.debs.glob("*.deb")])
        index = where / "Packages"
        if got.returncode and not index.exists():
            sys.exit("no mirror of what the packages need could be made")
        with open(index, "w") as out:
            subprocess.run(["apt-ftparchive", "packages", "."], cwd=where,
                           stdout=out, check=True)
        return where

    @contextlib.contextmanager
    def work_dir(self):
        self.kept.mkdir(parents=True, exist_ok=True)
        work = pathlib.Path(tempfile.mkdtemp(prefix="llmgw-fresh-"))
        work.chmod(0o755)       # apt reads as a user of its own
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def run(self, script, limit_s):
        """The exit status of script, which has the root directory as its
        word."""
        why = self.why_not()
        if why:
            sys.exit(f"cannot have a fresh Debian here: {why}")
        with self.work_dir() as work:
            tar = self.base()
            return subprocess.run(
                ["unshare", "--pid", "--mount", "--uts", "--ipc", "--net",
                 "--fork", "--kill-child", "sh", str(HERE / "fresh.sh"),
                 str(work), str(tar), str(self.mirror(tar, work)),
                 str(self.debs), str(script)],
                stdin=subprocess.DEVNULL, timeout=limit_s).returncode
