"""Programs, processes and members that are not what they should be."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from llmgw.pages import doctor
from llmgw.pages.doctor import says
from llmgw.proc import place
from llmgw.proc.preload import compiled
from llmgw.proc.wait import wait_for


def test_a_module_that_was_replaced_on_disk(cluster):
    cluster.agent("gw", "gateway")
    module = cluster.dir / "ngx_http_llmgw_module.so"
    shutil.copy(place.MODULE, module)
    nginx = cluster.nginx(start=False)
    nginx.conf.write_text(nginx.conf.read_text().replace(place.MODULE,
                                                         str(module)))
    cluster.launch(nginx)
    doctor.ask(cluster.gateway, nginx).ok("module")
    fresh = module.with_suffix(".new")
    shutil.copy(module, fresh)
    fresh.rename(module)
    line = doctor.ask(cluster.gateway, nginx).found(
        "module", "wrong", f"{module} is another file than the one that 1")
    assert "USR2" in line[2]


def test_programs_of_another_version(cluster):
    """llmgwctl's own is what the others are compared with."""
    nginx = cluster.fleet(1)
    version = (place.ROOT / "VERSION").read_text().strip().encode()
    other = version[:-1] + (b"8" if version[-1:] != b"8" else b"7")
    text = open(place.binary("llmgwctl"), "rb").read()
    assert text.count(b"\0" + version + b"\0") > 0
    ctl = cluster.dir / "llmgwctl"
    ctl.write_bytes(text.replace(b"\0" + version + b"\0",
                                 b"\0" + other + b"\0"))
    ctl.chmod(0o755)
    said = doctor.ask(cluster.gateway, nginx, ctl=str(ctl))
    for what in ("the agent", "nginx's module"):
        said.found("versions", "warning",
                   f"{what} is of version {version.decode()}, and llmgwctl of"
                   f" {other.decode()}")


def test_replicas_that_are_gone_or_stand_still(cluster):
    nginx = cluster.fleet(2)
    cluster.replicas["r1"].kill()
    says(cluster, "members", "wrong", 'replica "r1" is DOWN', nginx)
    cluster.replicas["r2"].proc.send(signal.SIGSTOP)
    wait_for(lambda: cluster.gateway.table()["r2"]["service"] == "STALLED",
             "r2 to be STALLED", takes=5)
    said = doctor.ask(cluster.gateway, nginx)
    cluster.replicas["r2"].proc.send(signal.SIGCONT)
    said.found("members", "wrong", 'replica "r2" is STALLED')
    said.found("replicas", "wrong", "no answer after 3 s")


def test_an_agent_that_is_gone_leaves_its_segment_stale(cluster):
    nginx = cluster.fleet(1)
    cluster.gateway.kill()
    said = doctor.ask(cluster.gateway, nginx)
    assert "start it" in said.found("agent", "wrong", "cannot reach")[2]
    assert said.lines["members"] == [
        ("unchecked", "the agent does not answer", None)]
    said = says(cluster, "segment", "wrong", "it is stale", nginx, takes=6)
    cluster.gateway.start()
    says(cluster, "segment", "ok", "it is fresh", nginx)


def test_nginx_that_does_not_run(cluster):
    nginx = cluster.fleet(1)
    conf = doctor.configuration(nginx)
    nginx.quit()
    nginx.proc.wait()
    said = doctor.ask(cluster.gateway, conf=conf)
    assert "start nginx" in said.found("gateway", "wrong", "/status")[2]
    assert said.lines["zone"][0][0] == "unchecked"
    assert said.lines["module"][0][0] == "unchecked"


@pytest.fixture(scope="module")
def shifted_clock(tmp_path_factory):
    return compiled("shifted_clock", tmp_path_factory.mktemp("clock"))


def ahead(cluster, agent, hours, library):
    file = cluster.dir / f"{agent.id}.hours"
    file.write_text(f"{hours}\n")
    agent.env = {"LLMGW_TEST_HOURS": str(file), "LD_PRELOAD": library}
    if place.FLAVOUR == "asan":
        agent.env["ASAN_OPTIONS"] = "verify_asan_link_order=0"
    return agent.start()


def test_clocks_that_are_apart(cluster, shifted_clock):
    cluster.agent("gw", "gateway")
    ahead(cluster, cluster.agent("r1", start=False), -1, shifted_clock)
    says(cluster, "clock", "wrong", 'the clock of "r1" is 3', takes=4)
    ahead(cluster, cluster.agent("r2", start=False), 72, shifted_clock)
    line = says(cluster, "clock", "wrong", "a day ahead").found(
        "clock", "wrong", f"the clock of {cluster.agents['r2'].gossip} is")
    assert "NTP" in line[2]


def test_a_state_directory_that_cannot_be_written(cluster, tiny):
    cluster.agent("gw", "gateway", state_dir=tiny)
    doctor.ask(cluster.gateway).ok("disk")
    with open(tiny / "filler", "wb") as f:
        f.truncate(0)
        left = os.statvfs(tiny)
        f.write(bytes(left.f_bavail * left.f_frsize))
    line = doctor.ask(cluster.gateway).found(
        "disk", "wrong", f"the disk of {tiny} has 0.0 % left")
    assert line[2] == "make room"


@pytest.fixture
def tiny(tmp_path):
    if os.getuid() != 0:
        pytest.skip("needs root to mount")
    made = tmp_path / "tiny"
    made.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "tiny",
                    made], check=True)
    yield made
    subprocess.run(["umount", "-l", made], check=True)


V1, V2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
MIB = 1 << 20

HOLDER = """
import os, sys, time
with open(sys.argv[1] + "/cgroup.procs", "w") as f: f.write(str(os.getpid()))
held = bytearray(os.urandom(1 << 20) * 256)
print("holds", flush=True)
time.sleep(600)
"""


@pytest.fixture
def group():
    """A control group of memory: (directory, file of the limit, of the use)."""
    root, limit, use = (V1, "memory.limit_in_bytes", "memory.usage_in_bytes") \
        if os.path.exists(V1 + "/memory.limit_in_bytes") \
        else (V2, "memory.max", "memory.current")
    made = f"{root}/llmgw-test-{os.getpid()}"
    try:
        os.mkdir(made)
    except OSError as e:
        pytest.skip(f"no control groups: {e}")
    if not os.path.exists(f"{made}/{limit}"):
        os.rmdir(made)
        pytest.skip("no control group of memory")
    yield made, limit, use
    wait_for(lambda: not open(f"{made}/cgroup.procs").read(), "it to be empty",
             takes=10)
    os.rmdir(made)


def test_a_control_group_with_little_memory(group, cluster):
    made, limit, use = group
    agent = cluster.agent("gw", "gateway")
    doctor.ask(agent).ok("memory")
    holder = cluster.run("holder", [sys.executable, "-c", HOLDER, made])
    wait_for(lambda: "holds" in holder.text(), "256 MiB to be held", takes=5)
    with open(f"{made}/{use}") as f:
        used = int(f.read())
    with open(f"{made}/{limit}", "w") as f:
        f.write(str(used + MIB))
    with open(f"{made}/cgroup.procs", "w") as f:
        f.write(str(agent.proc.pid))
    said = doctor.ask(agent)
    agent.kill()
    holder.kill()
    assert "MemoryMax=" in said.found("memory", "warning", "the agent has")[2]
