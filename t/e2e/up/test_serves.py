"""`llmgw up`: one command, and engines answer behind one address."""

import json
import os
import re
import subprocess

import pytest

from llmgw.fleet.launcher import Launcher, curl_of
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.speak import clients, sse


def test_curl_line_it_prints_gets_tokens(cluster):
    engine = cluster.engine(max_context=4096, max_running=7)
    up = Launcher(cluster, engine.url).started()
    text = up.text()
    assert "ready: vllm 0.11.0, model mock-model, context 4096 tokens" in text
    said = subprocess.run(curl_of(text), shell=True, capture_output=True,
                          text=True, timeout=20)
    assert said.stdout.startswith("data: {"), said
    assert said.stdout.endswith("data: [DONE]\n\n")
    assert f"{up.base}/dashboard" in text
    status, _, page, _ = clients.curl(f"{up.base}/dashboard")
    assert status == 200 and b"<html" in page
    for path in ("/status", "/metrics", "/ready"):
        assert clients.curl(up.base + path)[0] == 200
    assert up.end() == 0


def test_openai_client_is_served(cluster):
    up = Launcher(cluster, cluster.engine().url).started()
    got = clients.run_js([("one", "openai", f"{up.base}/v1", "chat", True,
                           sse.chat("hi len=5;"))])
    assert got["one"]["finish_reason"] == ["stop"]


@pytest.mark.parametrize("kind, named", (
    ("sglang", "ready: sglang 0.5.4, model mock-model"),
    ("llamacpp", "ready: llamacpp"), ("openai", "ready: openai")))
def test_kind_of_engine_is_found(cluster, kind, named):
    up = Launcher(cluster, cluster.engine(kind=kind).url).started()
    assert named in up.text()
    got = sse.call(up.target, sse.CHAT, sse.chat("hi len=5;", stream=True))
    assert got.done and not got.error


def test_demo_has_three_engines(cluster):
    up = Launcher(cluster, "--demo").started()
    wait_for(lambda: all(e["ready"] for e in up.engines().values()),
             "all engines")
    assert sorted(up.engines()) == ["sim-1", "sim-2", "sim-3"]
    got = sse.call(up.target, sse.CHAT,
                   sse.chat("hi", "sim", stream=True, max_tokens=5))
    assert got.done and not got.error


