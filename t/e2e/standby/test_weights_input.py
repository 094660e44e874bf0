"""llmgw-weights: whatever comes, a clear answer, and nothing is lost."""

import contextlib
import json
import os

import pytest

from llmgw.model.weights import (SEALS, WeightsClient, WeightsService, id_of,
    memfd, seal)
from llmgw.proc.wait import wait_for

DATA = os.urandom(1 << 20)
OTHER = os.urandom(1 << 20)

# Of a file, a wait, an engine's name, a file's name.
LARGEST = 16 << 40
LONGEST_MS = 365 * 24 * 3600 * 1000
ENGINE = "e" * 63
NAME = "n" * 255


@pytest.fixture
def service(cluster):
    return WeightsService(cluster)


def sealed_off():
    """Without MFD_ALLOW_SEALING."""
    return memfd(DATA, os.MFD_CLOEXEC)


def read_only():
    return os.open(f"/proc/self/fd/{memfd(DATA)}", os.O_RDONLY)


def write_only():
    return os.open(f"/proc/self/fd/{memfd(DATA)}", os.O_WRONLY)


def on_disk():
    return os.open(__file__, os.O_RDWR)


def of_size(bytes):
    """All of it a hole."""
    fd = memfd()
    os.ftruncate(fd, bytes)
    return fd


def largest():
    return of_size(LARGEST)


def too_large():
    return of_size(LARGEST + 1)


def of_huge_pages():
    """All of it is a hole, which lseek() does not report."""
    try:
        fd = memfd(flags=os.MFD_HUGETLB | os.MFD_ALLOW_SEALING)
    except OSError as error:
        pytest.skip(f"no huge pages: {error}")
    os.ftruncate(fd, 1 << 40)
    return fd


@pytest.mark.parametrize("make, reason", [
    (sealed_off, "not_sealable"), (on_disk, "not_memfd"),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (read_only, "not_sealable"), (write_only, "not_readable"),
        (lambda: os.pipe()[0], "not_memfd"), (memfd, "bad_size"),
        (too_large, "bad_size")))])
def test_only_a_memfd_can_be_put(service, make, reason):
    """And the writer may put another."""
    with service.client("e1") as writer:
        writer.hello("rw_or_ro").granted()
        fd = make()
        writer.put(fd)
        assert writer.refused() == reason
        assert writer.commit().refused() == "no_put"
        assert service.roles() == {"e1": "writer"}
        os.close(fd)


@pytest.mark.soak
def test_what_is_at_its_limit_is_taken(service):
    """And one beyond is not."""
    client = service.client(ENGINE + "e")
    assert client.hello("rw_or_ro").refused() == "bad_request"
    client.engine = ENGINE
    assert client.hello("rw_or_ro", LONGEST_MS + 1).refused() == "bad_request"
    assert client.hello("rw_or_ro", LONGEST_MS).granted() == "rw"
    fd = largest()
    assert client.put(fd, name=NAME + "n").refused() == "bad_request"
    client.put(fd, name=NAME)
    got = client.state()
    assert (got["name"], got["bytes"]) == (NAME, LARGEST)
    assert got["clients"][0]["engine"] == ENGINE
    assert client.commit().line(progress=True)["reason"] == "sparse"


@pytest.mark.soak
def test_size_that_lies_is_refused(service):
    writer = service.client("e1")
    writer.hello("rw_or_ro").granted()
    for bytes in (len(DATA) - 1, len(DATA) + 1, 0):
        assert writer.put(memfd(DATA), bytes).refused() == "bad_size"

    # It is right when it is put, and not when it is committed.
    fd = memfd(DATA)
    writer.put(fd)
    service.wait_roles(e1="writer")
    os.ftruncate(fd, 4096)
    assert writer.commit().refused() == "bad_size"
    writer.send(cmd="abort")
    writer.expect("aborted")
    assert writer.hello("rw_or_ro").granted() == "rw"
    assert writer.write(DATA)[0] == id_of(DATA)


def test_file_with_a_hole_is_committed_once_it_is_filled(service):
    """Its writer may still fill it: it was not sealed."""
    writer = service.client("e1")
    writer.hello("rw_or_ro").granted()
    fd = of_size(len(DATA))
    os.pwrite(fd, DATA[:4096], 0)
    os.pwrite(fd, DATA[8192:], 8192)
    assert writer.put(fd).commit().refused() == "sparse"
    assert "sparse, the memfd has holes" in service.proc.text()
    service.wait_roles(e1="writer")
    os.pwrite(fd, DATA[4096:8192], 4096)
    assert writer.commit().expect("committed")["id"] == id_of(DATA)


