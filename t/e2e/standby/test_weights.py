"""llmgw-weights: writers, readers, and that no byte can be changed."""

import fcntl
import json
import mmap
import os
import subprocess
import threading
import time

import pytest

from llmgw.model.weights import (CHUNK, SEALS, WeightsService, id_of, memfd,
    read)
from llmgw.proc.preload import compiled
from llmgw.proc.wait import wait_for

DATA = os.urandom(1 << 20)
OTHER = os.urandom(1 << 20)


@pytest.fixture
def service(cluster):
    return WeightsService(cluster)


class SlowRead:
    """With .env, the service hashes nothing from hold() to release()."""

    def __init__(self, tmp_path):
        self.gate = tmp_path / "gate"
        self.env = {"LD_PRELOAD": compiled("slow_pread", tmp_path),
                    "ASAN_OPTIONS": "verify_asan_link_order=0",
                    "SLOW_PREAD": str(self.gate)}

    def hold(self):
        self.gate.touch()

    def wait_held(self):
        """A thread is about to read."""
        wait_for(self.gate.with_suffix(".held").exists, "a thread that reads")

    def release(self):
        self.gate.unlink()


@pytest.fixture
def slow(tmp_path):
    made = SlowRead(tmp_path)
    yield made
    made.gate.unlink(missing_ok=True)


def slow_service(cluster, slow, **options):
    made = WeightsService(cluster, start=False, **options)
    made.env = slow.env
    return made.start()


def committed(service, engine="e1", data=DATA):
    """A writer that has committed, its id and its descriptor."""
    writer = service.client(engine)
    assert writer.hello("rw_or_ro").granted() == "rw"
    return (writer, *writer.write(data))


# --- one copy

def test_engines_share_the_memory_that_one_has_written(service):
    """Two chunks and a bit, so that the id is one of a list."""
    data = DATA * 65 + b"the end"
    primary, standby = service.client("e1"), service.client("e2")
    assert primary.hello("rw_or_ro").granted() == "rw"
    standby.hello("ro")
    service.wait_roles(e1="writer", e2="waits")
    id, mine = primary.write(data)
    assert len(data) > CHUNK and id == id_of(data)

    got = standby.expect("granted")
    assert (got["mode"], got["committed"], got["id"]) == ("ro", True, id)
    slot, fd = standby.get()
    assert (slot["id"], slot["name"], slot["bytes"]) == (
        id, "model.gguf", len(data))
    assert os.fstat(fd).st_ino == os.fstat(mine).st_ino
    assert read(fd) == data
    service.wait_roles(e1="reader", e2="reader")


def test_what_is_committed_cannot_be_changed_by_anybody(service):
    writer, _, mine = committed(service)
    reader = service.client("e2")
    reader.hello("ro").granted()
    _, theirs = reader.get()
    for fd in (mine, theirs):
        with pytest.raises(PermissionError):
            os.pwrite(fd, b"x", 0)
        with pytest.raises(PermissionError):
            mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE)
        for size in (4096, len(DATA) + 4096):
            with pytest.raises(PermissionError):
                os.ftruncate(fd, size)
    assert read(theirs) == DATA


def test_id_is_of_the_bytes_that_are_there_when_nobody_can_write(service):
    """A writer that goes on writing while it commits gets an error, and the
    id of what it had written until then."""
    writer = service.client("e1")
    writer.hello("rw_or_ro").granted()
    fd = memfd(bytes(8 << 20))
    writes = []

    def scribble():
        try:
            while True:
                os.pwrite(fd, os.urandom(4096), len(writes) % 2048 * 4096)
                writes.append(1)
        except PermissionError:
            writes.append(None)
    thread = threading.Thread(target=scribble)
    thread.start()
    wait_for(lambda: len(writes) > 100, "some writes")
    id = writer.put(fd).commit().expect("committed")["id"]
    thread.join(10)
    assert writes[-1] is None
    assert id == id_of(read(fd))


