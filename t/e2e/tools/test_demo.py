"""`make demo ARGS=--once`."""

import subprocess

from llmgw import place
from llmgw.place import SLOW


def test_demo_runs_through():
    out = subprocess.run(
        [place.PYTHON, str(place.ROOT / "t" / "demo.py"), "--once"],
        capture_output=True, text=True, timeout=60 * SLOW)
    assert out.returncode == 0, out.stdout + out.stderr
    assert "\033" not in out.stdout     # colours are for terminals
    assert "r1" in out.stdout and "DEAD" in out.stdout
