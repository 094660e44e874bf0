"""What a shard takes and what it refuses: each limit at its edge and beyond.

The rules are those of docs/shards.md, "Rules of the wire".  How they are kept
in every order of events is tested in t/unit/replica/shard/serve/.
"""

import base64
import dataclasses
import hashlib
import json
import signal
import struct
import time

import grpc
import pytest

from llmgw.fleet import words
from llmgw.model import llama
from llmgw.proc.preload import compiled
from llmgw.proc.process import rss_kb
from llmgw.proc.wait import wait_for
from llmgw.shards.replica import Shards
from llmgw.shards.session import (CHUNK, HEADER, MESSAGE, ROWS, SESSIONS,
    STEPS, TENSOR, WINDOW, Session, facts, pb)
from llmgw.speak.rawh2 import RawH2, frame, unframe
from llmgw.speak.rpc import CHECK, FORWARD, health

built = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)
CONTEXT = 256
DOMAIN = b"llmgw shard session 1"


@pytest.fixture(scope="module")
def slices(shared):
    """Of a model of four layers, whose last shard computes logits."""
    return Shards(shared, layers=4)


@pytest.fixture(scope="module")
def shard(slices):
    """Layers 2-3 for as many sessions as there may be."""
    made = slices.shard("2-3", context_tokens=CONTEXT)
    made.facts = facts(made)
    return made


@pytest.fixture
def session(shard):
    """To be opened by the test."""
    made = Session(shard, shard.facts)
    yield made
    made.cancel()


def lone(slices, id, **options):
    """Layers 2-3 in a process without an agent, to be started."""
    return slices.cluster.replica(id, start=False, shard=slices.file("2-3"),
                                  threads=1, context_tokens=CONTEXT, **options)


def in_use(shard):
    """Sessions as its agent tells them."""
    return shard.agent.table()[shard.id]["active_requests"]


def check(shard, service):
    """Its health, by gRPC's own protocol."""
    try:
        got = shard.client.unary(CHECK, health.HealthCheckRequest(
            service=service), health.HealthCheckResponse)
    except grpc.RpcError as error:
        return error.code().name
    return "OK" if got.status == got.SERVING else "NOT_SERVING"


def nobody_left(shard):
    wait_for(lambda: in_use(shard) == 0, "sessions to be over")


def test_a_replica_that_is_no_shard_says_that_it_is_off(cluster):
    replica = cluster.replica("r1")
    asked = replica.client.forward(iter([pb.Request(open=pb.Open())]))
    with pytest.raises(grpc.RpcError) as caught:
        list(asked)
    assert caught.value.code().name == "UNIMPLEMENTED"
    assert (words.REASON, "experimental_disabled") in \
        caught.value.trailing_metadata()


@built
def test_a_session_computes_and_ends(shard, session):
    session.open()
    opened, f = session.opened, shard.facts
    assert (opened.context, opened.max_rows, opened.width) == (CONTEXT, ROWS,
                                                               f.width)
    session.step(0, rows=32).step(32, rows=1, logits_rows=1)
    assert session.result() == (0, 0, b"")
    position, rows, logits = session.result()
    assert (position, rows, len(logits)) == (32, 1, 4 * opened.vocabulary)

    # Another one, whose steps are other ones, has the same logits.
    again = Session(shard, f, number=8).open()
    for at in range(0, 32, 8):
        again.step(at, rows=8)
        again.result()
    assert again.step(32, rows=1, logits_rows=1).result() == (32, 1, logits)
    assert again.close().end() == session.half_close().end() == ("OK", None)


@pytest.mark.soak
@built
def test_one_that_stops_early_returns_its_rows(shard, session):
    assert session.open(last_layer=2).opened.vocabulary == 0
    position, rows, data = session.step(0, rows=3).result()
    assert (position, rows, len(data)) == (0, 3, 3 * 4 * shard.facts.width)
    assert session.step(3, logits_rows=1).end() == ("INVALID_ARGUMENT",
                                                    "bad_shape")


@built
def test_a_shard_generates_nothing(shard):
    assert shard.client.generate("hello", 3).code == "UNIMPLEMENTED"
    for service, code in (("", "OK"), ("llmgateway.shard.Shard", "OK"),
                          ("llmgateway.LLMReplica", "NOT_FOUND")):
        assert check(shard, service) == code


