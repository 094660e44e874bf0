"""Where its control group is delegated to it, an adapter makes one for its
engine: what is in there is killed as a whole, by the next run if no other."""

import os
import signal
import subprocess

import pytest

from llmgw.fleet.launched import Launched
from llmgw.proc.wait import wait_for


@pytest.fixture
def delegated(cluster):
    """A group of version 2 that is delegated, as systemd marks it."""
    mount = cluster.dir / "cgroup"
    mount.mkdir()
    if os.geteuid() != 0 or subprocess.run(
            ["mount", "-t", "cgroup2", "none", mount],
            capture_output=True).returncode:
        pytest.skip("needs root, and cgroups of version 2")
    group = mount / f"llmgw-test-{os.getpid()}"
    try:
        group.mkdir()
        os.setxattr(group, "trusted.delegate", b"1")
        yield group
    finally:
        (group / "cgroup.kill").write_text("1")     # of a test that failed
        wait_for(lambda: "populated 0" in (group / "cgroup.events")
                 .read_text(), "the group to be empty")
        for inner in group.iterdir():
            if inner.is_dir():
                inner.rmdir()
        group.rmdir()
        subprocess.run(["umount", "-l", mount], check=True)


def within_group(one, group):
    one.pair.argv = ["/bin/sh", "-c", f'echo 0 > {group}/cgroup.procs && '
                     'exec "$@"', "sh", *one.pair.argv]
    one.agent.start()
    one.pair.start()
    return one.ready()


def test_next_run_ends_what_three_deaths_have_left(cluster, delegated):
    """The adapter and both keepers, at the same moment."""
    one = within_group(Launched(cluster, "a1", start=False), delegated)
    tree = one.tree()
    inner = delegated / "llmgw-engine-a1"
    keepers = {tree.pop("keeper"), tree.pop("keeper2")}
    assert {int(pid) for pid in (inner / "cgroup.procs").read_text().split()} \
        == set(tree.values())
    dead = [one.pair.proc.pid, *keepers]
    for sig in (signal.SIGSTOP, signal.SIGKILL):
        for pid in dead:
            os.kill(pid, sig)
    one.pair.proc.send(signal.SIGKILL)
    one.pair.proc.wait()
    assert one.left(tree) == tree
    one.pair.start()
    one.gone(tree)
    wait_for(lambda: len(one.runs()) == 2, "another start", takes=4)
    tree = one.tree()
    one.kill("front", tree)
    one.gone(tree)
    assert one.pair.stop() == 0
    assert not inner.exists()
