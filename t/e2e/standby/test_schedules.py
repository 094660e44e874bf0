"""Whatever is killed, stopped, switched or deleted, and in whatever order:
never are two engines of a group active at one instant, and one soon is again.

LLMGW_SCHEDULES is the number of schedules (`make test-standby`: 200), and
LLMGW_SCHEDULES_FIRST the first of them; LLMGW_SEED draws others.
"""

import collections
import os
import subprocess

import pytest

from llmgw.proc.seed import rng
from llmgw.standby.group import Step
from llmgw.standby.schedule import APART, Schedule, Stage, Token, judge

SCHEDULES = int(os.environ.get("LLMGW_SCHEDULES", 20))
FIRST = int(os.environ.get("LLMGW_SCHEDULES_FIRST", 1))
APART_FIRST = FIRST + 1000
A_STAGE = 20            # schedules with the same processes
STEPS = 8
JOBS = [[f"prompt {i}", 10 + i * 7 % 30] for i in range(31)]

LIVES = [("WAKING", 5, 1.0), ("ACTIVE", 5, 1.1),
         ("WAKING", 6, 2.0), ("ACTIVE", 6, 2.1)]


def judged(lives, tokens):
    judge([Step(*row) for row in lives], [Token(*row) for row in tokens])


@pytest.mark.parametrize("lives, tokens", [
    (LIVES, [(2.2, 6, 18), (1.9, 5, 17)]),      # behind a greater epoch
    (LIVES, [(1.2, 5, 17), (2.05, 5, 17)]),     # after the next grant
    (LIVES, [(1.2, 5, 17), (1.3, 5, 18)]),      # of another process
    (LIVES[:2] + [("ACTIVE", 6, 0.9)], []),     # older, with more
    (LIVES[:2] + [("ACTIVE", 5, 2.1)], []),     # one epoch twice
    (LIVES + [("DEAD", 5, 2.5)], [])])          # it still lived
def test_the_judge_finds(lives, tokens):
    """And accepts a takeover."""
    judged(LIVES, [(1.2, 5, 17), (1.9, 5, 17), (2.2, 6, 18)])
    with pytest.raises(AssertionError):
        judged(lives, tokens)


def check_exact(results, expect):
    """Each has its text, or a beginning of it and an error."""
    codes = collections.Counter()
    for i, got in enumerate(results):
        codes[got.code] += 1
        text = expect(*JOBS[i % len(JOBS)])
        if got.code == "OK":
            got.check(text)
        else:
            assert got.tokens == text[:len(got.tokens)], got
    print(dict(codes))


def play(stage, number, serves):
    """One schedule, and the checks after it."""
    stage.rng = rng(f"schedule {number}")
    schedule = Schedule(stage, stage.rng)
    try:
        schedule.run(STEPS)
        stage.settle()
        stage.wait(lambda: serves(f"after {number}"), "an answer")
        stage.judge()
    except BaseException:
        print(f"schedule {number}: {schedule.done}")
        raise


def run(cluster, load, client, expect, numbers, is_apart):
    """All in one group of processes, under streams."""
    stage = Stage(cluster, rng(f"stage {numbers[0]}"), is_apart)
    stage.settle()
    streams = load(stage.nginx, JOBS, connections=2, starts_per_second=8,
                   until_told=True)
    c = client(stage.nginx)

    def serves(prompt):
        got = c.stream(prompt, 5, takes=5)      # as long as it may queue
        return got.code == "OK" and got.check(expect(prompt, 5))

    for number in numbers:
        play(stage, number, serves)
    streams.stop()
    check_exact(streams.results(), expect)
    epochs = {token.epoch for token in stage.judge()}
    print(f"{len(epochs)} epochs")
    assert len(epochs) > len(numbers) / 2


def stages(first, n):
    return [range(i, min(i + A_STAGE, first + n))
            for i in range(first, first + n, A_STAGE)]


def test_one_is_active_in_two_schedules(cluster, load, client, expect):
    run(cluster, load, client, expect, [1, 2], is_apart=False)


@pytest.mark.soak
@pytest.mark.first
@pytest.mark.parametrize("numbers", stages(FIRST, SCHEDULES), ids=str)
def test_one_is_active(cluster, load, client, expect, numbers):
    run(cluster, load, client, expect, numbers, is_apart=False)


def can_be_apart():
    return subprocess.run([*APART, "true"],
                          capture_output=True).returncode == 0


@pytest.mark.soak
@pytest.mark.skipif(not can_be_apart(), reason="no PID namespaces here")
@pytest.mark.parametrize("numbers", stages(
    APART_FIRST, max(SCHEDULES // 4, 1)), ids=str)
def test_one_is_active_in_sibling_pid_namespaces(cluster, load, client, expect,
                                                 numbers):
    run(cluster, load, client, expect, numbers, is_apart=True)
