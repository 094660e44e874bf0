"""What docs/standby.md and packaging/kubernetes show works as it stands there.
"""

import os
import re
import signal
import subprocess
import urllib.error
import urllib.request

import pytest
import yaml

from llmgw.fleet import supervised
from llmgw.kube.kubelet import keyring
from llmgw.pages.commands import Commands, split
from llmgw.proc import place
from llmgw.proc.wait import wait_for

PAGE = (place.ROOT / "docs" / "standby.md").read_text()
POD = place.ROOT / "packaging" / "kubernetes" / "standby.yaml"


def section(heading):
    """The code blocks below a heading."""
    text = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)


def active(nginx):
    """The replica that nginx routes to, and nothing else."""
    return wait_for(lambda: len(nginx.routable()) == 1 and nginx.routable(),
                    "an active engine")[0]


def stands_by(nginx, id):
    def warm():
        row = nginx.replicas().get(id)
        return row and row["group"] and row["group"]["state"] == "standby"
    wait_for(warm, f"{id} to stand by")


def engine_of(commands, id):
    """The process of an engine that its agent runs."""
    socket = str(commands.cluster.dir / f"{id}.sock")
    found = [p for p in supervised.processes("llmgw-replica")
             if supervised.cmdline(p)[0] == "llmgw-replica"
             and socket in " ".join(supervised.cmdline(p))]
    assert len(found) == 1, found
    return found[0]


def takes_over(commands, nginx, client, ids):
    """kill -9 of the active engine: the other serves, and the dead one is
    back as the next standby.  ids: of a and of b."""
    names = dict(zip(ids, "ab"))
    first = active(nginx)
    [second] = set(ids) - {first}
    stands_by(nginx, second)
    os.kill(engine_of(commands, names[first]), signal.SIGKILL)
    got = client(nginx).stream("Hello", 5)
    assert (got.code, got.replicas) == ("OK", [second])
    stands_by(nginx, first)


def cluster_knows(commands, agent, standby):
    """Whether that agent knows that this one stands by."""
    return re.search(rf"{standby} +standby", commands.run(
        f"llmgwctl -s /run/llmgw/{agent}.sock group"))


def test_quick_start(cluster, client):
    blocks = section("Quick start")
    shell = [split(code) for language, code in blocks if language == ""]
    services, engines, gateway, look = shell
    commands = Commands(cluster, {"/run/llmgw": str(cluster.dir),
                                  "/var/lib/llmgw": str(cluster.dir)},
                        "/srv/models/chat.gguf")
    for i, line in enumerate([*services, *gateway, engines[0]]):
        commands.start(f"agent-{i}", line)
    [conf] = [code for language, code in blocks if language == "nginx"]
    conf = re.search(r"{\n(.*)^}", commands.here(conf), re.M | re.S)[1]
    wait_for((cluster.dir / "members").exists, "the segment")
    nginx = cluster.nginx(conf)

    assert active(nginx) == "a"
    commands.start("agent-b", engines[1])
    stands_by(nginx, "b")
    wait_for(lambda: cluster_knows(commands, "a", "b"), "b to be known")
    said = [commands.run(line) for line in look]
    assert re.search(r"a +active.*\n.*b +standby", said[0])
    assert "chat" in said[1] and "committed" in said[2]
    wait_for(lambda: nginx.routable() == ["b"], "them to change places")
    takes_over(commands, nginx, client, ["a", "b"])


# --- Kubernetes

@pytest.fixture(scope="module")
def pod():
    [document] = [d for d in yaml.safe_load_all(POD.read_text())
                  if d["kind"] == "StatefulSet"]
    return document["spec"]["template"]["spec"]


def containers(pod):
    return {c["name"]: c for c in pod["containers"]}


def words(container):
    return [*container["command"], *container["args"]]


def parts(container):
    """The command line of each program of a container."""
    line = words(container)
    at = line.index("--") if "--" in line else len(line)
    return [part for part in (line[:at], line[at + 1:]) if part]


def help_of(program):
    return subprocess.run([place.binary(program), "--help"], text=True,
                          capture_output=True, check=True).stdout


def test_pod_has_options_that_exist(pod):
    for container in pod["containers"]:
        for program, *options in parts(container):
            known = set(re.findall(r"^  (--[a-z-]+)", help_of(program), re.M))
            used = {option.partition("=")[0] for option in options}
            assert used <= known, (program, used - known)


def test_pod_shares_what_the_lock_service_needs(pod):
    assert pod["shareProcessNamespace"] is True
    [user] = {c["securityContext"]["runAsUser"] for c in pod["containers"]}
    assert user > 0
    volumes = {v["name"] for v in pod["volumes"]}
    for name, container in containers(pod).items():
        mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
        assert set(mounts) <= volumes and mounts["run"] == "/run/llmgw"
        for path in re.findall(r"(?<=[=\s])/[\w./-]+", " ".join(
                words(container))):
            assert any(path.startswith(m) for m in mounts.values()), path


def test_engines_of_the_pod_differ_in_names_and_ports_only(pod):
    a, b = (containers(pod)[f"engine-{id}"] for id in "ab")
    for x, y in zip(words(a), words(b), strict=True):
        assert re.sub(r"\d+$|-a$|/a\.sock", "", x) \
            == re.sub(r"\d+$|-b$|/b\.sock", "", y)
    same = ("env", "resources", "volumeMounts", "image")
    assert [a[k] for k in same] == [b[k] for k in same]


def command_of(container):
    """Its command line, with the variables that a kubelet fills in."""
    text = " ".join(words(container))
    text = text.replace("$(POD_IP)", "127.0.0.1").replace("$(POD_NAME)", "p")
    assert "$(" not in text
    return text


def probe(container, kind, commands):
    """What a kubelet would find: whether a probe of this kind passes."""
    what = container[f"{kind}Probe"]
    if "exec" in what:
        return subprocess.run(
            ["/bin/sh", "-c", commands.here(" ".join(
                what["exec"]["command"]))], capture_output=True,
            env={**os.environ, **commands.env}).returncode == 0
    port = commands.port(str(what["httpGet"]["port"]))
    url = f"http://127.0.0.1:{port}{what['httpGet']['path']}"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except urllib.error.HTTPError as e:
        assert e.code == 503, url           # a path that exists
        return False
    except OSError:
        return False


def test_pod_takes_over(cluster, client, pod):
    keys = cluster.dir / "gossip.keys"
    keys.touch(0o600)
    keys.write_text(keyring())
    gateway = cluster.agent("gw", "gateway", cluster="llmgw", keyring=keys)
    commands = Commands(cluster, {
        "/run/llmgw": str(cluster.dir), "llmgw-gossip:7946": gateway.gossip,
        "/etc/llmgw/gossip/": f"{cluster.dir}/"}, "/models/chat.gguf")
    for name, container in containers(pod).items():
        commands.start(f"agent-{name}", command_of(container))
    nginx = cluster.nginx(pool="llmgw_queue 100 timeout=5s;")
    for name, container in containers(pod).items():
        for kind in ("startup", "liveness"):
            if f"{kind}Probe" in container:
                wait_for(lambda: probe(container, kind, commands),
                         f"{kind} of {name}")
    takes_over(commands, nginx, client, ["p-a", "p-b"])
    assert all(probe(c, "liveness", commands)
               for c in containers(pod).values())
