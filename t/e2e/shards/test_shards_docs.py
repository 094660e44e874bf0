"""What docs/shards.md shows works as it stands there, and what it names is
there."""

import re
import subprocess

import pytest

from llmgw.model import gguf, llama
from llmgw.pages.commands import Commands, split
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.shards.replica import LOAD_S
from llmgw.speak import sse

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

PAGE = (place.ROOT / "docs" / "shards.md").read_text()


def blocks(section, language=""):
    [text] = re.findall(rf"^## {section}\n(.*?)^## ", PAGE, re.M | re.S)
    return [code for of, code in
            re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
            if of == language]


def test_quick_start(cluster):
    cut, shards, orchestrator, look = blocks("Quick start")
    commands = Commands(cluster, {"/run/llmgw": str(cluster.dir),
                                  "/srv/slices": str(cluster.dir / "slices")},
                        "/srv/models/chat.gguf")
    gguf.write(cluster.dir / "chat.gguf", layers=8)
    said = [commands.run(line) for line in split(cut)]
    assert "right, layers 0-3 of tiny-random" in said[1]

    for i, line in enumerate(split(shards) + split(orchestrator)):
        commands.start(f"agent-{i}", line + threads(line))
    [conf] = blocks("Quick start", "nginx")
    conf = re.search(r"{\n(.*)^}", commands.here(conf), re.M | re.S)[1]
    wait_for((cluster.dir / "members").exists, "the segment")
    nginx = cluster.nginx(conf, openai=True)
    wait_for(lambda: nginx.routable() == ["o1"], "the orchestrator",
             takes=LOAD_S)
    got = sse.call(nginx.api, sse.CHAT, sse.chat(
        "hello", model="tiny-random", max_tokens=5))
    assert got.status == 200 and got.text[0], got

    def is_shown():
        shown = commands.run(*split(look))
        return "tiny-random" in shown and "s1" in shown and "s2" in shown
    wait_for(is_shown, "both shards to be shown")


@pytest.mark.soak
def test_certificate_that_it_makes_is_signed(tmp_path):
    [make] = blocks("Keys and TLS")
    subprocess.run(["sh", "-e", "-c", make], cwd=tmp_path, check=True,
                   capture_output=True, timeout=60)
    said = subprocess.run(
        ["openssl", "verify", "-CAfile", "ca.crt", "-verify_ip", "192.0.2.7",
         "s1.crt"], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert said.stdout == "s1.crt: OK\n", said


def threads(line):
    """Others run on this machine."""
    return " --threads 1" if "--shard" in line else ""


def help_of(program, *words):
    return subprocess.run([place.binary(program), *words, "--help"],
                          capture_output=True, text=True, timeout=20).stdout


def test_options_that_it_names_are_there():
    ours = {option for program in ("llmgw-replica", "llmgw-agent",
                                   "llmgw-slice")
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*",
                                     help_of(program))}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE))
    assert named <= ours, named - ours


def test_limits_that_it_names_are_those_of_the_code():
    code = (place.ROOT / "replica/shard/limits.h").read_text()
    table = PAGE.split("## Rules of the wire")[1]

    def limit(name):
        return eval(re.search(rf"#define {name}\s+(.*)", code)[1],
                    {"SHARD_CHUNK_BYTES": 1 << 20})
    MIB = 1 << 20
    for name, unit, words in (
            ("SHARD_WINDOW_BYTES", MIB, "| {} MiB a stream |"),
            ("SHARD_STEPS_MAX", 1, "| {} a session: `too_many_steps` |"),
            ("SHARD_ROWS_MAX", 1, "| {} rows; the model's width"),
            ("SHARD_TENSOR_BYTES", MIB, "| {} MiB: `tensor_too_large` |"),
            ("SHARD_IDLE_MS", 1000, "| {} s: `session_expired` |"),
            ("SHARD_SESSION_MS", 1000, "| {:,} s: `session_expired`;"),
            ("SHARD_SESSIONS_MAX", 1, "| {}, or `--shard-sessions`")):
        assert words.format(limit(name) // unit) in table, name
    reasons = set(re.findall(r'"(\w+)"', (
        place.ROOT / "replica/shard/reason.h").read_text()))
    told = set(re.findall(r"\| [^|]*`([a-z]+_[a-z_]+)`[^|]*\|$", table, re.M))
    assert told and told <= reasons, told - reasons
