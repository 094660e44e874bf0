#!/usr/bin/env python3
"""`make manifests`: packaging/kubernetes/, the chart without Helm.  What each
file says of itself is in HEADS."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from llmgw.kube import chart  # noqa: E402

WHERE = HERE.parents[1] / "packaging" / "kubernetes"

HEADS = {
    "llmgw": """\
# Two gateways, and two pods of vLLM: the chart packaging/helm/llmgw with its
# default values, written by `make manifests`.  docs/kubernetes.md says what to
# change; the Secret llmgw-keyring has to be there.
""",
    "standby": """\
# Two gateways, and two standby groups of the engine llama, each a pod: the
# chart packaging/helm/llmgw with t/chart/values/standby.yaml, written by
# `make manifests`.  docs/standby.md says why each line is as it is.  Change the
# image (yours, with the engine's plugin), the claim with the model, memory and
# processors; the Secret llmgw-keyring has to be there.
"""}


def text(name):
    values = None if name == "llmgw" else HERE / "values" / f"{name}.yaml"
    return HEADS[name] + chart.render(values)[0]


if __name__ == "__main__":
    for name in HEADS:
        (WHERE / f"{name}.yaml").write_text(text(name))
