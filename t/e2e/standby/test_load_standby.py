"""Engines that stand by with weights from services: what they hold while they
sleep, and what they accept when they wake."""

import os

import pytest

from llmgw.fleet import words
from llmgw.model import gguf, llama
from llmgw.model.llama import ask, chat, request
from llmgw.model.weights import WeightsService
from llmgw.proc import memory
from llmgw.proc.wait import still, wait_for
from llmgw.speak import sse
from llmgw.standby.group import Group

MB = 1 << 20
SIZE = 16 * MB
READER = {"b": {"weights_role": "ro"}}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "w.bin"
    path.write_bytes(os.urandom(MB) * (SIZE // MB))
    return str(path)


@pytest.fixture
def services(cluster):
    """services(n): so many, and the sockets as an option has them."""
    def make(n=1):
        made = [WeightsService(cluster, i) for i in range(n)]
        return made, ",".join(s.path for s in made)
    return make


def group(cluster, sockets, files, **options):
    """a serves, b sleeps."""
    return Group(cluster, agents=False, each=READER, engine="sim",
                 weights=sockets, weights_file=files, **options).start()


def failed(one, after=0):
    """What it says, of an engine that ends by itself; after: seconds that it
    waits for something before."""
    one.proc.told_to_end = True
    assert one.proc.wait(takes=after + 2) == 1
    return one.proc.text()


def test_service_is_killed_while_a_mapped_standby_sleeps(cluster, services,
                                                         file):
    """It has all that it needs, and gives it to the next service: there the
    engine that was killed finds it again."""
    (service,), sockets = services()
    a, b = group(cluster, sockets, file)
    inodes = memory.mapped(a.proc.pid)
    assert memory.mapped(b.proc.pid) == inodes and len(inodes) == 1
    assert abs(memory.pss_shmem(b.proc.pid) - SIZE / 2) < MB
    service.kill()
    a.kill()
    b.wait("ACTIVE")
    assert b.client.generate("hello", 3).code == "OK"
    service.argv[-1] = "1m"             # its window
    service.start()
    service.wait_roles(b="reader")
    a.start().wait("STANDBY")
    assert memory.mapped(a.proc.pid) == inodes
    b.kill()
    a.wait("ACTIVE")


def test_unmapped_standby_holds_nothing_and_gets_it_again(cluster, services,
                                                          file):
    (service,), sockets = services()
    a, b = group(cluster, sockets, file, sleep="unmapped")
    inodes = memory.mapped(a.proc.pid)
    assert not memory.mapped(b.proc.pid) and not memory.opened(b.proc.pid)
    assert memory.pss_shmem(b.proc.pid) < MB
    service.wait_roles(a="reader")

    # Its memory was a's alone for a while; the service is a new one.
    service.kill()
    service.argv[-1] = "1m"             # its window
    service.start()
    service.wait_roles(a="reader")
    a.kill()
    b.wait("ACTIVE")
    assert memory.mapped(b.proc.pid) == inodes
    assert b.client.generate("hello", 3).code == "OK"


@pytest.mark.soak
def test_unmapped_standby_ends_where_nobody_has_the_weights(cluster, services,
                                                            file):
    (service,), sockets = services()
    a, b = group(cluster, sockets, file, sleep="unmapped",
                 remap_timeout="500ms")
    service.kill()
    a.kill()
    service.start()
    assert 'weights0.sock": no weights within 0.5 s' in failed(b)
    assert [s.state for s in b.steps()][-1] != "ACTIVE"


@pytest.mark.parametrize("size, why", [
    (SIZE, "it has other bytes than before"),
    pytest.param(SIZE - 1, "it has another layout than before",
                 marks=pytest.mark.soak)])
def test_unmapped_standby_wakes_with_nothing_else(cluster, services, file,
                                                  size, why):
    (service,), sockets = services()
    a, b = group(cluster, sockets, file, sleep="unmapped")
    a.proc.freeze()                     # it does not hand its own back
    service.kill()
    service.start()
    stranger = service.client("stranger").hello("rw_or_ro")
    stranger.granted()
    stranger.write(bytes(size), name="w.bin")
    a.kill()
    assert why in failed(b)
    assert [s.state for s in b.steps()][-1] != "ACTIVE"


@pytest.mark.soak
def test_one_device_that_fails_takes_the_engine_down(cluster, services, file,
                                                     tmp_path):
    (_, second), sockets = services(2)
    other = tmp_path / "other.bin"
    other.write_bytes(os.urandom(MB))
    a, b = group(cluster, sockets, f"{file},{other}", sleep="unmapped",
                 remap_timeout="2s")
    second.kill()
    a.kill()
    text = failed(b, after=2)
    assert 'weights1.sock": no weights within 2 s' in text
    assert "weights0.sock\": no weights" not in text


needs_llama = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)


@needs_llama
@pytest.mark.parametrize("sleep", [
    *(pytest.param(how, marks=pytest.mark.soak) for how in (None, "mapped")),
    "unmapped"])
def test_model_that_was_asleep_says_the_same(cluster, services, tmp_path,
                                             sleep):
    """sleep None: from the file itself, without a service."""
    path = str(tmp_path / "m.gguf")
    gguf.write(path)
    options = {"engine": "llama", "model": path, "threads": 1}
    asked = [request(chat("pa " * n, seed=n, temperature=.8), id=f"c-{n}")
             for n in (1, 5, 60)]
    plain = cluster.replica("plain", **options)
    wait_for(lambda: words.CONTINUE_HERE in plain.proc.text(), "it to load")
    said = [ask(plain, r).whole().says() for r in asked]
    if sleep:
        _, sockets = services()
        options |= {"weights": sockets, "sleep": sleep}
    a, b = Group(cluster, agents=False, each=READER if sleep else {},
                 **options).start()
    assert bool(memory.mapped(b.proc.pid)) == (sleep == "mapped")
    lines = [next(line for line in one.proc.text().splitlines()
                  if "streams of group" in line).split(": ", 1)[1]
             for one in (plain, a, b)]
    assert len(set(lines)) == 1, lines
    assert [ask(a, r).whole().says() for r in asked] == said
    a.kill()
    b.wait("ACTIVE")
    assert "is awake after" in b.proc.text()
    assert [ask(b, r).whole().says() for r in asked] == said


def conversation(i):
    """One that goes on for a while."""
    return {**chat(f"conversation {i}", seed=i, temperature=.8,
                   ignore_eos=True), "max_tokens": 500, "model": "m",
            "stream": True}


def caught(nginx, one, asked):
    """The engine is frozen in the middle of a stream at least; answers to all.
    On a busy machine whole answers may arrive before the test looks: try again
    then."""
    while True:
        connections = [sse.Connection(nginx.api) for _ in asked]
        answers = [c.request(sse.CHAT, body)
                   for c, body in zip(connections, asked)]
        answers[-1].wait_events(2)
        one.proc.freeze()
        if still(lambda: nginx.replicas()[one.id]["in_flight"], during=.1):
            return connections, answers
        one.proc.thaw()
        for c in connections:
            c.close()


@needs_llama
@pytest.mark.parametrize("sleep", [
    "mapped", pytest.param("unmapped", marks=pytest.mark.soak)])
def test_streams_of_a_model_go_on_where_it_wakes(cluster, services, tmp_path,
                                                 sleep):
    """Through nginx, which knows of no other replica: as if nothing had
    happened."""
    path = str(tmp_path / "m.gguf")
    gguf.write(path)
    _, sockets = services()
    cluster.agent("gw", "gateway")
    a, b = Group(cluster, each=READER, engine="llama", model=path, threads=1,
                 weights=sockets, sleep=sleep).start()
    nginx = cluster.nginx(openai=True)
    wait_for(lambda: nginx.routable() == ["a"], "a to be routable")
    asked = [conversation(i) for i in range(2)]
    undisturbed = [sse.call(nginx.api, sse.CHAT, body).text for body in asked]
    connections, answers = caught(nginx, a, asked)
    a.kill()
    got = [sse.result_of(answer) for answer in answers]
    for c in connections:
        c.close()
    assert [(r.error, r.text) for r in got] == [
        (None, whole) for whole in undisturbed]
    wait_for(lambda: nginx.routable() == ["b"], "b to be routable")
    assert sum(nginx.pool()["totals"]["failovers"].values()) >= 1
