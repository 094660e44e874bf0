"""What llmgwctl doctor says."""

import base64
import json
import os
import subprocess

from ..proc import place
from ..proc.wait import PATIENCE, wait_for

WORDS = ("ok", "unchecked", "warning", "wrong")


class Said:
    """lines: of each check, [(level, text, what to do)]."""

    def __init__(self, run):
        assert run.stderr == "", run.stderr
        self.status = run.returncode
        self.lines = {}
        answer = json.loads(run.stdout)
        for line in answer["lines"]:
            assert line["level"] in WORDS, line
            self.lines.setdefault(line["check"], []).append(
                (line["level"], line["text"], line["do"]))
        self.wrong, self.warnings = answer["wrong"], answer["warnings"]
        assert self.status == (1 if self.wrong else 7 if self.warnings else 0)

    def troubles(self):
        """All that is wrong or a warning: {(check, level)}"""
        return {(check, level) for check, lines in self.lines.items()
                for level, text, remedy in lines
                if level in ("wrong", "warning")}

    def found(self, check, level, text):
        """The one line of this check with that text; it says what to do."""
        lines = [one for one in self.lines[check] if text in one[1]]
        assert len(lines) == 1 and lines[0][0] == level, self.lines[check]
        assert (lines[0][2] is not None) == (level in ("wrong", "warning"))
        return lines[0]

    def ok(self, *checks):
        for check in checks:
            assert [one[0] for one in self.lines[check]] == ["ok"], \
                self.lines[check]


def configuration(nginx):
    """What nginx -T prints."""
    out = nginx.command("-T")
    assert out.returncode == 0, out.stderr
    return out.stdout


def ask(agent=None, nginx=None, *options, conf=None, ctl=None):
    """agent: None for none; nginx: with its configuration, or conf."""
    conf = configuration(nginx) if nginx and conf is None else conf or ""
    words = ["-s", agent.control] if agent else []
    return Said(subprocess.run(
        [ctl or place.binary("llmgwctl"), *words, "--json", "doctor",
         "--nginx-conf", "-", *map(str, options)], input=conf,
        capture_output=True, text=True, timeout=3 * PATIENCE))


def says(cluster, check, level, text, nginx=None, takes=2):
    """Waits until the gateway's doctor does."""
    def found():
        said = ask(cluster.gateway, nginx)
        return any(line[0] == level and text in line[1]
                   for line in said.lines[check]) and said
    return wait_for(found, f"{check}: {text}", takes, interval=0.1)


def keyring(cluster, name="gossip.keys"):
    """A file with a new key."""
    path = cluster.dir / name
    path.touch(mode=0o600)
    path.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
    return path