@pytest.mark.soak
def test_writer_has_to_unmap_before_it_commits(service):
    writer = service.client("e1")
    writer.hello("rw_or_ro").granted()
    fd = memfd(bytes(len(DATA)))
    with mmap.mmap(fd, len(DATA)) as m:
        m[:] = DATA
        assert writer.put(fd).commit().refused() == "mapped"
        service.wait_roles(e1="writer")
    assert writer.commit().expect("committed")["id"] == id_of(DATA)


@pytest.mark.soak
def test_last_readers_end_keeps_the_weights(service):
    writer, id, fd = committed(service)
    writer.close()
    os.close(fd)
    service.wait_roles()
    with service.client("e2") as reader:
        reader.hello("ro", 0).granted()
        assert read(reader.get()[1]) == DATA


# --- two engines, two devices

@pytest.fixture
def devices(cluster):
    return [WeightsService(cluster, device=i) for i in (0, 1)]


@pytest.mark.soak
def test_two_engines_that_may_both_write_can_wait_for_each_other(devices):
    """Each writes one device and waits for the other: nothing moves until
    their time is over.  Why a standby asks for RO."""
    a = [one.client("a") for one in devices]
    b = [one.client("b") for one in devices]
    assert a[0].hello("rw_or_ro").granted() == "rw"
    assert b[1].hello("rw_or_ro").granted() == "rw"
    a[1].hello("rw_or_ro", 500)
    b[0].hello("rw_or_ro", 500)
    devices[0].wait_roles(a="writer", b="waits")
    devices[1].wait_roles(b="writer", a="waits")
    a[1].expect("timeout")
    b[0].expect("timeout")
    devices[0].wait_roles(a="writer")
    devices[1].wait_roles(b="writer")


@pytest.mark.soak
@pytest.mark.parametrize("first", ["primary", "standby"])
def test_fixed_roles_never_wait_for_each_other(devices, first):
    primary = [one.client("primary") for one in devices]
    standby = [one.client("standby") for one in devices]
    if first == "standby":
        for one in standby:
            one.hello("ro")
        for one in devices:
            one.wait_roles(standby="waits")
    for i in (1, 0):            # in whichever order it asks
        assert primary[i].hello("rw_or_ro").granted() == "rw"
    if first == "primary":
        for one in standby:
            one.hello("ro")
    ids = [one.write(data)[0] for one, data in zip(primary, (DATA, OTHER))]
    for i, one in enumerate(standby):
        got = one.expect("granted")
        assert (got["mode"], got["id"]) == ("ro", ids[i])


def crashing(cluster, devices, commits):
    """A primary that is killed -9 when it has written both devices."""
    primary = cluster.script(f"primary-{len(cluster.procs)}",
                             "model/weights_writer.py", commits,
                             *(one.path for one in devices))
    wait_for(lambda: "device 1" in primary.text(), "the primary")
    wait_for(lambda: devices[1].memfds() == 1, "its bytes")
    primary.kill()
    wait_for(lambda: "primary" not in devices[0].roles(), "its end")
    wait_for(lambda: devices[1].state()["state"] == "empty", "its memory")
    assert devices[1].memfds() == 0
    return primary.text()


def test_what_a_crashed_primary_had_committed_stays(cluster, devices):
    """Device 0 committed, device 1 not: the standby keeps 0 and waits for 1,
    however often the primary crashes."""
    standby = [one.client("standby") for one in devices]
    for one in standby:
        one.hello("ro", 60000)
    crashing(cluster, devices, 1)
    id0 = standby[0].expect("granted")["id"]
    slot = read(standby[0].get()[1])
    assert id_of(slot) == id0
    for _ in range(4):
        said = crashing(cluster, devices, 1)
        assert "device 0: {'type': 'granted', 'mode': 'ro'" in said
        assert id0 in said
        assert devices[1].roles() == {"standby": "waits"}

    primary = devices[1].client("primary")
    assert primary.hello("rw_or_ro").granted() == "rw"
    id1, _ = primary.write(OTHER)
    assert standby[1].expect("granted")["id"] == id1
    assert read(standby[1].get()[1]) == OTHER
    assert read(standby[0].get()[1]) == slot


