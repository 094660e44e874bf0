"""The Helm chart, rendered by t/chart/render.go, and Kubernetes' schemas."""

import json
import subprocess

import pytest
import yaml

from ..proc import place

CHART = place.ROOT / "packaging" / "helm" / "llmgw"
HERE = place.ROOT / "t" / "chart"
TOOLS = place.BUILD / "chart"
NOTES = "--- # NOTES.txt"
RENDER = TOOLS / "render"


class Refused(Exception):
    """The chart's own words."""


def render(values=None, chart=CHART, release="llmgw", namespace="default"):
    """(text of all objects, notes); values: a file."""
    if not RENDER.exists():
        pytest.skip("no build/chart/render: make chart-tools")
    out = subprocess.run(
        [RENDER, chart, release, namespace, *([values] if values else [])],
        capture_output=True, text=True)
    if out.returncode:
        raise Refused(out.stderr)
    text, _, notes = out.stdout.partition(NOTES)
    return text, notes


def objects(text):
    """Those that it holds, as they would be in JSON."""
    return [o for o in yaml.safe_load_all(text) if o]


def wrong(named):
    """What Kubernetes' schemas say of [(name, object)]: lines."""
    if not (TOOLS / "installed").exists():
        pytest.skip("no schemas of Kubernetes: make chart-tools")
    if (TOOLS / "missing").exists():
        pytest.skip((TOOLS / "missing").read_text())
    out = subprocess.run(
        ["node", HERE / "validate.mjs", TOOLS], capture_output=True,
        input=json.dumps(named), text=True)
    assert out.returncode == 0, out.stderr
    return out.stdout.split("\n")[:-1] if out.stdout.strip() else []
