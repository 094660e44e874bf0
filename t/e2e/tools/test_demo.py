"""`make demo ARGS=--once`, and the same of the other demonstrations."""

import re
import subprocess

import pytest

from llmgw.model import llama
from llmgw.proc import place
from llmgw.proc.place import SLOW


def run(name):
    out = subprocess.run(
        [place.PYTHON, str(place.ROOT / "t" / name), "--once"],
        capture_output=True, text=True, timeout=60 * SLOW)
    assert out.returncode == 0, out.stdout + out.stderr
    assert "\033" not in out.stdout     # colours are for terminals
    return out


@pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)
def test_demo_of_a_model_runs_through():
    out = run("demo_llama.py")
    assert "[kill -9 r" in out.stdout and "the same" in out.stdout


@pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)
def test_demo_of_shards_runs_through():
    out = run("demo_shards.py")
    assert "[kill -9 s" in out.stdout and "the same" in out.stdout


def test_demo_runs_through():
    out = run("demo.py")
    assert "r1" in out.stdout and "DEAD" in out.stdout
    assert "[assistant] " in out.stdout


@pytest.mark.soak
def test_demo_of_a_standby_runs_through():
    out = run("demo_standby.py").stdout
    assert "[kill -9 a]" in out and "[group switch]" in out
    took = [int(ms) for ms in re.findall(r"^ +(\d+) ms  ", out, re.M)]
    assert len(took) == 5 and 0 <= took[0] <= took[1] <= took[2] <= took[3]