@pytest.mark.soak
def test_next_writer_takes_over_after_an_abort(service):
    first, second = service.client("e1"), service.client("e2")
    first.hello("rw_or_ro").granted()
    second.hello("rw_or_ro")
    first.put(memfd(OTHER)).send(cmd="abort")
    first.expect("aborted")
    assert second.granted() == "rw"
    assert second.write(DATA)[0] == id_of(DATA)
    assert first.hello("rw_or_ro").granted() == "ro"


@pytest.mark.soak
def test_reader_gives_up_when_its_time_is_over(service):
    reader = service.client("e2")
    reader.hello("ro", 0).expect("timeout")
    reader.hello("ro", 300).expect("timeout")
    assert service.roles() == {}
    committed(service)
    assert reader.hello("ro", 0).granted() == "ro"


# --- while it hashes

@pytest.mark.soak
def test_writers_end_does_not_undo_its_commit(cluster, slow):
    service = slow_service(cluster, slow)
    slow.hold()
    writer, reader = service.client("e1"), service.client("e2")
    writer.hello("rw_or_ro").granted()
    reader.hello("ro")
    fd = memfd(DATA)
    writer.put(fd).commit()
    assert writer.line(progress=True) == {
        "type": "hashing", "done": 0, "bytes": len(DATA)}
    assert writer.line(progress=True)["type"] == "hashing"      # a second on
    writer.send(cmd="abort")
    assert writer.refused() == "committing"
    writer.close()
    service.wait_roles(e2="waits")
    assert service.state()["state"] == "committing"
    slow.release()
    assert reader.expect("granted")["id"] == id_of(DATA)


@pytest.mark.soak
def test_hashing_lets_engines_go_first(cluster, slow):
    service = slow_service(cluster, slow)
    slow.hold()
    writer = service.client("e1")
    writer.hello("rw_or_ro").granted()
    writer.put(memfd(DATA)).commit()
    pid = service.proc.pid
    own = os.getpriority(os.PRIO_PROCESS, pid)
    wait_for(lambda: sorted(priorities(pid)) == [own, min(own + 10, 19)],
             "a nice thread")
    slow.release()
    writer.expect("committed")


def priorities(pid):
    return [os.getpriority(os.PRIO_PROCESS, int(tid))
            for tid in os.listdir(f"/proc/{pid}/task")]


@pytest.mark.soak
def test_service_ends_at_once_while_it_hashes(cluster, slow):
    service = slow_service(cluster, slow)
    slow.hold()
    writer = service.client("e1")
    writer.hello("rw_or_ro").granted()
    writer.put(memfd(DATA)).commit()
    writer.line(progress=True)
    service.proc.send(15)
    slow.release()
    assert service.proc.wait() == 0
    assert not os.path.exists(service.path)


@pytest.mark.soak
def test_log_says_each_ten_seconds_how_far_hashing_is(cluster, slow):
    service = slow_service(cluster, slow)
    slow.hold()
    writer = service.client("e1")
    writer.hello("rw_or_ro").granted()
    writer.put(memfd(DATA)).commit()
    wait_for(lambda: 'hashing "model.gguf": 0.0 of 0.0 GiB done'
             in service.proc.text(), "a line of the log", takes=12)
    slow.release()
    writer.expect("committed")


@pytest.mark.timed
@pytest.mark.skipif("LLMGW_WEIGHTS_GIB" not in os.environ,
                    reason="long: LLMGW_WEIGHTS_GIB=8")
