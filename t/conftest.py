"""Fixtures: one cluster per test, and the checks at its end."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from llmgw.fleet import policies  # noqa: E402
from llmgw.fleet.cluster import Cluster  # noqa: E402
from llmgw.fleet.supervised import Supervised, processes  # noqa: E402
from llmgw.proc import late, place  # noqa: E402
from llmgw.proc.limit import Limit  # noqa: E402
from llmgw.proc.ports import Ports  # noqa: E402
from llmgw.proc.share import Share  # noqa: E402
from llmgw.proc.wait import TooLate, contention, slow  # noqa: E402
from llmgw.speak.callers import Caller  # noqa: E402
from llmgw.speak.rpc import Client, Result  # noqa: E402

# What a wait that ran out of time ends with.
EXPIRED = (TooLate, TimeoutError, subprocess.TimeoutExpired)


def pytest_configure(config):
    # A shell's background jobs ignore these signals, and so would our children.
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    config.addinivalue_line(
        "markers", "alone: measures time, or the machine's memory, so nothing "
        "else may run")
    config.addinivalue_line("markers", "first: takes long, so begins early")
    config.addinivalue_line(
        "markers", "soak: not of the gate, but of make soak: takes long, draws "
        "a seed, or shows again under other circumstances what the gate shows")
    config.addinivalue_line(
        "markers", "timed: compares a measured time: of make soak, and never "
        "of the gate")
    contention.start()
    late.begin()
    for mark in policies.MARKS:
        config.addinivalue_line("markers", mark)
    if "LLMGW_TEST_LIMIT" in os.environ:
        config.pluginmanager.register(
            Limit(float(os.environ["LLMGW_TEST_LIMIT"])))
    if "LLMGW_SHARE" in os.environ:
        config.pluginmanager.register(Share(
            os.environ["LLMGW_SHARE"], os.environ.get("LLMGW_ORDER"),
            float(os.environ.get("LLMGW_SHARE_SECONDS", "inf"))))


def pytest_generate_tests(metafunc):
    policies.parametrize(metafunc)


def pytest_report_header():
    return f"llmgw: {place.FLAVOUR} build, {place.NGINX}, {place.MODULE}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    setattr(item, f"report_{report.when}", report)
    if call.when == "setup":
        item.user_properties.append(("nodeid", item.nodeid))
    if call.excinfo and call.excinfo.errisinstance(EXPIRED):
        item.user_properties.append(("expired", call.when))
    if report.passed and slow and call.when != "setup":
        report.outcome = "failed"
        report.longrepr = "slow: " + "; ".join(slow)
        item.user_properties.append(("expired", call.when))
    if call.when != "setup" or not report.passed:
        slow.clear()
    report.user_properties = list(item.user_properties)


@pytest.fixture(scope="session")
def ports():
    return Ports()


def take_down(made, failed):
    """At the end no process may be left, no count, no error in a log."""
    wrong = made.close()
    if failed or wrong:
        print(f"\nkept: {made.dir}\n{made.tails()}")
    else:
        made.remove()
    assert not wrong, "\n".join(wrong)
    held = len(os.listdir("/proc/self/fd"))
    assert held < 500, f"the tests of this process left {held} descriptors open"


@pytest.fixture
def policy(request):
    """By what its gateways route: a value of llmgw_policy, or None."""
    return getattr(request, "param", None)


@pytest.fixture
def cluster(request, ports, policy):
    """A Cluster for one test."""
    made = Cluster(ports, policy=policy)
    yield made
    report = getattr(request.node, "report_call", None)
    take_down(made, report is None or report.failed)


@pytest.fixture(scope="module")
def shared(request, ports):
    """A Cluster that all tests of a module share."""
    made = Cluster(ports, policy=policies.of_all())
    before = request.session.testsfailed
    yield made
    take_down(made, request.session.testsfailed > before)


class Reference:
    """A replica outside every pool that generates the correct text."""

    def __init__(self, cluster):
        self.replica = cluster.replica("reference", token_delay="0ms")
        self.cluster = cluster
        self.known = {}

    def tokens(self, prompt, n):
        """The n tokens of a prompt."""
        had = self.known.get(prompt, [])
        if len(had) < n:
            had = self.replica.client.generate(prompt, n).tokens
            assert len(had) == n
            self.known[prompt] = had
        return had[:n]


@pytest.fixture(scope="session")
def reference(ports):
    made = Cluster(ports, "reference")
    yield Reference(made)
    take_down(made, False)


@pytest.fixture
def expect(reference):
    return reference.tokens


@pytest.fixture
def client():
    """client(target): a gRPC client, closed before the cluster's end."""
    made = []

    def make(target, **options):
        if not isinstance(target, str):
            target = target.target
        made.append(Client(target, **options))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture
def caller(cluster):
    """caller(nginx): a Caller, closed before the cluster's end."""
    made = []

    def make(nginx):
        made.append(Caller(nginx))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture
def nobody_is_left():
    """After the end of the cluster: no child outlives it."""
    made = []
    yield made
    left = [p for one in made for p in processes(one.replica.target)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "children left"


@pytest.fixture
def supervised(nobody_is_left, cluster):
    def make(id="r1", **options):
        one = Supervised(cluster, id, **options)
        nobody_is_left.append(one)
        return one.start()
    return make


class Load:
    """A running llmgw/speak/load.py."""

    def __init__(self, cluster, job):
        self.proc = cluster.script(f"load-{len(cluster.procs)}",
                                   "speak/load.py", pipes=True)
        self.proc.popen.stdin.write(json.dumps(job) + "\n")
        self.proc.popen.stdin.flush()

    def _event(self, name):
        for line in self.proc.popen.stdout:
            event = json.loads(line)
            if event["event"] == name:
                return event
        raise AssertionError(f"the load ended early:\n{self.proc.text()}")

    def running(self):
        """Waits until every stream has its first token."""
        self._event("running")

    def stop(self):
        """Ends a load that runs until it is told to stop."""
        self.proc.popen.stdin.write("stop\n")
        self.proc.popen.stdin.flush()

    def results(self):
        results = [Result(**r) for r in self._event("done")["results"]]
        self.proc.told_to_end = True
        return results


@pytest.fixture
def load(cluster):
    """load(target, streams, ...): many streams, in a separate process."""
    def start(target, streams, **job):
        if not isinstance(target, str):
            target = target.target
        return Load(cluster, {"target": target, "streams": streams, **job})
    return start
