"""Engines come to a running gateway and go: by command, and by name."""

import subprocess

from llmgw import place, preload, sse
from llmgw.launcher import Launcher
from llmgw.wait import wait_for

HELD = 3


def is_ready(up, *ids):
    engines = up.engines()
    return sorted(engines) == sorted(ids) and all(
        e["ready"] for e in engines.values())


def id_of(engine):
    return engine.target.replace(":", "-")


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
    up = Launcher(cluster, f"dns:engines.example:{port}",
                  "--test-dns-period", "100ms", env={
        "LLMGW_NAMES": str(names),
        "LD_PRELOAD": preload.compiled("listed_names", cluster.dir)})
    up.started()
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
    conf.write_text(
        f"load_module {place.MODULE};\ndaemon off;\nuser root;\n"
        f"pid {run}/nginx.pid;\nevents {{}}\nhttp {{\naccess_log off;\n"
        f"include {etc}/llmgw-nginx.conf;\n}}\n")
    argv = [place.NGINX, "-c", conf, "-e", cluster.dir / "error.log"]
    assert subprocess.run([*argv, "-t", "-q"]).returncode == 0
    cluster.run("nginx", argv)

    def answers():
        try:
            return sse.call(up.target, sse.CHAT,
                            sse.chat("hi len=5;")).status == 200
        except OSError:
            return False
    wait_for(answers, "an answer", takes=6)
