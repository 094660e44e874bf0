"""Weights that come from services: there is one copy, however many engines
there are, and it stays when they end."""

import os
import re
import subprocess

import pytest

from llmgw.fleet import words
from llmgw.model import gguf, llama
from llmgw.model.llama import ask, chat, request
from llmgw.model.weights import WeightsService, id_of
from llmgw.proc import memory, place
from llmgw.proc.wait import wait_for

MB = 1 << 20
SIZE = 64 * MB


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """64 MiB of weights."""
    path = tmp_path_factory.mktemp("weights") / "w.bin"
    path.write_bytes(os.urandom(MB) * (SIZE // MB))
    return str(path)


@pytest.fixture
def service(cluster):
    return WeightsService(cluster)


def model(cluster, id, service, file, start=True, **options):
    return cluster.replica(
        id, engine="model", latency_model="linear", alpha_coeffs="0,0,0",
        beta_coeffs="100,0,0", weights=service.path, weights_file=file,
        start=start, **options)


def holds(replica, how=""):
    """Waits until it has its weights: "loaded for" a service, "shared by" it.
    """
    wait_for(lambda: re.search(rf'weights "[^"]*", \d+ MB, {how}',
                               replica.proc.text()),
             f"{replica.id} to have its weights")
    return replica


def failed(replica, status=1):
    """Its error lines, of a process that ends by itself."""
    assert replica.proc.wait() == status
    replica.proc.told_to_end = True
    return replica.proc.text()


def test_two_engines_share_one_copy(cluster, service, file):
    one = holds(model(cluster, "one", service, file), "loaded for")
    two = holds(model(cluster, "two", service, file), "shared by")
    assert service.roles() == {"one": "reader", "two": "reader"}
    ids = {id_of(open(file, "rb").read()), service.state()["id"]}
    assert len(ids) == 1

    pids = [one.proc.pid, two.proc.pid, service.proc.pid]
    inodes = memory.mapped(pids[0])
    assert len(inodes) == 1
    assert [memory.opened(pid) for pid in pids] == [inodes] * 3
    for pid in pids[:2]:
        assert memory.mapped(pid) == inodes
        assert abs(memory.pss_shmem(pid) - SIZE / 2) < MB
    assert one.client.generate("a", 3).tokens == \
        two.client.generate("a", 3).tokens

    # The copy outlives its writer, and a new engine loads none.
    one.kill()
    wait_for(lambda: abs(memory.pss_shmem(pids[1]) - SIZE) < MB,
             "the memory to be counted once")
    holds(one.start(), "shared by")
    assert memory.mapped(one.proc.pid) == inodes


@pytest.mark.soak
def test_reader_waits_however_often_the_writer_is_killed(cluster, file,
                                                         tmp_path):
    """Two devices: what is committed stays, the rest is loaded anew."""
    services = [WeightsService(cluster, i) for i in range(2)]
    other = tmp_path / "other.bin"
    other.write_bytes(b"other" * 1000)
    engine = {"weights": ",".join(s.path for s in services),
              "weights_file": f"{file},{other}"}
    reader = cluster.replica("reader", weights_role="ro", **engine)
    busy = services[1].client("busy").hello("rw_or_ro")
    assert busy.granted() == "rw"
    for how in "loaded for", "shared by":
        writer = holds(cluster.replica("writer", **engine), how)
        services[1].wait_roles(busy="writer", reader="waits", writer="waits")
        writer.kill()
        services[0].wait_roles(reader="reader")
        services[1].wait_roles(busy="writer", reader="waits")
    busy.close()
    services[1].wait_roles(reader="waits")
    writer = holds(cluster.replica("writer", **engine), "loaded for")
    services[0].wait_roles(reader="reader", writer="reader")
    wait_for(lambda: reader.proc.text().count("shared by") == 2,
             "the reader to have both")
    assert memory.mapped(reader.proc.pid) == {
        i for s in services for i in memory.opened(s.proc.pid)}


def test_replica_is_starting_until_its_weights_are_there(cluster, service,
                                                         file):
    cluster.agent("gw", "gateway")
    cluster.pair("r1", weights=service.path, weights_role="ro",
                 weights_file=file)

    def state():
        return cluster.gateway.table().get("r1", {}).get("service")
    wait_for(lambda: state() == "STARTING", "r1 to be starting")
    service.wait_roles(r1="waits")
    model(cluster, "one", service, file)
    wait_for(lambda: state() == "READY", "r1 to be ready")


@pytest.mark.soak
def test_service_that_ends_ends_who_waits_for_it(cluster, service, file):
    waits = cluster.replica("waits", weights=service.path, weights_role="ro",
                            weights_file=file)
    service.wait_roles(waits="waits")
    service.kill()
    assert "lost before all weights had arrived" in failed(waits)


def test_weights_are_handed_back_and_not_loaded_twice(cluster, file):
    """A service that is new, an engine that is started again: as long as it
    waits for others, it does not load."""
    service = WeightsService(cluster)
    one = model(cluster, "one", service, file)
    two = model(cluster, "two", service, file)
    inodes = memory.mapped(holds(one).proc.pid)
    assert memory.mapped(holds(two).proc.pid) == inodes
    one.kill()
    two.proc.freeze()
    service.kill()
    one.start()
    service.argv[-1] = "1m"             # its window
    service.start()
    service.wait_roles(one="waits")
    two.proc.thaw()
    holds(one, "shared by")
    assert memory.mapped(one.proc.pid) == inodes
    assert memory.opened(service.proc.pid) == inodes
    wait_for(lambda: '"w.bin" again' in two.proc.text(), "the adoption")
    assert two.client.generate("a", 3).code == "OK"


@pytest.mark.soak
@pytest.mark.parametrize("options, why", [
    ({"weights_file": "other.bin"}, 'it has "w.bin", not "other.bin"'),
    ({"weights_file": "no-slash", "weights_timeout": "100ms"},
     "no weights within 0.1 s")])
def test_what_was_not_asked_for_ends_the_engine(cluster, service, file,
                                                options, why):
    if "weights_timeout" not in options:
        holds(model(cluster, "one", service, file))
    engine = cluster.replica("two", weights=service.path, weights_role="ro",
                             **options)
    assert why in failed(engine)


@pytest.mark.soak
@pytest.mark.parametrize("options, why", [
    ({"weights_file": "a"}, "--weights-file: needs --weights"),
    ({"weights": "/a"}, "--weights: needs --weights-file"),
    ({"weights": "/a,/b", "weights_file": "a"},
     "--weights: 2 sockets for 1 files"),
    ({"weights": "/a", "engine": "llama", "model": "m-00001-of-00002.gguf"},
     "--weights: 1 sockets for 2 files"),
    ({"weights": "/a", "engine": "llama", "model": "m", "weights_file": "a"},
     "unknown option \"--weights-file\""),
    ({"weights": "/a", "engine": "vllm", "engine_url": "http://a:1"},
     "--weights: not with --engine vllm"),
    ({"sleep": "unmapped"}, "--sleep: needs --standby")])
def test_bad_options_are_refused(cluster, options, why):
    assert why in failed(cluster.replica("bad", **options), 2)


@pytest.mark.soak
@pytest.mark.skipif(place.FLAVOUR in ("asan", "tsan"),
                    reason="these sanitizers keep mlock() from locking")
def test_weights_can_be_locked_in_memory(cluster, service, tmp_path):
    small = tmp_path / "small.bin"      # what anybody may lock
    small.write_bytes(bytes(MB))
    one = holds(model(cluster, "one", service, str(small), mlock=True))
    with open(f"/proc/{one.proc.pid}/status") as status:
        locked, = (line for line in status if line.startswith("VmLck:"))
    assert int(locked.split()[1]) << 10 == MB


# a container's limit

def limited(mb, tmp_path):
    """Runs a command where its control groups, of either version, have that
    limit: their files are the test's."""
    groups = tmp_path / f"groups-{mb}"
    for name in "memory.max", "memory/memory.limit_in_bytes":
        path = groups / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{mb * MB}\n")
    return ["unshare", "--mount", "sh", "-c",
            'mount --bind "$0" /sys/fs/cgroup && exec "$@"', str(groups)]


@pytest.mark.skipif(subprocess.run(["unshare", "--mount", "true"],
                                   capture_output=True).returncode != 0,
                    reason="nobody but root mounts anything")
def test_weights_beyond_a_containers_limit_are_not_loaded(cluster, service,
                                                          file, tmp_path):
    """The engine would be killed half way, and then the next one."""
    def within(mb, id):
        engine = model(cluster, id, service, file, start=False)
        engine.argv = limited(mb, tmp_path) + engine.argv
        return engine.start()
    assert 'no memory for the 64 MB of "w.bin": 63 MB are available' \
        in failed(within(63, "small"))
    holds(within(65, "large"), "loaded for")


# a real model

needs_llama = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)


def loaded(replica):
    wait_for(lambda: words.CONTINUE_HERE in replica.proc.text(),
             f"{replica.id} to load")
    return replica


def group(replica):
    return re.search(r'streams of group "([^"]+)"',
                     replica.proc.text()).group(1)


def says(replica):
    return [ask(replica, request(chat("pa " * n, seed=n, temperature=.8),
                                 id=f"c-{n}")).whole().says()
            for n in (1, 5, 60)]


@needs_llama
@pytest.mark.parametrize("exact", [
    "on", pytest.param("off", marks=pytest.mark.soak)])
def test_model_from_a_service_says_the_same(cluster, service, tmp_path, exact):
    """Also of a replica that has no such file."""
    path = str(tmp_path / "m.gguf")
    gguf.write(path)
    options = {"engine": "llama", "threads": 1, "exact": exact}
    plain = loaded(cluster.replica("plain", model=path, **options))
    one = loaded(cluster.replica("one", model=path, weights=service.path,
                                 **options))
    two = loaded(cluster.replica("two", model="/elsewhere/m.gguf",
                                 weights=service.path, weights_role="ro",
                                 **options))
    assert memory.mapped(one.proc.pid) == memory.mapped(two.proc.pid) \
        == memory.opened(service.proc.pid)
    assert group(one) == group(two)
    assert says(one) == says(two)
    if exact == "on":
        assert group(one) == group(plain)
        assert says(one) == says(plain)
    else:
        assert group(one) != group(plain)   # which repacks its weights


@pytest.mark.soak
@needs_llama
def test_file_that_is_no_model_is_not_committed(cluster, service, tmp_path):
    """Or the service would keep it, and each engine would end by it."""
    wrong = tmp_path / "m.gguf"
    options = {"engine": "llama", "threads": 1, "weights": service.path}
    for data in (b"GGU", b"GGUG" + bytes(4096)):
        wrong.write_bytes(data)
        text = failed(cluster.replica(f"one-{len(data)}", model=str(wrong),
                                      **options))
        assert '"m.gguf" is not a GGUF file' in text
        assert len([x for x in text.splitlines() if " error " in x]) == 1
        wait_for(lambda: service.state()["clients"] == [], "its end")
        assert service.state()["state"] == "empty"
    gguf.write(str(wrong))
    loaded(cluster.replica("two", model=str(wrong), **options))


@pytest.mark.soak
@needs_llama
def test_model_that_waits_for_its_weights_ends_when_told(cluster, service):
    engine = cluster.replica("one", engine="llama", model="m.gguf",
                             weights=service.path, weights_role="ro")
    service.wait_roles(one="waits")
    assert engine.stop() == 0


@pytest.mark.soak
@needs_llama
def test_parts_of_a_model_come_from_a_service_each(cluster, tmp_path):
    services = [WeightsService(cluster, i) for i in range(2)]
    paths = gguf.write_parts(tmp_path, 2)
    whole = str(tmp_path / "whole.gguf")
    gguf.write(whole)
    options = {"engine": "llama", "threads": 1}
    plain = loaded(cluster.replica("plain", model=paths[0], **options))
    one = loaded(cluster.replica(
        "one", model=paths[0], weights=",".join(s.path for s in services),
        **options))
    assert [s.state()["name"] for s in services] == [
        os.path.basename(p) for p in paths]
    assert len(memory.mapped(one.proc.pid)) == 2
    assert group(one) == group(plain)
    undivided = loaded(cluster.replica("whole", model=whole, **options))
    assert says(one) == says(plain) == says(undivided)
