"""`make test-image`: the OCI images, made twice and run, without a daemon.

A container has namespaces of its own, the image's user, a root file system that
cannot be written, and no network but loopback.
"""

import json
import os
import shutil
import signal
import subprocess

import pytest

from llmgw.kube.oci import Layout, Run
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.speak import sse

BUILT = place.BUILD / "image"
REPO = place.BUILD / "repo"
LIMIT_MB = {"llmgw-gateway": 60, "llmgw-replica": 40}

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("umoci")
    or not all((BUILT / name).exists() for name in LIMIT_MB),
    reason="make image, as root")


@pytest.fixture(scope="module", params=LIMIT_MB)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    made = {}
    for name in LIMIT_MB:
        made[name] = tmp_path_factory.mktemp(name)
        made[name].chmod(0o755)
        Layout(BUILT / name).unpack(made[name])
    return made


# --- what they are

def test_image_is_small(name):
    megabytes = Layout(BUILT / name).bytes() / 1e6
    print(f"{name}: {megabytes:.1f} MB compressed")
    assert megabytes < LIMIT_MB[name]


def test_two_builds_have_one_digest(name, tmp_path):
    subprocess.run([place.PYTHON, "build-aux/image.py",
                    name.removeprefix("llmgw-"), REPO, tmp_path],
                   cwd=place.ROOT, check=True)
    assert Layout(tmp_path / name).digest == Layout(BUILT / name).digest
    for suffix in ("packages", "spdx.json"):
        assert (tmp_path / f"{name}.{suffix}").read_bytes() \
            == (BUILT / f"{name}.{suffix}").read_bytes()


def test_image_says_what_it_is(name):
    config = Layout(BUILT / name).config["config"]
    labels = config["Labels"]
    version = (place.ROOT / "VERSION").read_text().strip()
    assert labels["org.opencontainers.image.title"] == name
    assert labels["org.opencontainers.image.version"] == version
    assert config["User"] == "65532:65532"
    assert all(int(port.partition("/")[0]) > 1024
               for port in config["ExposedPorts"])


def test_sbom_has_each_package(name):
    listed = {line.split()[0]: line.split()[1] for line in
              (BUILT / f"{name}.packages").read_text().splitlines()}
    sbom = json.loads((BUILT / f"{name}.spdx.json").read_text())
    assert {p["name"]: p["versionInfo"] for p in sbom["packages"]} == listed
    assert {"libc6", "libssl3", "ca-certificates", "llmgw-agent",
            "llmgw-replica", "llmgw-tools"} <= set(listed)


def test_nothing_in_it_is_more_than_it_needs(roots, name):
    files = [p for p in roots[name].rglob("*")
             if p.is_file() and not p.is_symlink()]
    programs = {p.name for p in files if p.parent.name in ("bin", "sbin")}
    assert {p for p in programs if not p.startswith("llmgw")} == (
        {"nginx", "dumb-init"} if name == "llmgw-gateway" else set())
    assert not [p for p in files if p.stat().st_mode & 0o6000]
    assert not [p for p in files if p.stat().st_mode & 0o022]
    listed = {line.split()[0] for line in
              (BUILT / f"{name}.packages").read_text().splitlines()}
    assert listed == {p.parent.name for p in files if p.name == "copyright"}


# --- what they do

def asked(container, path, body=None):
    """(status, body) of the gateway in it."""
    more = ["-d", json.dumps(body), "-H", "content-type: application/json"] \
        if body else []
    out = subprocess.run(container.beside(
        "curl", "-sS", "-w", "\n%{http_code}", *more,
        f"http://127.0.0.1:8080{path}"), capture_output=True, text=True,
        timeout=20)
    text, _, status = out.stdout.rpartition("\n")
    return int(status or 0), text


@pytest.fixture
def gateway(cluster, roots):
    """A gateway before three simulated engines, as `docker run` starts it."""
    layout = Layout(BUILT / "llmgw-gateway")
    run = Run(cluster, "gateway", layout, roots["llmgw-gateway"],
              layout.command(["--demo", "--listen", "127.0.0.1:8080"]))
    wait_for(lambda: "Ready." in run.proc.text() or not run.proc.alive(),
             "the gateway", takes=10)
    assert run.proc.alive(), run.proc.text()
    return run


def chat(tokens, **more):
    return sse.chat("hi", model="sim", max_tokens=tokens, **more)


def end(container, sig):
    container.proc.told_to_end = True
    os.kill(container.main_pid(), sig)


def test_first_answer(gateway):
    status, text = asked(gateway, sse.CHAT, chat(3))
    assert status == 200 and json.loads(text)["choices"]
    with open(f"/proc/{gateway.main_pid()}/status") as lines:
        told = dict(line.rstrip().split(":\t", 1) for line in lines)
    assert set(told["Uid"].split()) == {"65532"}
    assert told["NSpid"].split()[1:] == ["1"]
    with open(f"/proc/{gateway.main_pid()}/mounts") as mounts:
        options = {m.split()[1]: m.split()[3].split(",") for m in mounts}
    assert "ro" in options["/"] and "rw" in options["/run"]
    assert int(told["CapEff"], 16) == 0
    end(gateway, signal.SIGTERM)
    assert gateway.proc.wait(takes=10) == 0
    said = gateway.proc.text()
    assert "start worker process" in said       # of nginx,
    assert "llmgw-agent gateway: " in said      # and of the others


@pytest.mark.parametrize("sig", (signal.SIGTERM, signal.SIGQUIT))
def test_signal_lets_streams_finish(gateway, sig):
    stream = subprocess.Popen(gateway.beside(
        "curl", "-sSN", "-H", "content-type: application/json",
        "-d", json.dumps(chat(100, stream=True)),
        f"http://127.0.0.1:8080{sse.CHAT}"), stdout=subprocess.PIPE, text=True)
    while '"content"' not in stream.stdout.readline():
        assert stream.poll() is None
    end(gateway, sig)
    wait_for(lambda: "Ending: " in gateway.proc.text(), "it to be told")
    assert stream.poll() is None
    rest = stream.communicate(timeout=20)[0]
    assert rest.rstrip().endswith("data: [DONE]") and "error" not in rest
    assert gateway.proc.wait(takes=10) == 0


def test_adapter_and_agent_of_a_pod(cluster, roots):
    layout = Layout(BUILT / "llmgw-replica")
    run = Run(cluster, "replica", layout, roots["llmgw-replica"], [
        "llmgw-agent", "--id=r1", "--role=replica", "--cluster=pod",
        "--gossip=127.0.0.1:7946", "--grpc=127.0.0.1:9000",
        "--control=/run/agent.sock", "--", "llmgw-replica", "--id=r1",
        "--listen=127.0.0.1:9000", "--agent=/run/agent.sock", "--engine=sim"])

    def members():
        return run.enter("llmgwctl", "-s", "/run/agent.sock", "members").stdout
    wait_for(lambda: "READY" in members(), "the replica", takes=6)
    end(run, signal.SIGTERM)
    assert run.proc.wait(takes=6) == 0
