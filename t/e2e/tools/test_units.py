"""The systemd units: how far they confine what they run.  What they do
`make test-systemd` tests."""

import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess

import pytest

from llmgw.proc import place
from llmgw.proc.wait import wait_for

UNITS = sorted((place.ROOT / "packaging" / "systemd").glob("*.service"))
DOCS = place.ROOT / "docs" / "systemd.md"

# They run engines, which need devices and memory that is executable.
WITH_ENGINE = {"llmgw-agent@.service", "llmgw-engine@.service"}
VERSION = 252       # of systemd, whose figures docs/systemd.md has


def analyze(*argv):
    return subprocess.run(["systemd-analyze", *argv], capture_output=True,
                          text=True, timeout=60)


def version():
    if not shutil.which("systemd-analyze"):
        return 0
    return int(analyze("--version").stdout.split()[1])


def exposure(unit):
    done = analyze("security", "--offline=yes", "--no-pager", str(unit))
    return float(re.search(r"Overall exposure level for .*: ([\d.]+) ",
                           done.stdout).group(1))


def written():
    return {name: float(figure) for name, figure in re.findall(
        r"^\| `(llmgw-[\w@.]+)` \| ([\d.]+) \|$", DOCS.read_text(), re.M)}


@pytest.mark.skipif(version() != VERSION, reason=f"the figures are systemd "
                    f"{VERSION}'s, here is {version() or 'none'}")
def test_units_are_as_confined_as_docs_say():
    found = {unit.name: exposure(unit) for unit in UNITS}
    assert found == written()
    assert {name for name, figure in found.items() if figure >= 2.0} \
        == WITH_ENGINE


def test_no_unit_leaves_core_files():
    assert UNITS
    for unit in UNITS:
        assert "\nLimitCORE=0\n" in unit.read_text(), unit.name


@pytest.fixture
def dumping():
    """A process that is started now may dump its core."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


def test_a_replica_leaves_no_core_file(cluster, dumping):
    proc = cluster.replica("r1").proc
    limits = pathlib.Path(f"/proc/{proc.pid}/limits")
    soft = int(resource.getrlimit(resource.RLIMIT_CORE)[1] != 0)
    wait_for(lambda: re.search(f"^Max core file size +{soft} ",
                               limits.read_text(), re.M), "the limit")
    proc.send(signal.SIGABRT)
    end = os.waitid(os.P_PID, proc.pid, os.WEXITED | os.WNOWAIT)
    assert (end.si_code, end.si_status) == (os.CLD_KILLED, signal.SIGABRT)
