"""Which policies a test runs under.

LLMGW_POLICY is a list of them, NAME or NAME+flow (nginx.py): every test that
has a cluster of its own runs under each.  Without it, a test marked `policies`
runs under all, or under those that its mark names, and any other under the
default.  A test marked `ring` shows what the ring alone does: it is left out
under other policies, for the reason that its mark gives.
"""

import os

import pytest

RING = "affinity"
READERS = ("round_robin", "least_loaded", "weighted")

MARKS = ("policies(names): runs under these policies, too, or under each that"
         " reads the fleet",
         "flow: sets flow control itself, so that NAME+flow is NAME for it",
         "ring(reason): shows what only the ring with bounded load does")


def asked():
    """The list in LLMGW_POLICY."""
    names = os.environ.get("LLMGW_POLICY", "").split(",")
    return [name.strip() for name in names if name.strip()]


def of_all():
    """For clusters that several tests share: one policy, or the default."""
    return asked()[0] if len(asked()) == 1 else None


def _param(name, ring):
    if ring is None or name is None or name.split("+")[0] == RING:
        return pytest.param(name, id=name or "default")
    why = f"{name} is not the ring: {ring.args[0]}"
    return pytest.param(name, id=name, marks=pytest.mark.skip(reason=why))


def parametrize(metafunc):
    """A hook of pytest's: gives a test its policies."""
    if "policy" not in metafunc.fixturenames:
        return
    node = metafunc.definition
    names, mark = asked(), node.get_closest_marker("policies")
    if not names and mark:
        names = [None, *(mark.args or READERS)]
    if node.get_closest_marker("flow"):
        names = list(dict.fromkeys(name and name.split("+")[0]
                                   for name in names))
    if names:
        ring = node.get_closest_marker("ring")
        metafunc.parametrize("policy", [_param(name, ring) for name in names],
                             indirect=True)
