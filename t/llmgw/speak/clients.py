"""Real clients of OpenAI's API and Anthropic's: t/openai/drive.js, and curl."""

import json
import os
import subprocess

import pytest

from ..proc import place

NPM = place.BUILD / "npm"
DRIVER = place.ROOT / "t" / "openai" / "drive.js"
JS = ("openai", "ai", "langchain", "fetch")


def need_js():
    if not (NPM / "installed").exists():
        try:
            why = (NPM / "missing").read_text().strip()
        except OSError:
            why = "`make npm` did not run"
        pytest.skip(f"no JavaScript clients: {why}")


def run_js(jobs, timeout=60):
    """{key: result} of all jobs, which run at the same time in one process.

    A job is (key, client, base, api, stream, body[, secret[, retries]]);
    t/openai/drive.js says what they mean, and what a result holds.
    """
    need_js()
    names = ("key", "client", "base", "api", "stream", "body", "secret",
             "retries")
    lines = [json.dumps(dict(zip(names, job))) for job in jobs]
    out = subprocess.run(
        ["node", str(DRIVER)], input="\n".join(lines), text=True,
        capture_output=True, timeout=timeout * place.SLOW,
        env={**os.environ, "LLMGW_NPM": str(NPM)})
    got = [json.loads(line) for line in out.stdout.split("\n")
           if line]
    assert len(got) == len(jobs), out.stderr
    return {result["key"]: result for result in got}


def curl(url, body=None, *options, timeout=30):
    """(status, headers as curl prints them, body)"""
    argv = ["curl", "-sSN", "-i", "--max-time", str(timeout), *options]
    if body is not None:
        argv += ["-H", "content-type: application/json", "-d", "@-"]
    out = subprocess.run([*argv, url], capture_output=True,
                         input=json.dumps(body).encode() if body else b"")
    head, _, rest = out.stdout.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1]) if head else 0
    return status, head.decode(), rest, out.returncode
