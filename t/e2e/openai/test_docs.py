"""What docs/openai.md shows works as it stands there."""

import json
import os
import re
import subprocess

import pytest

from llmgw.proc import place
from llmgw.speak import clients, sse

pytestmark = pytest.mark.soak
PAGE = (place.ROOT / "docs" / "openai.md").read_text()


def blocks(language):
    """The code blocks of the page in this language."""
    return [code for of, code in
            re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)
            if of == language]


@pytest.fixture(scope="module")
def nginx(shared):
    return shared.engines_fleet(1, model="m")


def at(nginx, text):
    assert "127.0.0.1:8080" in text
    return text.replace("127.0.0.1:8080", nginx.api)


@pytest.fixture(scope="module")
def words(nginx):
    return sse.call(nginx.api, sse.CHAT, sse.chat("Hello", model="m")).text[0]


def test_curl(nginx, words):
    [line] = [b for b in blocks("") if b.startswith("curl ")]
    out = subprocess.run(["/bin/sh", "-c", at(nginx, line)], text=True,
                         capture_output=True, timeout=20 * place.SLOW)
    chunks = [json.loads(data) for data in
              re.findall(r"^data: ({.*})$", out.stdout, re.M)]
    assert "".join(c["choices"][0]["delta"].get("content", "")
                   for c in chunks) == words
    assert out.stdout.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("name", ["openai", "@langchain/openai", "ai"])
def test_sdk(nginx, words, tmp_path, name):
    clients.need_js()
    [code] = [b for b in blocks("js") if f'from "{name}"' in b]
    (tmp_path / "node_modules").symlink_to(clients.NPM / "node_modules")
    script = tmp_path / "example.mjs"
    script.write_text(at(nginx, code))
    out = subprocess.run(["node", script], capture_output=True, text=True,
                         timeout=30 * place.SLOW,
                         env={**os.environ, "OPENAI_API_KEY": ""})
    assert out.stdout == words, out.stderr


def test_messages_for_claude_code(nginx):
    """Its requests go to /v1/messages below the base URL, with a version."""
    [shown] = [b for b in blocks("") if "ANTHROPIC_BASE_URL" in b]
    base = at(nginx, re.search(r"ANTHROPIC_BASE_URL=(\S+)", shown)[1])
    body = {"model": re.search(r"ANTHROPIC_MODEL=(\S+)", shown)[1],
            "max_tokens": 5, "stream": True,
            "messages": [{"role": "user", "content": "Hello"}]}
    status, head, got, _ = clients.curl(
        f"{base}/v1/messages?beta=true", body, "-H",
        "anthropic-version: 2023-06-01", "-H", "authorization: Bearer none")
    assert status == 200 and "text/event-stream" in head
    assert b"event: message_start" in got and b"event: message_stop" in got


def test_a_key_for_all(cluster):
    [conf] = [b for b in blocks("nginx") if "$allowed" in b]
    keys = re.search(r"map .*?\n}", conf, re.S)[0]
    check = re.search(r"if .*", conf)[0]
    nginx = cluster.fleet(1, nginx={"http": keys, "openai": check})
    url = f"http://{nginx.api}/v1/chat/completions"
    body = sse.chat("Hello", max_tokens=2)
    status, _, got, _ = clients.curl(url, body)
    assert status == 401
    assert json.loads(got)["error"]["code"] == "invalid_api_key"
    status, _, _, _ = clients.curl(url, body, "-H",
                                   "authorization: Bearer sk-one")
    assert status == 200
