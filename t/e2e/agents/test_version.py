"""The version of a replica that its agent runs: `{version}` in the command."""

import os
import signal
import subprocess

import pytest

from llmgw.proc import place
from llmgw.proc.wait import wait_for


def test_version_is_put_into_the_command(supervised, tmp_path):
    seen = tmp_path / "env"
    one = supervised(env={"LLMGW_VERSION": "v7"}, command=[
        "sh", "-c", f'env > {seen}; exec "$@"', "sh",
        place.binary("llmgw-replica"), "--id", "r1", "--engine", "sim",
        "--model-version", "{version}", "--listen"])
    one.agent.argv += [one.replica.target, "--agent", one.control]
    one.agent.stop()
    one.agent.start()
    one.ready()
    assert one.agent.table()["r1"]["model_version"] == "v7"
    assert one.agent.table()["r1"]["restartable"] is True
    words = seen.read_text().splitlines()
    assert {"LLMGW_ID=r1", "LLMGW_VERSION=v7",
            f"LLMGW_GRPC={one.replica.target}"} <= set(words)


def test_version_that_was_ordered_is_above_the_environments(supervised,
                                                            tmp_path):
    (tmp_path / "r1.version").write_text("v9\n")
    one = supervised(env={"LLMGW_VERSION": "v7"}, model_version="{version}",
                     agent={"state_dir": tmp_path}).ready()
    assert one.agent.table()["r1"]["model_version"] == "v9"


def test_adopted_child_is_started_again_as_what_it_was(supervised):
    """Only the child itself knows that it is v2."""
    one = supervised(env={"LLMGW_VERSION": "v2"}, model_version="{version}")
    one.ready()
    pid = one.pid()
    one.agent.kill()
    one.agent.env = {"LLMGW_VERSION": "v1"}
    one.agent.start()
    wait_for(lambda: "adopted" in one.log(), "the adoption")
    os.kill(pid, signal.SIGKILL)
    one.pid(other_than=pid)
    wait_for(lambda: one.service() == "READY"
             and one.agent.table()["r1"]["model_version"] == "v2",
             "r1 as v2")


@pytest.mark.parametrize("env, kept, said", [
    (None, None, "set LLMGW_VERSION"),
    ("v 1", None, "v 1"),
    ("v1", "v 2\n", "kept in --state-dir"),
    ("v1", "no end of line", "not read"),
], ids=str)
def test_version_that_is_none_is_refused(tmp_path, env, kept, said):
    if kept:
        (tmp_path / "a.version").write_text(kept)
    environ = {k: v for k, v in os.environ.items() if k != "LLMGW_VERSION"}
    out = subprocess.run(
        [place.binary("llmgw-agent"), "--id", "a", "--role", "replica",
         "--gossip", "127.0.0.1:20000", "--state-dir", str(tmp_path), "--",
         "echo", "{version}"], capture_output=True, text=True, timeout=10,
        env={**environ, **({"LLMGW_VERSION": env} if env else {})})
    assert out.returncode == 2
    assert said in out.stderr and len(out.stderr.splitlines()) == 1