@built
@pytest.mark.parametrize("fields, answer", [
    ({"weights_id": bytes(32)}, "weights_mismatch"),
    ({"first_layer": 1}, "bad_layers"),
    ({"dtype": pb.FP16}, "numerics_mismatch"),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        ({"model": "other"}, "weights_mismatch"),
        ({"first_layer": 3}, "bad_layers"),
        ({"last_layer": 4}, "bad_layers"),
        ({"numerics_id": "llama-shard-0"}, "numerics_mismatch"),
        ({"rows": CONTEXT + 1}, "context_full"),
        ({"caller": "no name"}, "bad_shape"))),
])
def test_an_open_for_something_else_is_refused(session, fields, answer):
    assert session.ask(**fields).end()[1] == answer


@pytest.mark.soak
@built
def test_rows_and_bytes_of_a_step_at_the_edge_and_beyond(shard, session):
    session.open(rows=CONTEXT).step(0, rows=ROWS)
    assert session.result() == (0, 0, b"")
    row = 4 * shard.facts.width
    for n, fields in enumerate((
            {"rows": ROWS + 1}, {"rows": 0, "data": b"", "chunks": 0},
            {"rows": 2, "logits_rows": 3}, {"rows": 2, "data": bytes(row)},
            {"data": bytes(row - 1)}, {"data": bytes(row + 1)},
            {"chunks": 2}, {"chunk": 1}, {"chunks": 0})):
        other = Session(shard, shard.facts, n + 1).open()
        assert other.step(0, **fields).end() == ("INVALID_ARGUMENT",
                                                 "bad_shape"), fields
    session.step(32).result()           # which none of this has touched