def test_long_hashing_says_how_far_it_is(service):
    """Pages that were never written take as much time as others."""
    size = int(os.environ["LLMGW_WEIGHTS_GIB"]) << 30
    writer = service.client("e1")
    writer.hello("rw_or_ro").granted()
    fd = memfd()
    os.posix_fallocate(fd, 0, size)
    began = time.monotonic()
    writer.put(fd).commit().expect("committed", 600)
    took = time.monotonic() - began
    print(f"{size / 2**30 / took:.2f} GiB/s")
    told = service.proc.text().count("GiB done")
    assert int(took / 11.1) <= told <= int(took / 10), took


# --- a service that was started again

def test_holder_hands_the_weights_back_to_a_new_service(cluster):
    service = WeightsService(cluster, adopt_window="60s")
    holder, second = service.client("e1"), service.client("e2")
    fd, id = memfd(DATA, seals=SEALS), id_of(DATA)
    loader, sleeper = service.client("e3"), service.client("e4")
    loader.hello("rw_or_ro")
    sleeper.hello("ro")
    service.wait_roles(e3="waits", e4="waits")
    holder.adopt(fd, id).expect("adopting")
    assert holder.expect("adopted")["id"] == id

    # Nobody has loaded a second copy, and all have the same.
    assert loader.expect("granted") == sleeper.expect("granted") == {
        "type": "granted", "mode": "ro", "committed": True, "id": id}
    second.adopt(fd, id).expect("adopted")
    for one in (loader, sleeper, holder, second):
        slot, got = one.get()
        assert os.fstat(got).st_ino == os.fstat(fd).st_ino
    assert service.state()["window_left_ms"] > 0


def test_weights_outlive_a_service_that_is_killed(service):
    writer, id, fd = committed(service)
    reader = service.client("e2")
    reader.hello("ro").granted()
    _, theirs = reader.get()
    service.kill()
    service.start()
    assert writer.line() is None and reader.line() is None
    again = service.client("e2")
    again.adopt(theirs, id).expect("adopting")
    again.expect("adopted")
    writer = service.client("e1")
    writer.adopt(fd, id).expect("adopted")
    assert service.memfds() == 1


@pytest.mark.timed
def test_nobody_writes_in_the_window_after_a_start(cluster):
    began = time.monotonic()
    service = WeightsService(cluster, adopt_window="700ms")
    loader, patient = service.client("e1"), service.client("e2")
    loader.hello("rw_or_ro")
    patient.hello("rw_or_ro", 100).expect("timeout")
    assert loader.granted() == "rw"
    assert time.monotonic() - began >= 0.7


@pytest.mark.soak
def test_nobody_writes_while_an_adoption_is_open(cluster, slow):
    service = slow_service(cluster, slow)       # and there is no window
    slow.hold()
    fd, id = memfd(DATA, seals=SEALS), id_of(DATA)
    holder, second = service.client("e1"), service.client("e2")
    holder.adopt(fd, id).expect("adopting")
    second.adopt(fd, id).expect("adopting")
    other = service.client("e3")
    other.adopt(memfd(OTHER, seals=SEALS), id_of(OTHER))
    assert other.refused() == "adopting"
    loader = service.client("e4")
    loader.hello("rw_or_ro")
    service.wait_roles(e1="adopts", e2="adopts", e4="waits")
    holder.close()              # the second one still vouches for it
    service.wait_roles(e2="adopts", e4="waits")
    slow.release()
    second.expect("adopted")
    assert loader.granted() == "ro"


def abandoned(cluster, slow):
    """A service whose threads still hash what the last adopter has left."""
    service = slow_service(cluster, slow)
    slow.hold()
    holder = service.client("e1")
    holder.adopt(memfd(DATA, seals=SEALS), id_of(DATA)).expect("adopting")
    slow.wait_held()
    holder.close()
    wait_for(lambda: service.state()["state"] == "reclaiming", "its end")
    return service


