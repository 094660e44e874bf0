"""The gate's own rules: what is red at once, what is run again, and what
becomes of it.

Each kind of fault is planted in a small test file, which pytest runs with the
fixtures and hooks of all tests.
"""

import datetime
import os
import pathlib
import random
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from gate import again, e2e, soak  # noqa: E402
from gate.tally import ROOT, Tally  # noqa: E402

# Its waits have a clock of their own, and a machine that keeps nothing from
# them: how busy the real one is changes no verdict.
HEAD = """\
import pytest, subprocess, time
from llmgw.proc import wait
from llmgw.proc.wait import TooLate, wait_for

class Clock:
    now = 0.0
    total = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def lost(self):
        return 0.0

wait.time = wait.contention = clock = Clock()

@pytest.fixture
def leak():
    yield
    assert not "a count that is not zero"

def come(after):
    end = clock.now + after
    wait_for(lambda: clock.now >= end, "a fact")

"""

PLANTED = {
    "passed": "def test(): come(0)",
    "skipped": "def test(): pytest.skip('not here')",
    # too late, or a hang that ends by itself
    "expired": "def test(): come(30)",
    "expired in a fixture":
        "@pytest.fixture\ndef late(): come(30)\ndef test(late): pass",
    "expired by the hang of a process":
        "def test(): subprocess.run(['sleep', '9'], timeout=0.1)",
    "expired by a hang": "def test(): come(3)",
    "expired by a hang of what sets it up":
        "@pytest.fixture\ndef slow(): come(3)\ndef test(slow): pass",
    # what is wrong whenever it comes
    "failed": "def test(): assert ['a', 'c'] == ['a', 'b', 'c']",
    "failed by a leak": "def test(leak): come(0)",
    "failed by a leak behind a wait": "def test(leak): come(30)",
    "failed by a leak behind a hang": "def test(leak): come(3)",
}


def outside():
    """The environment without what the gate tells its own runs."""
    return {k: v for k, v in os.environ.items()
            if not k.startswith(("LLMGW_SHARE", "LLMGW_ORDER"))}


def pytest_run(tmp_path, text, *words, **env):
    """The cases of a test file with this text."""
    path, report = tmp_path / "test_planted.py", tmp_path / "junit.xml"
    path.write_text(HEAD + text + "\n")
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p",
         "conftest", str(path), f"--junit-xml={report}", *words],
        cwd=tmp_path, capture_output=True, timeout=60,
        env={**outside(), "PYTHONPATH": str(ROOT / "t"), **env})
    return e2e.read(report)


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_fault_is_called(tmp_path, kind):
    cases = pytest_run(tmp_path, PLANTED[kind])
    assert [c.outcome for c in cases] == [kind.split()[0]]
    assert cases[0].id.endswith("test_planted.py::test")


def test_a_test_over_its_own_limit_is_not_run_again(tmp_path):
    cases = pytest_run(tmp_path, "def test(): time.sleep(9)",
                       LLMGW_TEST_LIMIT="1")
    assert [c.outcome for c in cases] == ["failed"]


def test_a_run_that_dies_is_no_green_one(tmp_path):
    assert pytest_run(tmp_path, "import os\ndef test(): os._exit(0)") is None


def test_one_slow_test_does_not_accuse_the_next(tmp_path):
    cases = pytest_run(tmp_path, "def test_a(): come(3)\n"
                                 "def test_b(): come(0)")
    assert [c.outcome for c in cases] == ["expired", "passed"]


def test_sharers_run_each_test_once_in_any_order(tmp_path):
    text = "@pytest.mark.parametrize('i', range(50))\ndef test(i): pass"

    def ids(order):
        (tmp_path / "number").write_text("")
        return [c.id for c in pytest_run(
            tmp_path, text, LLMGW_SHARE=str(tmp_path / "number"),
            LLMGW_ORDER=order)]
    plain, drawn, same, other = ids(""), ids("a"), ids("a"), ids("b")
    assert sorted(plain) == sorted(drawn) == sorted(other)
    assert drawn == same and len({*map(tuple, (plain, drawn, other))}) == 3