@pytest.mark.parametrize("make", [largest, of_huge_pages])
def test_holes_are_not_adopted(service, make):
    """It would take hours to hash them, in which no engine may write."""
    holder, loader = service.client("e1"), service.client("e2")
    fd = make()
    seal(fd)
    holder.adopt(fd, id_of(DATA))
    assert holder.refused() == "sparse"
    assert "sparse, the memfd has holes" in service.proc.text()
    assert loader.hello("rw_or_ro").granted() == "rw"
    assert service.memfds() == 0


def test_what_is_out_of_turn_is_refused_and_changes_nothing(service):
    writer, stranger = service.client("e1"), service.client("e2")
    for cmd in ("commit", "abort"):
        stranger.send(cmd=cmd)
        assert stranger.refused() == "not_writer"
    assert stranger.put(memfd(DATA)).refused() == "not_writer"
    stranger.send(cmd="get")
    assert stranger.refused() == "not_reader"

    writer.hello("rw_or_ro").granted()
    assert writer.hello("ro").refused() == "again"
    assert writer.adopt(memfd(DATA, seals=SEALS), id_of(DATA)) \
        .refused() == "again"
    assert writer.commit().refused() == "no_put"
    assert writer.put(None, len(DATA)).refused() == "no_fd"
    assert writer.put(memfd(DATA), name="../model").refused() == "bad_request"
    fd = memfd(DATA)
    writer.put(fd)
    assert writer.put(memfd(OTHER)).refused() == "second_put"
    writer.send(cmd="get")
    assert writer.refused() == "not_reader"
    assert writer.commit().expect("committed")["id"] == id_of(DATA)
    assert service.memfds() == 1


BAD = ["hello", '{"cmd":"hello","mode":"ro","timeout_ms":-1}']

MORE_BAD = [
    "[]", "{}", '{"cmd":"fly"}', '{"cmd":7}', '{"cmd":"hello"}',
    '{"cmd":"hello","mode":"wo","timeout_ms":1}',
    '{"cmd":"hello","mode":"rw","timeout_ms":1}',
    '{"cmd":"hello","mode":"ro","timeout_ms":1e3}',
    '{"cmd":"hello","mode":"ro","timeout_ms":99999999999999}',
    '{"cmd":"hello","mode":"ro","timeout_ms":1,"engine":"a b"}',
    '{"cmd":"hello","cmd":"state"}', "\x00"]


@pytest.mark.parametrize("line", [
    *BAD, *(pytest.param(line, marks=pytest.mark.soak) for line in MORE_BAD)])
def test_bad_line_is_refused_and_the_next_is_read(service, line):
    client = service.client("e1")
    client.send_bytes(line.encode() + b"\n")
    assert client.refused() == "bad_request"
    assert client.state()["ok"]
    assert service.roles() == {}


@pytest.mark.soak
def test_cut_line_ends_the_connection_and_its_role(service):
    writer, standby = service.client("e1"), service.client("e2")
    writer.hello("rw_or_ro").granted()
    standby.hello("rw_or_ro")
    service.wait_roles(e1="writer", e2="waits")
    fd = memfd(DATA)
    writer.send_bytes(b'{"cmd":"put","name":"m",', [fd])
    writer.close()
    assert standby.granted() == "rw"
    wait_for(lambda: service.memfds() == 0, "the end of its descriptor")
    endless = service.client("e3")
    with contextlib.suppress(OSError):
        endless.send_bytes(b"x" * 300000)
    assert endless.line() is None
    assert service.roles() == {"e2": "writer"}


@pytest.mark.soak
def test_line_may_come_in_pieces(service):
    writer = service.client("e1")
    writer.hello("rw_or_ro").granted()
    fd = memfd(DATA)
    line = json.dumps({"cmd": "put", "name": "m", "bytes": len(DATA)}).encode()
    writer.send_bytes(line[:1], [fd])
    for at in range(1, len(line)):
        writer.send_bytes(line[at:at + 1])
    writer.send_bytes(b"\n")
    assert writer.commit().expect("committed")["id"] == id_of(DATA)


@pytest.mark.soak
def test_too_many_connections_are_refused_and_nobody_is_lost(service):
    """64; one without a role gives its place to a newcomer."""
    clients = [service.client(f"e{i}").hello("ro", 60000) for i in range(63)]
    idle = service.client("idle")
    wait_for(lambda: len(idle.state()["clients"]) == 63, "all roles")
    writer = service.client("writer")
    assert writer.hello("rw_or_ro").granted() == "rw"
    assert idle.line() is None
    for _ in range(3):
        late = service.client("late")
        assert late.refused() == "busy"
        assert late.line() is None
    clients[0].close()
    wait_for(lambda: admitted(service), "a place")
    id, _ = writer.write(DATA)
    for one in clients[1:]:
        assert one.expect("granted")["id"] == id


def admitted(service):
    with WeightsClient(service.path) as client:
        return client.state().get("ok")
