"""`llmgw-replica --engine-command` starts its engine, watches and ends it."""

import os
import signal
import stat

import pytest

from llmgw.engine import budget
from llmgw.fleet.launched import Launched, lives
from llmgw.proc import preload
from llmgw.proc.wait import PATIENCE, never, wait_for
from llmgw.speak import sse

GIB = 1 << 30


def serves(cluster, nginx):
    got = sse.call(nginx.api, sse.CHAT, sse.chat("hello len=4;"))
    assert got.error is None and got.text


@pytest.fixture
def front(cluster):
    """A gateway in front of what a test starts."""
    def make(*ids):
        cluster.wait_ready([cluster.gateway], ids)
        nginx = cluster.nginx(openai=True)
        wait_for(lambda: nginx.routable() == list(ids), f"{ids} routable")
        return nginx
    cluster.agent("gw", "gateway")
    return make


@pytest.mark.parametrize("by", ["port", "socket"])
def test_engine_is_started_and_serves(cluster, front, by):
    one = Launched(cluster, "a1", by=by).ready()
    serves(cluster, front("a1"))
    folder = cluster.dir / "llmgw-engine-a1"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "detail" not in one.member()
    tree = one.tree()
    one.pair.proc.send(signal.SIGTERM)
    assert one.pair.proc.wait() == 0
    assert not one.left(tree)
    assert one.text().count("front ends its core") == 1
    assert "ended (exit status 0)" in one.text()


@pytest.mark.parametrize("shape", ["vllm", "sglang"])
def test_engine_that_ends_is_started_again(cluster, front, shape):
    """With all its processes gone before, the daemon included."""
    one = Launched(cluster, "a1", kind=shape, shape=shape).ready()
    nginx = front("a1")
    tree = one.tree()
    one.kill("front", tree)
    one.gone(tree)
    wait_for(lambda: "ended (signal 9), starting it again in 250 ms"
             in one.text(), "the log to say so")
    wait_for(lambda: "engine is DOWN, it was READY" in one.text(), "DOWN")
    wait_for(lambda: len(one.runs()) == 2, "another start", takes=4)
    one.ready()
    wait_for(lambda: nginx.routable() == ["a1"], "a1 to be routable", takes=4)
    serves(cluster, nginx)


def test_engine_that_cannot_start_is_tried_at_intervals(cluster):
    """The reason of a crash is in the log and at the agent; stopping waits for
    no interval."""
    pair = cluster.pair("a1", engine="vllm",
                        engine_command="/bin/sh -c 'echo no GPU >&2; exit 3' "
                                       "{port}")
    agent = pair.agent
    wait_for(lambda: "starting it again in 1000 ms" in pair.proc.text(),
             "pauses that double", takes=4)
    assert "engine: no GPU" in pair.proc.text()
    wait_for(lambda: agent.table()["a1"].get("detail")
             == "engine ended (exit status 3), starts again", "the agent")
    assert agent.table()["a1"]["service"] == "STARTING"
    pair.proc.send(signal.SIGTERM)
    assert pair.proc.wait() == 0


def test_command_that_is_not_there_says_so(cluster):
    pair = cluster.pair("a1", engine="vllm", engine_command="/none {port}")
    wait_for(lambda: 'ended (cannot execute "/none": No such file or '
             'directory), starting it again' in pair.proc.text(), "the reason")


def test_engine_that_does_not_end_is_killed(cluster):
    """After --engine-stop-timeout."""
    one = Launched(cluster, "a1", deaf=True, engine_stop_timeout="300ms")
    one.ready()
    tree = one.tree()
    one.pair.proc.send(signal.SIGTERM)
    assert one.pair.proc.wait() == 0
    assert not one.left(tree)
    assert "does not end, killing its processes" in one.text()
    assert "ended (killed)" in one.text()


def test_second_sigterm_kills_the_engine(cluster):
    one = Launched(cluster, "a1", deaf=True, engine_stop_timeout="1m")
    one.ready()
    tree = one.tree()
    one.pair.proc.send(signal.SIGTERM)
    wait_for(lambda: "stopping, 0 streams run" in one.text(), "the first one")
    never(lambda: not lives(tree["front"]), 0.3, "the end of its front")
    one.pair.proc.send(signal.SIGTERM)
    assert one.pair.proc.wait() == 0
    assert not one.left(tree)