def test_none_begins_when_the_time_of_the_sharers_is_over(tmp_path):
    (tmp_path / "number").write_text("")
    cases = pytest_run(tmp_path, "def test_a(): pass\ndef test_b(): pass",
                       LLMGW_SHARE=str(tmp_path / "number"),
                       LLMGW_SHARE_SECONDS="0")
    assert cases == []


class Expired:
    def __init__(self, id):
        self.id = id


@pytest.fixture
def rerun(tmp_path, monkeypatch, capsys):
    """rerun(ids, ...): what again() makes of them; each answer is that of one
    run."""
    path = tmp_path / "unstable.tsv"
    path.write_text("test\tcommit\tseed\tfirst seen\tcause\n")
    monkeypatch.setattr(again, "UNSTABLE", path)

    def run(ids, *answers):
        asked, tally = list(answers), Tally()
        monkeypatch.setattr(again, "one", lambda *_: asked.pop(0))
        again.again(tally, "release", [Expired(i) for i in ids], "7")
        assert asked == []
        return tally.passed, tally.failed, capsys.readouterr().out
    return run


def test_three_passes_make_a_test_unstable(rerun):
    before = datetime.date.today().isoformat()
    passed, failed, _ = rerun(["t::a"], True, True, True)
    assert (passed, failed) == (1, 0)
    (test, _, seed, first, cause), = again.lines()
    assert (test, seed, cause) == ("t::a", "7", "-")
    assert before <= first <= datetime.date.today().isoformat()


def test_one_failure_of_three_is_red(rerun):
    passed, failed, out = rerun(["t::a"], True, False, True)
    assert (passed, failed) == (0, 1)
    assert "failed 1 times of 3" in out and again.lines() == []


def test_an_unstable_test_is_not_run_again(rerun):
    rerun(["t::a"], True, True, True)
    passed, failed, out = rerun(["t::a"])
    assert (passed, failed) == (0, 1)
    assert "already" in out and len(again.lines()) == 1


def test_many_expired_waits_are_no_accident(rerun):
    ids = [f"t::{i}" for i in range(again.MOST + 1)]
    passed, failed, _ = rerun(ids, *[True] * again.MOST * again.TIMES)
    assert (passed, failed) == (again.MOST, 1)


def test_a_flake_of_30_percent_is_found(rerun):
    """A wait that expires in 30 runs of 100: red or written down, each time
    that the gate meets it."""
    chance = random.Random(3)
    for i in range(200):
        answers = [chance.random() > 0.3 for _ in range(again.TIMES)]
        passed, failed, _ = rerun([f"t::{i}"], *answers)
        known = f"t::{i}" in {line[0] for line in again.lines()}
        assert (passed, failed, known) == ((1, 0, True) if all(answers)
                                           else (0, 1, False))


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """since(slice, paths): the slices that are out of date when this one was
    green, and these files have changed."""
    path = tmp_path / "soak.tsv"
    monkeypatch.setattr(soak, "SOAK", path)

    def since(paths, *green):
        path.write_text("the heading\n" + "".join(
            f"{name}\tabc1234\t2026-01-01\t9\t100\t1\n" for name in green))
        monkeypatch.setattr(soak, "git", lambda *_: "\n".join(paths))
        return soak.changed()
    return since


def test_slices_of_changed_rooms_are_out_of_date(repository):
    every = list(soak.SLICES)
    assert repository(["README.md"], *every) == []
    assert repository(["agent/swim/probe.c"], *every) == ["agents"]
    assert repository(["t/e2e/openai/test_front.py"], *every) == ["openai"]
    assert "policies" in repository(
        ["t/e2e/openai/test_front_resume.py"], *every)
    assert repository(["common/log.c"], *every) == every


def test_a_slice_that_was_never_green_is_out_of_date(repository):
    assert repository([]) == list(soak.SLICES)


def test_without_a_repository_every_slice_is_out_of_date(repository,
                                                         monkeypatch):
    repository([], *soak.SLICES)
    monkeypatch.setattr(soak, "git", lambda *_: None)
    assert soak.changed() == list(soak.SLICES)