def test_adoption_ends_with_its_last_adopter(cluster, slow):
    """Otherwise no engine could write until all of it is hashed, for no use."""
    service = abandoned(cluster, slow)
    late, loader = service.client("e2"), service.client("e3")
    late.adopt(memfd(DATA, seals=SEALS), id_of(DATA))
    assert late.refused() == "reclaiming"
    loader.hello("rw_or_ro")
    service.wait_roles(e3="waits")
    slow.release()
    assert loader.granted() == "rw"
    assert loader.write(OTHER)[0] == id_of(OTHER)
    assert service.memfds() == 1


@pytest.mark.soak
def test_service_ends_while_it_gives_an_adoption_up(cluster, slow):
    service = abandoned(cluster, slow)
    service.proc.send(15)
    slow.release()
    assert service.proc.wait() == 0


def test_other_bytes_than_the_id_says_are_not_adopted(service):
    holder = service.client("e1")
    loader = service.client("e2")
    fd = memfd(DATA, seals=SEALS)
    holder.adopt(fd, id_of(OTHER)).expect("adopting")
    assert holder.refused() == "other_bytes"
    wait_for(lambda: service.state()["state"] == "empty", "its memory")
    assert service.memfds() == 0
    holder.adopt(fd, id_of(DATA) + "0")
    assert holder.refused() == "bad_request"
    for seals in (0, SEALS & ~fcntl.F_SEAL_WRITE):
        holder.adopt(memfd(DATA, seals=seals), id_of(DATA))
        assert holder.refused() == "unsealed"
    holder.adopt(None, id_of(DATA))
    assert holder.refused() == "no_fd"

    # The state is that of a fresh service.
    assert loader.hello("rw_or_ro").granted() == "rw"
    holder.adopt(fd, id_of(DATA))
    assert holder.refused() == "writer"
    loader.write(OTHER)
    for data in (DATA, OTHER):      # a copy of the very bytes is one too many
        holder.adopt(memfd(data, seals=SEALS), id_of(data))
        assert holder.refused() == "other_weights"


# --- for operators

def test_status_says_what_there_is_and_for_whom(cluster):
    service = WeightsService(cluster, device=1, adopt_window="60s")
    with service.client("e2") as reader:
        reader.hello("ro", 60000)
        service.wait_roles(e2="waits")
        text = service.ctl().stdout
        assert "device    1\nstate     empty\n" in text
        assert "s in which no engine may write" in text
        assert "e2        waits for ro, " in text
        fd = memfd(DATA, seals=SEALS)
        holder = service.client("e1")
        holder.adopt(fd, id_of(DATA), "model-00002-of-00002.gguf")
        reader.granted()
        text = service.ctl().stdout
        assert f"id        {id_of(DATA)}\n" in text
        assert f"bytes     {len(DATA)}\n" in text
        assert f"e1        reader (pid {os.getpid()})\n" in text
        got = json.loads(service.ctl("--json").stdout)
        assert got["state"] == "committed" and got["device"] == 1
        assert got["name"] == "model-00002-of-00002.gguf"


@pytest.mark.soak
def test_a_service_whose_socket_is_removed_ends_to_be_started_again(service):
    writer, id, fd = committed(service)
    os.unlink(service.path)
    service.proc.told_to_end = True
    assert service.proc.wait() == 1
    assert "was removed" in service.proc.text()
    assert writer.line() is None
    service.start()
    service.client("e1").adopt(fd, id).expect("adopting")


def test_living_services_socket_is_not_taken(service):
    out = subprocess.run(service.argv, capture_output=True, text=True,
                         timeout=20)
    assert out.returncode == 1
    assert "another process is serving" in out.stderr
    assert service.state()["ok"]
    assert service.stop() == 0
    assert not os.path.exists(service.path)
    out = service.ctl()
    assert out.returncode == 6
    assert "cannot reach the service" in out.stderr