@pytest.mark.soak
@built
def test_a_tensor_over_64_mib_is_refused_before_it_comes(shard):
    """Nothing of it is sent but the first chunk's numbers."""
    for chunks, answer in ((TENSOR // CHUNK, "bad_shape"),
                           (TENSOR // CHUNK + 1, "tensor_too_large")):
        session = Session(shard, shard.facts).open()
        session.step(0, chunks=chunks, data=b"")
        assert session.end() == ("INVALID_ARGUMENT", answer)
    rows = TENSOR // 4 // shard.facts.width
    for more, answer in ((0, "bad_shape"), (1, "tensor_too_large")):
        session = Session(shard, shard.facts).open()
        session.send(pb.Request(step=pb.Step(
            session=7, rows=rows + more, chunks=TENSOR // CHUNK)))
        assert session.end() == ("INVALID_ARGUMENT", answer)


@built
def test_a_message_over_its_limit_is_not_read(shard):
    empty = shard.facts.step(7, 0, data=b"").ByteSize()
    spare = MESSAGE - empty - 8         # the lengths before the data
    for more, code, answer in ((0, "INVALID_ARGUMENT", "bad_shape"),
                               (1, "INVALID_ARGUMENT", "tensor_too_large")):
        session = Session(shard, shard.facts).open()
        data = bytes(spare)
        while shard.facts.step(7, 0, data=data).ByteSize() < MESSAGE + more:
            data += b"\0"
        assert shard.facts.step(7, 0, data=data).ByteSize() == MESSAGE + more
        assert session.step(0, data=data).end() == (code, answer)


@built
def test_a_stranger_sends_no_more_than_an_open(shard):
    """A shard's memory is not for those that it has not let in: the length is
    refused, before anything of the message comes."""
    with RawH2(shard.target) as raw:
        for size, refused in ((HEADER + 1, True), (HEADER, False)):
            sid = raw.request(FORWARD, struct.pack(">BI", 0, size), end=False)
            if refused:
                answer = raw.wait(sid)
                assert answer.grpc_status == 3      # INVALID_ARGUMENT
                assert answer.get("llmgw-reason") == "tensor_too_large"
        opened = Session(shard, shard.facts).open()
        opened.step(0).result()
        assert not raw.answers[sid].ended
        opened.cancel()
    assert facts(shard) == shard.facts


@pytest.mark.soak
@built
def test_a_message_of_no_known_kind_ends_the_stream(shard, session):
    session.open().send(pb.Request())
    assert session.end() == ("INVALID_ARGUMENT", None)
    twice = Session(shard, shard.facts).open().ask()
    assert twice.end() == ("INVALID_ARGUMENT", None)
    with RawH2(shard.target) as raw:
        sid = raw.request(FORWARD, frame(b"\x0a\xff"), end=False)
        assert raw.wait(sid).grpc_status == 3       # INVALID_ARGUMENT


@pytest.mark.soak
@built
def test_positions_go_up_by_one_to_the_contexts_end(shard, session):
    session.open().step(0, rows=4)
    session.result()
    assert session.step(0, rows=4).end() == ("FAILED_PRECONDITION",
                                             "bad_position")
    skips = Session(shard, shard.facts).open().step(1)
    assert skips.end()[1] == "bad_position"
    unopened = Session(shard, shard.facts).step(0)
    assert unopened.end() == ("FAILED_PRECONDITION", "unknown_session")
    foreign = Session(shard, shard.facts, number=8).open()
    foreign.send(shard.facts.step(9, 0))
    assert foreign.end()[1] == "unknown_session"

    whole = Session(shard, shard.facts).open()
    for at in range(0, CONTEXT, ROWS):
        whole.step(at, rows=ROWS).result()
    assert whole.step(CONTEXT).end() == ("FAILED_PRECONDITION", "context_full")


@pytest.mark.soak
@built
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_values_that_no_model_has_are_corruption(shard, session, value):
    session.open().step(0, rows=8)
    session.result()
    data = struct.pack("<f", value) * shard.facts.width
    assert session.step(8, data=data).end() == ("DATA_LOSS", "shard_corruption")


@pytest.mark.soak
@built
def test_a_shard_has_64_sessions_and_no_more(shard):
    nobody_left(shard)
    all_of_them = [Session(shard, shard.facts, n + 1).open()
                   for n in range(SESSIONS)]
    one_more = Session(shard, shard.facts, SESSIONS + 1).ask()
    assert one_more.end() == ("RESOURCE_EXHAUSTED", "shard_full")
    assert all_of_them[5].close().end() == ("OK", None)
    all_of_them[5] = Session(shard, shard.facts, SESSIONS + 1).open()
    for session in all_of_them:
        session.step(0, logits_rows=1)
    assert len({session.result()[2] for session in all_of_them}) == 1
    for session in all_of_them:
        session.cancel()
    nobody_left(shard)


def answers(raw, sid):
    """The replies that a raw stream has by now."""
    return [pb.Reply.FromString(m)
            for m in unframe(raw.answers[sid].data)[0]]


@pytest.mark.soak
@built
@pytest.mark.parametrize("n", [STEPS, STEPS + 1])
def test_four_steps_may_be_outstanding(slices, n):
    """They come at once, since the shard stands still meanwhile."""
    shard = slices.shard("2-3", id=f"s-{n}", shard_sessions=1,
                         context_tokens=CONTEXT, slow_ms=50)
    f = facts(shard)
    with RawH2(shard.target) as raw:
        sid = raw.request(FORWARD, frame(f.request().SerializeToString()),
                          end=False)
        wait_for(lambda: raw.pump(1) and answers(raw, sid), "Opened")
        shard.proc.freeze()
        steps = [f.step(7, at, logits_rows=1) for at in range(n)]
        raw.send(sid, b"".join(frame(s.SerializeToString()) for s in steps),
                 end=n == STEPS)
        shard.proc.thaw()
        answer = raw.wait(sid)
        replies = answers(raw, sid)
    assert answer.get(words.REASON) == (
        None if n == STEPS else "too_many_steps")
    if n == STEPS:
        assert [r.result.position for r in replies
                if r.WhichOneof("kind") == "result"] == [0, 1, 2, 3]
    nobody_left(shard)


@built
def test_a_stream_has_a_window_of_16_mib(shard):
    with RawH2(shard.target) as raw:
        wait_for(lambda: raw.pump(1) and
                 raw.h2.remote_settings.initial_window_size == WINDOW,
                 "its settings")


@pytest.mark.soak
@built
def test_a_session_ends_by_the_clock(slices, tmp_path):
    """An hour in a moment: the shard's clock is set ahead."""
    seconds = tmp_path / "seconds"

    def at(n):
        """In one move: half a file would set the clock back."""
        new = tmp_path / "new"
        new.write_text(str(n))
        new.rename(seconds)
    at(0)
    shard = lone(slices, "s-clock", shard_idle="0")
    shard.env = {"LD_PRELOAD": compiled("shifted_clock", tmp_path),
                 "ASAN_OPTIONS": "verify_asan_link_order=0",
                 "LLMGW_TEST_SECONDS": str(seconds)}
    f = facts(shard.start())
    silent, busy = Session(shard, f, 1).open(), Session(shard, f, 2).open()
    for n in range(1, 72):
        at(50 * n)                      # busy has a step each 50 s
        busy.step(n - 1).result()
    assert silent.end() == ("FAILED_PRECONDITION", "session_expired")
    at(3570)
    busy.step(71).result()
    at(3601)
    assert busy.end() == ("FAILED_PRECONDITION", "session_expired")


@pytest.mark.soak
@built
def test_a_killed_client_leaves_nothing(slices):
    """Sixteen sessions, each with four steps of 90 kB, at the kill."""
    shard = slices.shard("2-3", id="s-left", context_tokens=CONTEXT,
                         shard_sessions=16, slow_ms=20)
    f = facts(shard)
    memory = []
    for n in range(4):
        client = slices.cluster.script(
            f"client-{n}", "shards/session.py", shard.target,
            json.dumps(dataclasses.asdict(f)), 16, pipes=True)
        assert client.popen.stdout.readline() == "open\n"
        wait_for(lambda: in_use(shard) == 16, "its agent to know")
        client.kill()
        nobody_left(shard)
        again = Session(shard, f).open()    # behind what the plugin had yet
        again.step(0, logits_rows=1).result()
        assert again.close().end() == ("OK", None)
        memory.append(rss_kb(shard.proc.pid))
    assert memory[-1] - memory[0] < 3 * 16 * 4 * 90 / 2, memory


@built
def test_an_idle_slice_is_unloaded_and_comes_back(slices):
    shard = slices.shard("2-3", id="s-idle", context_tokens=CONTEXT,
                         shard_idle="500ms")
    f = facts(shard)

    def told():
        return shard.agent.table().get(shard.id, {}).get("shard") or {}
    wait_for(lambda: "the slice is unloaded" in shard.proc.text(), "that")
    wait_for(lambda: told().get("loaded") is False, "its agent to know")
    assert told()["memory"] == f.bytes      # which it would need
    session = Session(shard, f).open()
    wait_for(lambda: told().get("loaded"), "its agent to know")
    assert len(session.step(0, logits_rows=1).result()[2]) > 0
    assert session.close().end() == ("OK", None)


@built
def test_memory_has_a_limit(slices, shard):
    """The slice's own need is the edge of what it starts with."""
    f = shard.facts
    small = lone(slices, "s-small", shard_max_memory=f.bytes - 1).start()
    small.proc.told_to_end = True           # by itself
    assert small.proc.wait(60) == 1
    assert (f"the slice needs {f.bytes} bytes with 64 sessions of {CONTEXT} "
            f"tokens, --shard-max-memory is {f.bytes - 1}"
            in small.proc.text())
    tight = lone(slices, "s-tight", shard_max_memory=f.bytes).start()
    facts(tight)
    session = Session(tight, f).open().step(0)
    assert session.end() == ("RESOURCE_EXHAUSTED", "out_of_memory")


@pytest.mark.soak
@built
def test_a_key_opens_sessions(slices, shard, tmp_path):
    key = bytes(range(32))
    path = tmp_path / "key"
    path.write_text("* " + base64.b64encode(key).decode() + "\n")
    path.chmod(0o600)
    keyed = lone(slices, "s-keyed", shard_key=path).start()
    facts(keyed)

    def token(shard, number=7):
        mac = hashlib.blake2b(key=key, digest_size=32)
        minute = int(time.time()) // 60
        for part in (DOMAIN, b"orch", struct.pack("<Q", number), shard,
                     f.model.encode(), struct.pack("<Q", minute)):
            mac.update(struct.pack("<Q", len(part)) + part)
        return mac.digest()
    f = shard.facts
    for wrong in (b"", bytes(32), token(b"s-other"), token(b"s-keyed", 8)):
        assert Session(keyed, f).ask(token=wrong).end() == (
            "UNAUTHENTICATED", "bad_token")
    session = Session(keyed, f).open(token=token(b"s-keyed"))
    assert session.close().end() == ("OK", None)


@built
def test_sigterm_lets_sessions_end_until_it_is_repeated(slices):
    shard = lone(slices, "s-stop", drain_timeout="60s").start()
    f = facts(shard)
    session = Session(shard, f, 1).open()
    idle = Session(shard, f, 2).open()
    shard.proc.send(signal.SIGTERM)
    wait_for(lambda: "stopping" in shard.proc.text(), "that")
    late = Session(shard, f, 3).ask()
    assert late.end() == ("UNAVAILABLE", "draining")
    assert len(session.step(0, logits_rows=1).result()[2]) > 0
    assert session.close().end() == ("OK", None)
    shard.proc.send(signal.SIGTERM)
    assert idle.end() == ("UNAVAILABLE", "draining")
    assert shard.proc.wait() == 0
