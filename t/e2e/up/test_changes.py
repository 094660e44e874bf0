"""Engines come to a running gateway and go: by command, and by name."""

import os
import re
import subprocess

import pytest

from llmgw.fleet.launcher import Launcher
from llmgw.proc import place, preload
from llmgw.proc.wait import wait_for
from llmgw.speak import sse

HELD = 3


def is_ready(up, *ids):
    engines = up.engines()
    return sorted(engines) == sorted(ids) and all(
        e["ready"] for e in engines.values())


def id_of(engine):
    return engine.target.replace(":", "-")


def named(cluster, names, port):
    """A gateway before a name whose addresses a file lists."""
    return Launcher(cluster, f"dns:engines.example:{port}",
                    "--test-dns-period", "100ms", env={
        "LLMGW_NAMES": str(names),
        "LD_PRELOAD": preload.compiled("listed_names", cluster.dir)})


def test_engine_is_added_and_removed_when_its_stream_has_ended(cluster):
    one, two = cluster.engine("e1"), cluster.engine("e2")
    up = Launcher(cluster, one.url).started()
    assert up.ask("add", two.url) == (0, "")
    wait_for(lambda: is_ready(up, id_of(one), id_of(two)), "both", takes=6)
    code, text = up.ask("add", f"{two.url}/v1")     # the same one
    assert code == 1 and "is there already" in text
    assert up.ask("remove", one.url) == (0, "")
    wait_for(lambda: is_ready(up, id_of(two)), "the second alone", takes=6)

    cluster.hold(HELD)
    with sse.Connection(up.target) as connection:
        response = connection.request(sse.CHAT, sse.chat(
            "hi len=20;", stream=True))
        response.wait_events(HELD)
        assert up.ask("remove", id_of(two)) == (0, "")
        wait_for(lambda: up.engines()[id_of(two)]["state"]
                 == "draining: 1 streams run", "draining")
        cluster.let_go()
        got = sse.result_of(response)
        assert got.done == 1 and not got.error
    wait_for(lambda: up.engines() == {}, "no engine", takes=6)
    code, text = up.ask("remove", two.url)
    assert code == 1 and "there is no engine" in text


def test_status_is_for_people_and_programs(cluster):
    engine = cluster.engine()
    up = Launcher(cluster, engine.url).started()
    code, text = up.ask("status")
    assert code == 0 and "is serving" in text and engine.url in text
    found, = up.engines().values()
    assert found["engine"] == "vllm 0.11.0" and found["ready"]
    assert found["model"] == "mock-model" and found["context_tokens"] > 0
    up.end()
    code, text = up.ask("status")
    assert code == 1 and "no gateway runs in" in text


def test_name_brings_its_addresses_as_they_change(cluster):
    names, port = cluster.dir / "names", cluster.ports.take()
    engines = {}
    for i in (2, 3):
        engine = cluster.engine(f"e{i}", start=False)
        engine.target = f"127.0.0.{i}:{port}"
        engine.url = f"http://{engine.target}"
        engine.argv[engine.argv.index("--listen") + 1] = engine.target
        engines[i] = engine.start()
    names.write_text("127.0.0.2\n")
    up = named(cluster, names, port).started()
    assert sorted(up.engines()) == [id_of(engines[2])]

    names.write_text("127.0.0.2\n127.0.0.3\n")
    wait_for(lambda: is_ready(up, *map(id_of, engines.values())), "both",
             takes=6)

    names.rename(cluster.dir / "away")
    up.wait_said("its addresses stay as they were")
    assert is_ready(up, *map(id_of, engines.values()))

    names.write_text("127.0.0.3\n")
    wait_for(lambda: is_ready(up, id_of(engines[3])), "the second alone",
             takes=6)
    assert "127.0.0.2" in up.text().rpartition("gone")[0]


def test_address_that_goes_is_drained(cluster):
    names = cluster.dir / "names"
    engine = cluster.engine("e1")
    names.write_text("127.0.0.1\n")
    up = named(cluster, names, engine.port).started()
    cluster.hold(HELD)
    with sse.Connection(up.target) as connection:
        response = connection.request(sse.CHAT, sse.chat(
            "hi len=20;", stream=True))
        response.wait_events(HELD)
        names.write_text("127.0.0.9\n")
        wait_for(lambda: up.engines().get(id_of(engine), {}).get("state")
                 == "draining: 1 streams run", "draining", takes=4)
        cluster.let_go()
        got = sse.result_of(response)
        assert got.done == 1 and not got.error
    wait_for(lambda: id_of(engine) not in up.engines(), "its end", takes=6)