def test_streams_end_before_their_engine(cluster, front):
    """SIGTERM: running streams are served, then the engine is stopped."""
    one = Launched(cluster, "a1",
                   engine=["--faults", '{"gate": 2}']).ready()
    nginx = front("a1")
    tree = one.tree()
    with sse.Connection(nginx.api, takes=20) as c:
        answer = c.request(sse.CHAT, sse.chat("hello len=6;", stream=True))
        wait_for(lambda: one.member()["active_requests"] == 1, "a stream")
        one.pair.proc.send(signal.SIGTERM)
        wait_for(lambda: "stopping, 1 streams run" in one.text(), "the drain")
        assert lives(tree["front"])
        os.kill(tree["front"], signal.SIGUSR1)
        assert sse.result_of(answer).error is None
    assert one.pair.proc.wait() == 0
    assert not one.left(tree)


# --- memory that is freed late

@pytest.fixture
def device(cluster):
    """A device of 10 GiB, and an environment that has its library."""
    directory = budget.make(cluster.dir / "budget", 10 * GIB)
    made = preload.compiled("nvml", cluster.dir)
    library = cluster.dir / "libnvidia-ml.so.1"
    os.rename(made, library)
    path = os.environ.get("LD_LIBRARY_PATH")
    return directory, {
        "NVML_BUDGET": str(directory),
        "LD_LIBRARY_PATH": f"{cluster.dir}{':' + path if path else ''}"}


def waits(one):
    """It says to operators that it waits, and how much there is."""
    wait_for(lambda: one.member().get("detail")
             == "waits for memory: device 0 has 4096 of 6144 MiB",
             "it to wait for memory", takes=4)
    assert "waits for memory: device 0" in one.agent.ctl("members").stdout


@pytest.mark.parametrize("victim", ["front", "adapter"])
def test_next_start_waits_for_the_memory_of_the_last(cluster, device, victim):
    """Of the adapter's next run, too."""
    directory, env = device
    one = Launched(cluster, "a1", budget=directory, need=3 * GIB,
                   env=env).ready()
    took = cluster.dir / "llmgw-engine-a1" / "took"
    wait_for(lambda: took.exists(), "what it took to be kept")
    tree = one.tree()
    (directory / "late").touch()
    one.kill(victim, tree)
    one.gone(tree)
    if victim == "adapter":
        one.pair.start()
    waits(one)
    assert len(one.runs()) == 1
    (directory / "late").unlink()
    one.ready()
    assert len(one.runs()) == 2 and "out of memory" not in one.text()


# --- its words

def test_lines_of_the_engine_are_in_the_log(cluster):
    """Cut, without what would control a terminal, and a progress bar only as
    it was at its end."""
    script = (r'printf "plain\n10%%\r20%%\r30%%\n\033[31mred\n"; '
              r'head -c 3000 /dev/zero | tr "\0" x; echo; echo last; '
              r'exec sleep 100')
    pair = cluster.pair("a1", engine="vllm", engine_stop_timeout="0s",
                        engine_command=f"/bin/sh -c '{script}' {{port}}")
    wait_for(lambda: "engine: last\n" in pair.proc.text(), "its last line")
    text = pair.proc.text()
    assert "engine: plain\n" in text and "engine: 30%\n" in text
    assert "10%" not in text and "engine: ?[31mred\n" in text
    assert f"engine: {'x' * 1024}...\n" in text and "x" * 1025 not in text


BAD = [
    (["--engine", "vllm"], "--engine vllm needs --engine-url or"
     " --engine-command"),
    (["--engine", "vllm", "--engine-command", "a {port}", "--engine-url",
      "http://h:1"], "--engine-url: not with --engine-command"),
    (["--engine", "vllm", "--engine-command", "vllm serve m"],
     "--engine-command: write {port} where"),
    (["--engine", "vllm", "--engine-command", "a {port} {socket}"],
     "for a unix socket, and not both"),
    (["--engine", "vllm", "--engine-command", "vllm 'serve {port}"],
     "--engine-command: a quote that does not end"),
    (["--engine", "sim", "--engine-command", "a {port}"],
     "unknown option \"--engine-command\""),
    (["--engine", "vllm", "--engine-url", "http://h:1",
      "--engine-stop-timeout", "1s"],
     "--engine-stop-timeout: needs --engine-command"),
    (["--engine", "vllm", "--engine-command", "a {port}", "--standby",
      "--group", "g", "--lock", "/l"],
     "--standby: not with --engine-command"),
]


@pytest.mark.parametrize("options, error", BAD)
def test_bad_options_are_refused(cluster, options, error):
    pair = cluster.replica("a1", start=False)
    proc = cluster.run("bad", [*pair.argv, *options])
    assert proc.popen.wait(PATIENCE) == 2
    proc.told_to_end = True
    assert error in proc.text() and proc.text().count("\n") == 1