def test_user_without_rights_has_a_gateway(cluster):
    cluster.dir.chmod(0o777)
    up = Launcher(cluster, cluster.engine().url, prefix=(
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
        env={"HOME": "/nonexistent"}).started()
    assert sse.call(up.target, sse.CHAT, sse.chat("hi len=5;")).status == 200
    keyring = up.dir / "keyring"
    assert keyring.stat().st_mode & 0o777 == 0o600
    assert keyring.stat().st_uid == 65534
    assert up.end() == 0


def test_two_gateways_do_not_meet(cluster):
    ups = [Launcher(cluster, cluster.engine(f"e{i}").url, name=f"up{i}")
           for i in (1, 2)]
    for up in ups:
        up.start()
    for up in ups:
        up.wait_said("Ready.", takes=6)
    assert [len(up.engines()) for up in ups] == [1, 1]

    def replicas(up):
        status = json.loads(clients.curl(f"{up.base}/status")[2])
        return len(status["pools"][0]["replicas"])
    # Another worker than that which is ready may answer, and look later.
    wait_for(lambda: [replicas(up) for up in ups] == [1, 1], "one engine each")


def test_engine_that_comes_later_is_waited_for(cluster):
    engine = cluster.engine(start=False)
    up = Launcher(cluster, engine.url).start()
    up.wait_said("waiting: nothing listens there yet", takes=4)
    assert "Ready." not in up.text()
    wait_for(lambda: clients.curl(f"{up.base}/ready")[0] == 503, "nginx",
             takes=2)
    engine.start()
    up.wait_said("Ready.", takes=6)


def test_engine_that_loads_is_told_so(cluster):
    engine = cluster.engine(kind="llamacpp", faults='{"health": 503}')
    up = Launcher(cluster, engine.url).start()
    up.wait_said("it is there, and loads its model", takes=4)
    engine.faults(health=None)
    up.wait_said("Ready.", takes=6)


def test_engine_that_wants_a_key_is_told_and_gets_it(cluster):
    engine = cluster.engine(api_key="sesame")
    up = Launcher(cluster, engine.url).start()
    up.wait_said("it wants a key: start again with --engine-key-file", takes=4)
    assert "Ready." not in up.text()
    up.end()

    key = cluster.dir / "engine.key"
    key.write_text("sesame\n")
    key.chmod(0o600)
    up = Launcher(cluster, engine.url, "--engine-key-file", str(key),
                  name="again").started()
    assert sse.call(up.target, sse.CHAT, sse.chat("hi len=5;")).status == 200

    key.write_text("simsala\n")
    up.end()
    up.start()
    up.wait_said("it refuses the key of --engine-key-file", takes=4)


def test_other_hosts_need_the_key_that_it_shows_once(cluster):
    up = Launcher(cluster, "--demo", listen="0.0.0.0").started()
    key, = re.findall(r"^    (sk-llmgw-\S+)$", up.text(), re.M)
    ask = sse.CHAT, sse.chat("hi", "sim", max_tokens=2)
    assert sse.call(up.target, *ask).status == 401
    header = {"authorization": f"Bearer {key}"}
    assert sse.call(up.target, *ask, headers=header).status == 200
    assert key not in (up.dir / "keys").read_text()
    up.end()

    before = len(up.text())
    up.started()
    assert "sk-llmgw-" not in up.text()[before:]
    wait_for(lambda: clients.curl(f"{up.base}/ready")[0] == 200, "ready")
    assert sse.call(up.target, *ask, headers=header).status == 200
    up.end()

    (up.dir / "keys").unlink()
    up.argv.append("--open")
    up.start()
    wait_for(lambda: clients.curl(f"{up.base}/ready")[0] == 200, "ready",
             takes=6)
    assert sse.call(up.target, *ask).status == 200


def test_without_a_home_a_directory_is_asked_for(cluster):
    out = subprocess.run(
        [place.binary("llmgw"), "up", "--demo", "--module", place.MODULE],
        preexec_fn=lambda: os.setuid(65534), capture_output=True, text=True,
        env={"PATH": os.environ["PATH"]}, timeout=20)
    assert out.returncode == 1 and "give one with --dir" in out.stderr


@pytest.mark.parametrize("words, said", (
    ((), "give the URL of an engine"),
    (("ftp://gpu1",), "not http:// or https://"),
    (("dns:gpu",), "not like dns:NAME:PORT"),
    (("dns:gpu:http",), "not like dns:NAME:PORT"),
    (("exec:",), "a command is missing behind exec:"),
    (("exec:vllm serve m",), "write {port} where the command says"),
    (("http://u:p@gpu1:80",), "is not part of it"),
    (("--demo", "http://gpu1"), "leave the URLs out"),
    (("--demo", "--open", "--keys", "/x"), "give one of them"),
    (("--demo", "--keys", "/nowhere"), "No such file"),
    (("--demo", "--engine-key-file", "/nowhere"), "No such file"),
    (("--demo", "--module", "/nowhere"), "--module: \"/nowhere\" is not"),
    (("--demo", "--nginx", "/nowhere"), "--nginx: \"/nowhere\" is not"),
    (("--demo", "--drain-timeout", "1ms"), "drain-timeout"),
))
def test_what_is_wrong_is_one_line(cluster, words, said):
    up = Launcher(cluster)
    out = subprocess.run(
        [place.binary("llmgw"), "up", "--module", place.MODULE, "--listen",
         up.target, "--dir", str(up.dir), *words], capture_output=True,
        text=True, timeout=20)
    assert out.returncode in (1, 2)
    assert said in out.stderr and out.stderr.count("\n") == 1
    assert out.stdout == ""


def test_port_in_use_is_told_before_anything_starts(cluster):
    first = Launcher(cluster, "--demo").started()
    second = Launcher(cluster, "--demo", name="second")
    second.argv[second.argv.index("--listen") + 1] = first.target
    out = subprocess.run(second.argv, capture_output=True, text=True)
    assert out.returncode == 1
    assert f"{first.target} is in use" in out.stderr

    third = Launcher(cluster, "--demo")         # the first one's directory
    out = subprocess.run(third.argv, capture_output=True, text=True)
    assert out.returncode == 1 and "llmgw add URL" in out.stderr


def test_module_that_nginx_refuses_is_told(cluster):
    cluster.allowed.append(r"\[emerg\] .* dlopen")
    other = cluster.dir / "other.so"
    other.write_text("no module")
    up = Launcher(cluster, "--demo")
    up.argv[up.argv.index("--module") + 1] = str(other)
    out = subprocess.run(up.argv, capture_output=True, text=True)
    assert out.returncode == 1
    assert "nginx refuses its configuration" in out.stderr