@pytest.mark.soak
def test_name_with_65_addresses_has_64_engines(cluster):
    """128 processes and more."""
    names = cluster.dir / "names"
    names.write_text("".join(f"127.0.1.{i}\n" for i in range(100, 165)))
    up = named(cluster, names, cluster.ports.take()).start()
    up.wait_said("more than 64 addresses: 64 are used", takes=10)
    wait_for(lambda: len(up.engines()) == 64, "64 engines", takes=20)
    assert "127.0.1.164" not in up.text()
    names.write_text("".join(f"127.0.1.{i}\n" for i in range(101, 165)))
    wait_for(lambda: "127.0.1.164" in up.text(), "the last address", takes=20)
    assert up.text().count("more than 64 addresses") == 1
    up.end(takes=30)


def test_log_that_has_grown_too_large_is_emptied(cluster):
    up = Launcher(cluster, "--demo").started()
    logs = [up.dir / f"sim-{i}-adapter.log" for i in (1, 2)]
    os.truncate(logs[0], 64 << 20)
    os.truncate(logs[1], (64 << 20) + 1)
    wait_for(lambda: logs[1].stat().st_size < 64 << 20, "an empty log",
             takes=4)
    assert logs[0].stat().st_size == 64 << 20


LOADS = f"load_module {place.MODULE};\n"


def load_module(conf, argv, printed, run, before=""):
    """As the printed command does, in an nginx.conf that begins so."""
    conf.write_text(f"{before}daemon off;\nuser root;\n"
                    f"pid {run}/nginx.pid;\n"
                    "events {}\nhttp {\naccess_log off;\n# here\n}\n")
    command = re.search(r"^    nginx -T.*?nginx\.conf$", printed, re.M | re.S)
    script = command[0].replace("/etc/nginx/nginx.conf", str(conf))
    nginx = " ".join(map(str, argv))
    subprocess.run(["sh", "-c", f'nginx() {{ {nginx} "$@"; }}\n{script}'],
                   check=True, timeout=20)


@pytest.mark.parametrize("loaded", (False, True))
def test_printed_command_loads_the_module_once(cluster, loaded):
    """Debian's package of the module has loaded it, by a file of its own."""
    own = cluster.dir / "50-mod-http-llmgw.conf"
    own.write_text(LOADS)
    up = Launcher(cluster, "http://gpu1:8000", "--print", cluster.dir / "etc")
    out = subprocess.run(up.argv, capture_output=True, text=True, timeout=20)
    conf = cluster.dir / "nginx.conf"
    argv = [place.NGINX, "-c", conf, "-e", cluster.dir / "error.log"]
    before = f"include {own};\n" if loaded else ""
    load_module(conf, argv, out.stdout, cluster.dir, before)
    assert conf.read_text().startswith(before or LOADS)
    assert conf.read_text().count("load_module") == (0 if loaded else 1)
    assert subprocess.run([*argv, "-t", "-q"]).returncode == 0


def test_printed_files_are_an_installation(cluster):
    """As they are, but for the directories of a machine."""
    engine = cluster.engine()
    etc, run = cluster.dir / "etc", cluster.dir / "run"
    run.mkdir()
    up = Launcher(cluster, engine.url, "--print", str(etc))
    out = subprocess.run(up.argv, capture_output=True, text=True, timeout=20)
    assert out.returncode == 0, out.stderr
    id = id_of(engine)
    assert f"systemctl enable --now llmgw-agent@{id}" in out.stdout
    for path in etc.iterdir():
        text = path.read_text()
        path.write_text(text.replace("/etc/llmgw", str(etc))
                        .replace("/run/llmgw", str(run)))
    command = (etc / f"{id}.env").read_text().partition("LLMGW_COMMAND=-- ")[2]
    assert command.split()[0] == "llmgw-replica"
    cluster.run("agent-gateway", [place.binary("llmgw-agent"), "-c",
                                  etc / "gateway.conf"])
    cluster.run("agent-engine", [
        place.binary("llmgw-agent"), "-c", etc / f"{id}.conf", "--",
        *[place.binary(w) if w == "llmgw-replica" else w
          for w in command.split()]])
    conf = cluster.dir / "nginx.conf"
    argv = [place.NGINX, "-c", conf, "-e", cluster.dir / "error.log"]
    load_module(conf, argv, out.stdout, run)
    conf.write_text(conf.read_text().replace(
        "# here", f"include {etc}/llmgw-nginx.conf;"))
    assert subprocess.run([*argv, "-t", "-q"]).returncode == 0
    cluster.run("nginx", argv)

    def answers():
        try:
            return sse.call(up.target, sse.CHAT,
                            sse.chat("hi len=5;")).status == 200
        except OSError:
            return False
    wait_for(answers, "an answer", takes=6)
