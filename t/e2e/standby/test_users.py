"""Engines and a lock service that are not of one user."""

import os

import pytest

from llmgw.proc.wait import wait_for
from llmgw.standby.group import Group
from llmgw.standby.lock import LockClient

SERVICE, A, B, STRANGER = 4241, 4243, 4244, 4245
SHARED = 4242           # the group of the service's socket

pytestmark = pytest.mark.skipif(os.geteuid() != 0,
                                reason="only root becomes another user")


def user(uid, gid, *groups):
    return ["setpriv", f"--reuid={uid}", f"--regid={gid}",
            f"--groups={','.join(map(str, groups))}" if groups
            else "--clear-groups", "--"]


@pytest.fixture
def group(cluster):
    """Its lock service has a user and a group of its own."""
    g = Group(cluster, agents=False)
    cluster.dir.chmod(0o755)
    os.chown(g.service.dir, SERVICE, SHARED)
    g.service.dir.chmod(0o770)
    g.service.argv = user(SERVICE, SHARED) + g.service.argv
    g["a"].argv = user(A, SHARED) + g["a"].argv
    g["b"].argv = user(B, B, SHARED) + g["b"].argv
    return g


def give(path, uid, gid, mode):
    path.touch()
    os.chown(path, uid, gid)
    path.chmod(mode)


def test_engines_of_two_users_take_over_from_each_other(group):
    """One has the service's group as its own, and one as a further one."""
    group.service.start_only()
    a, b = group.start()
    a.kill()
    b.wait("ACTIVE")
    a.start().wait("STANDBY")
    b.kill()
    a.wait("ACTIVE")


def test_engine_that_cannot_have_the_lock_file_says_so_when_it_comes(group):
    """And not when the last engine that can has died."""
    give(group.service.lock_file(), A, SHARED, 0o640)
    group.service.start()
    group["a"].start().wait("ACTIVE")
    group.service.lock_file().chmod(0o640)
    b = group["b"].start()
    b.proc.told_to_end = True
    assert b.proc.wait() == 1
    assert "no lock can be taken" in b.proc.text()
    assert f'"{group.service.lock_file()}": Permission denied' \
        in b.proc.text()
    assert group.service.group()["waiters"] == []


def test_service_that_cannot_see_the_lock_file_says_so_when_one_waits(group):
    """A holder took a file that its group cannot share."""
    path = group.service.lock_file()
    give(path, STRANGER, STRANGER, 0o666)
    group.service.start()
    group["a"].start().wait("ACTIVE")
    path.chmod(0o660)
    with LockClient(group.service.socket) as client:
        client.acquire().expect("queued")
        line = 'its lock file cannot be opened, so no engine can take over'
        wait_for(lambda: line in group.service.proc.text(), "the line")
    path.chmod(0o666)
