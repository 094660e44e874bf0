"""The manual pages are well formed and have the options of --help."""

import re
import shutil
import subprocess

import pytest

from llmgw.model import llama
from llmgw.proc import place

PAGES = {
    "llmgw.1": [["llmgw", command] for command in (
        "up", "add", "remove", "status")],
    "llmgw-agent.8": [["llmgw-agent"]],
    "llmgwctl.1": [["llmgwctl"], ["llmgwctl", "drain"],
                   ["llmgwctl", "members"], ["llmgwctl", "status"],
                   ["llmgwctl", "rolling-update"], ["llmgwctl", "group"],
                   ["llmgwctl", "weights"], ["llmgwctl", "lock"],
                   ["llmgwctl", "shards"], ["llmgwctl", "certs"],
                   ["llmgwctl", "usage"], ["llmgwctl", "keys"],
                   ["llmgwctl", "doctor"]],
    "llmgw-lock.8": [["llmgw-lock"]],
    "llmgw-weights.8": [["llmgw-weights"]],
    "llmgw-replica.1": [["llmgw-replica"]],
    "llmgw-simreplica.1": [["llmgw-simreplica"]],
    "llmgw-slice.1": [["llmgw-slice"]],
    "llmgw-client.1": [["llmgw-client"], ["llmgw-client", "infer"],
                       ["llmgw-client", "openai"],
                       ["llmgw-client", "bench"]],
    "llmgw-sim.1": [["llmgw-sim", command] for command in (
        "run", "replay", "compare", "search", "explain", "observe",
        "calibrate", "convert")],
}

# It says only what it has beside the options of that one.
BESIDE = {"llmgw-simreplica.1": "llmgw-replica.1"}


def page(name):
    return place.ROOT / "docs" / "man" / name


def options_of_help(command):
    text = subprocess.run([place.binary(command[0]), *command[1:], "--help"],
                          capture_output=True, text=True, timeout=10).stdout
    heads = re.findall(r"^ +(-.*?)(?:  |$)", text, re.M)
    return {word for head in heads
            for word in re.findall(r"(?<!\w)--?[a-z][a-z-]*", head)}


def options_of_page(name):
    """The options that tag a paragraph."""
    tags = re.findall(r"^\.TP\n(\..*)$", page(name).read_text(), re.M)
    return {word.replace("\\", "") for tag in tags
            for word in re.findall(r"(?<!\w)(?:\\-)+[a-z][a-z-]*", tag)}


def commands_of_help(program):
    text = subprocess.run([place.binary(program), "--help"],
                          capture_output=True, text=True, timeout=10).stdout
    return set(re.findall(r"^  ([a-z][a-z-]*(?: [a-z]+)?)(?: [A-Z]+)*"
                          r"(?: \[options\])?  ", text, re.M))


def test_every_page_is_here():
    assert {p.name for p in page("x").parent.iterdir()} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_options_are_those_of_help(name):
    if name == "llmgw-slice.1" and not llama.is_built():
        pytest.skip(llama.MISSING)
    known = set().union(*map(options_of_help, PAGES[name]))
    assert len(known) >= 3
    shown = options_of_page(name)
    beside = options_of_page(BESIDE[name]) if name in BESIDE else set()
    assert shown <= known == shown | known & beside


@pytest.mark.parametrize("program", ("llmgwctl", "llmgw-sim"))
def test_commands_are_those_of_help(program):
    text = page(f"{program}.1").read_text()
    part = text[text.index(".SH COMMANDS"):]
    part = part[:part.index(".SH ", 1)]
    told = {(a or b) for a, b in re.findall(
        r'^\.TP\n\.B(?: ([a-z ]+)|I "([a-z -]+)" .*)$', part, re.M)}
    assert told == commands_of_help(program)


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not here")
@pytest.mark.parametrize("name", PAGES)
def test_groff_has_nothing_to_say(name):
    out = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-rLL=80n",
                          page(name)], capture_output=True, text=True)
    assert out.returncode == 0
    assert out.stderr == ""
    shown = re.sub(".\b", "", out.stdout)
    assert "NAME" in shown and "SEE ALSO" in shown
