"""From the shell: llmgw-client openai."""

import json
import subprocess

import pytest

from llmgw.fleet.certs import Authority
from llmgw.proc import place
from llmgw.speak import sse


@pytest.fixture(scope="module")
def engine(shared):
    return shared.engine(kind="vllm")


def ask(engine, *words, url=None):
    return subprocess.run(
        [place.binary("llmgw-client"), "openai", "--url",
         url or f"{engine.url}/v1", "--model", "mock-model", *words],
        capture_output=True, text=True, timeout=20)


def test_answer_is_printed_whichever_way_it_is_asked_for(engine):
    right = sse.call(engine.target, sse.CHAT, sse.chat("shell len=12;"))
    for words in ([], ["--no-stream"]):
        out = ask(engine, *words, "shell len=12;")
        assert (out.stdout, out.stderr, out.returncode) == \
            (right.text[0] + "\n", "", 0)
    right = sse.call(engine.target, sse.TEXT,
                     sse.text("go len=9;", max_tokens=4))
    out = ask(engine, "--completions", "--max-tokens", "4",
              "go len=9;")
    assert out.stdout == right.text[0] + "\n" and out.returncode == 0
    assert out.stderr == "llmgw-client: finish_reason length\n"


@pytest.mark.soak
def test_system_message_and_temperature_are_sent(engine):
    ask(engine, "--system", "be brief", "--temperature", "0", "hi len=1;")
    body = json.loads(engine.events("request", sse.CHAT)[-1]["body"])
    assert body == {
        "model": "mock-model", "stream": True, "temperature": 0.0,
        "messages": [{"role": "system", "content": "be brief"},
                     {"role": "user", "content": "hi len=1;"}]}


@pytest.mark.soak
def test_objects_are_printed_one_a_line(engine):
    out = ask(engine, "--json", "hi len=3;")
    rows = [json.loads(line) for line in out.stdout.split("\n") if line]
    assert rows[-1]["usage"]["completion_tokens"] == 4
    assert rows[0]["choices"][0]["delta"]["role"] == "assistant"
    out = ask(engine, "--json", "--no-stream", "hi len=3;")
    assert json.loads(out.stdout)["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("fault, said", [
    ("error_at", "InternalServerError: as the test wanted"),
    ("close_at", "Transferred a partial file"),
    ("end_at", "the answer ended without finish_reason")])
def test_broken_stream_is_told(engine, fault, said):
    engine.faults(**{fault: 3})
    out = ask(engine, "broken len=9;")
    engine.faults(**{fault: None})
    assert out.returncode == 1 and out.stdout.endswith("\n")
    assert said in out.stderr


def test_a_key_over_tls(cluster):
    ours = Authority(cluster.dir, "ours")
    engine = cluster.engine(tls=ours.sign(), api_key="secret")
    key = cluster.dir / "key"
    key.write_text("secret\n")
    out = ask(engine, "--tls-ca", ours.file, "--api-key-file", key,
              "hi len=1;")
    assert (out.stderr, out.returncode) == ("", 0)
    out = ask(engine, "--tls-ca", ours.file, "hi len=1;")
    assert out.returncode == 1 and "HTTP 401" in out.stderr
    out = ask(engine, "--api-key-file", key, "hi len=1;")
    assert out.returncode == 1 and "certificate" in out.stderr


def test_a_ca_needs_a_url_with_tls(engine, tmp_path):
    out = ask(engine, "--tls-ca", tmp_path / "ca.crt", "hi")
    assert out.returncode == 2 and "begins with https://" in out.stderr


@pytest.mark.soak
def test_bad_command_lines_and_servers_are_told(engine):
    assert ask(engine).returncode == 2
    assert "the prompt is missing" in ask(engine).stderr
    assert "quote it" in ask(engine, "two", "words").stderr
    out = ask(engine, "--model", "other", "x")
    assert out.returncode == 1
    assert "HTTP 404, NotFoundError: The model `other`" in out.stderr
    out = ask(engine, "x", url="http://127.0.0.1:1/v1")
    assert out.returncode == 1 and "connect" in out.stderr
    out = ask(engine, "x", url="file:///etc/passwd")
    assert out.returncode == 1 and not out.stdout
