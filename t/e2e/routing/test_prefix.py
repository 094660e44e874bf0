"""The prefix index: a conversation stays where its turns before went.

With the scorer prefix-affinity alone a prompt goes where most of it went
before, and unknown ones go anywhere.
"""

import json
import os
import signal

import pytest

from llmgw.fleet.native import get
from llmgw.fleet.native import http as passes
from llmgw.fleet.nginx import version
from llmgw.proc.seed import rng
from llmgw.proc.shm import Memory
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.affinity import homes as of_each

BLOCK = 64
POLICY = "llmgw_policy weighted prefix-affinity:1;"
TURN = "Conversation {1}, turn {0}: {2}. "
MAGIC = b"llmgwprx"


def said(number, turns):
    """All that a conversation's prompt holds in its last turn."""
    return "".join(TURN.format(t, number, "much " * 30) for t in range(turns))


def fleet(cluster, n=3, pool=POLICY, **nginx):
    """n replicas by address, without agents."""
    replicas = [cluster.replica(f"r{i}", token_delay="0ms") for i in range(n)]
    return cluster.static(replicas, pool=pool, **nginx)


def ask(nginx, prompt, target=None):
    """Over a connection of its own; the replica that served it."""
    with rpc.Client(target or nginx.target) as c:
        got = c.stream(prompt, 1)
    assert got.code == "OK", (got.code, got.details)
    return got.replicas[0]


def blocks(nginx):
    """(hits, misses)"""
    told = nginx.pool()["totals"]["prefix_blocks"]
    return told["hit"], told["miss"]


def spread(cluster):
    """Options, and a port whose connections all workers get their share of."""
    port = cluster.ports.take()
    http2 = " http2" if version() < (1, 25, 1) else ""
    return f"127.0.0.1:{port}", {
        "workers": 4, "server": f"listen 127.0.0.1:{port}{http2} reuseport;",
        "http": "log_format who '$pid'; access_log @dir@/who.log who;"}


def test_each_turn_goes_where_the_one_before_went(cluster):
    """Whichever of four workers takes it."""
    target, options = spread(cluster)
    nginx = fleet(cluster, 4, **options)
    conversations, turns = 20, 5
    homes = {}
    for turn in range(1, turns + 1):
        for i in range(conversations):
            got = ask(nginx, said(i, turn), target)
            assert homes.setdefault(i, got) == got, (turn, i)
    assert len(set(homes.values())) > 1
    took = set((nginx.dir / "who.log").read_text().split())
    assert len(took & set(map(str, nginx.workers()))) == 4

    whole = {t: len(said(0, t)) // BLOCK for t in range(turns + 1)}
    assert blocks(nginx) == (
        conversations * sum(whole[t] for t in range(turns)),
        conversations * whole[turns])


def test_turns_of_a_chat_share_their_blocks(cluster):
    """However they are spelt; and not with another salt."""
    nginx = fleet(cluster, openai=True, http="log_format who '$llmgw_replica';"
                  " access_log @dir@/who.log who;")

    def post(messages, **more):
        body = {"model": "sim", "max_tokens": 1, "messages": messages, **more}
        connection = sse.Connection(nginx.api)
        got = sse.result_of(connection.request(sse.CHAT, body))
        connection.close()
        assert got.error is None, got

    for i in range(6):
        first = {"role": "user", "content": said(i, 3)}
        parts = {"content": [{"text": said(i, 3), "type": "text"}],
                 "role": "user"}
        answer = {"role": "assistant", "content": said(i, 2)}
        hits, misses = blocks(nginx)
        post([first])
        assert blocks(nginx)[0] == hits
        added = blocks(nginx)[1] - misses
        assert added == len(said(i, 3)) // BLOCK
        post([parts, answer, {"role": "user", "content": "and then?"}])
        assert blocks(nginx)[0] == hits + added
        before = blocks(nginx)
        post([first], cache_salt="another")
        assert blocks(nginx) == (before[0], before[1] + added)

    def served():
        return [line for line in (nginx.dir / "who.log").read_text().split()
                if line != "-"]
    wait_for(lambda: len(served()) == 18, "the log")
    lines = served()
    for i in range(6):
        assert lines[3 * i] == lines[3 * i + 1]


def test_blocks_are_as_the_models_upstream_wants_them(cluster):
    """Not as that of the location, whose policy reads none."""
    other = cluster.replica("other", token_delay="0ms")
    nginx = fleet(
        cluster, 1, "", openai="llmgw_model m pool=other; llmgw_model sim;",
        http=f"upstream other {{ {POLICY} llmgw_prefix_index block=32;"
             f" server {other.target}; }}",
        server="location = /metrics { llmgw_metrics; }")
    messages = [{"role": "user", "content": said(0, 3)}]
    for model in ("m", "m", "sim"):
        connection = sse.Connection(nginx.api)
        got = sse.result_of(connection.request(
            sse.CHAT, {"model": model, "max_tokens": 1, "messages": messages}))
        connection.close()
        assert got.error is None, got
    n = (len(said(0, 3)) + len("?user?")) // 32
    text = nginx.get("/metrics")[1].decode()
    for upstream, result, count in (("other", "hit", n), ("other", "miss", n),
                                    ("llm", "hit", 0), ("llm", "miss", 0)):
        assert (f'llmgw_prefix_blocks_total{{upstream="{upstream}",'
                f'result="{result}"}} {count}\n') in text


@pytest.mark.parametrize("key", ["body", "prompt"])
def test_turns_under_a_native_pass(cluster, engines, key):
    nginx = cluster.static(engines(4), pool=POLICY,
                           **passes(f"llmgw_key {key};"))

    def post(messages):
        body = json.dumps({"messages": messages, "model": "m"}).encode()
        status, text = get(nginx, "", "/http/x", body)
        assert status == 200
        return text.split()[0]

    homes = set()
    for i in range(16):
        first = {"role": "user", "content": said(i, 3)}
        home = post([first])
        assert post([first, {"role": "assistant", "content": "yes"}]) == home
        homes.add(home)
    assert len(homes) > 1
    assert blocks(nginx)[0] >= 16 * (len(said(0, 3)) // BLOCK - 1)


@pytest.mark.soak
def test_key_of_a_header_has_no_blocks(cluster, engines):
    nginx = cluster.static(engines(2), pool=POLICY,
                           **passes("llmgw_key $http_x_session;"))
    for _ in range(3):
        assert get(nginx, "s", "/http/x", said(0, 3).encode())[0] == 200
    assert blocks(nginx) == (0, 0)


def test_replica_that_was_restarted_is_forgotten(cluster):
    nginx = cluster.fleet(1, nginx={"pool": POLICY})
    replica, n = cluster.replicas["r1"], len(said(0, 2)) // BLOCK
    ask(nginx, said(0, 2))
    ask(nginx, said(0, 2))
    assert blocks(nginx) == (n, n)

    def start():
        return nginx.replicas()["r1"]["replica_start_ms"]
    before = start()
    replica.kill()
    replica.start()
    wait_for(lambda: nginx.routable() == ["r1"] and start() != before,
             "the new process")
    ask(nginx, said(0, 2))
    assert blocks(nginx) == (n, 2 * n)


# reloads

def zone(line):
    return f"{POLICY} llmgw_prefix_index {line};"


def begun_anew(nginx):
    return nginx.log().count('zone "llm_prefix" has other settings')


def test_reload_keeps_the_index_or_says_so(cluster, load):
    """Streams that run when it begins anew are unharmed."""
    nginx = fleet(cluster, 2, pool=zone("blocks=500"))
    n = len(said(0, 3)) // BLOCK
    base = nginx.upstream.replace(zone("blocks=500"), "")

    def reload(pool, known):
        hits, misses = blocks(nginx)
        nginx.configure(upstream=base + pool)
        nginx.reload()
        ask(nginx, said(0, 3))
        assert blocks(nginx) == (hits + n * known, misses + n * (1 - known))

    ask(nginx, said(0, 3))
    reload(zone("blocks=500"), 1)
    reload(zone("blocks=500 match=300"), 1)
    assert begun_anew(nginx) == 0

    cluster.hold(1)
    work = load(nginx, [[f"prompt {i}", 5] for i in range(8)])
    work.running()
    for i, line in enumerate(["blocks=600", "blocks=600 size=8m",
                              "blocks=600 size=8m block=32"]):
        n = len(said(0, 3)) // (32 if "block=32" in line else BLOCK)
        reload(zone(line), 0)
        assert begun_anew(nginx) == i + 1
    cluster.let_go()
    assert all(r.code == "OK" for r in work.results())


@pytest.mark.soak
def test_index_begins_anew_with_the_upstreams_zone(cluster):
    """Its slots are other replicas' then."""
    nginx = fleet(cluster, 2)
    ask(nginx, said(0, 3))
    cluster.allowed.append("new workers count from zero")
    nginx.configure(upstream=nginx.upstream + " llmgw_zone llmgw_llm:3m;")
    nginx.reload()
    assert begun_anew(nginx) == 1
    ask(nginx, said(0, 3))
    assert blocks(nginx) == (0, len(said(0, 3)) // BLOCK)


def test_reload_that_failed_frees_nothing(cluster):
    """What it would have made anew is still in use."""
    nginx = fleet(cluster, 2, pool=zone("blocks=500"))
    cluster.allowed.append(r"\[emerg\].*no-such-file")
    good = nginx.upstream
    ask(nginx, said(0, 3))
    nginx.configure(upstream=good.replace("blocks=500", "blocks=600"),
                    http="include @dir@/no-such-file;")
    nginx.proc.send(signal.SIGHUP)
    wait_for(lambda: "no-such-file" in nginx.log(), "the refusal")
    nginx.configure(upstream=good, http="")
    nginx.reload()
    hits = blocks(nginx)[0]
    ask(nginx, said(0, 3))
    assert blocks(nginx)[0] == hits + len(said(0, 3)) // BLOCK


# sizes

@pytest.mark.soak
def test_zone_too_small_for_all_replicas_is_said_once(cluster):
    """Each keeps what it got; the first had its fill."""
    nginx = fleet(cluster, 2, pool="llmgw_zone llmgw_llm:512k; "
                  + zone("blocks=1100 size=104k"))
    homes = {}
    for i in range(60):
        homes[i] = ask(nginx, f"{i:04} " + said(i, 20))
    assert len(set(homes.values())) == 2
    assert nginx.log().count("too small for 1100 blocks of each replica") == 1
    assert ask(nginx, "0059 " + said(59, 20)) == homes[59]


@pytest.mark.soak
def test_without_a_master(cluster):
    nginx = fleet(cluster, 2, main="")
    text = nginx.conf.read_text()
    nginx.proc.send(signal.SIGQUIT)
    nginx.proc.told_to_end = True
    assert nginx.proc.wait(2) == 0
    nginx.conf.write_text(text.replace("master_process on",
                                       "master_process off"))
    cluster.launch(nginx)
    home = ask(nginx, said(0, 2))
    assert ask(nginx, said(0, 3)) == home
    assert blocks(nginx)[0] == len(said(0, 2)) // BLOCK


# deaths

def index_of(nginx):
    """Where its sequence lies; behind it, the replica that is written."""
    memory = Memory(nginx, MAGIC)
    return memory, memory.word(memory.address + 48)


def test_who_comes_next_mends_what_a_dead_worker_left(cluster):
    """The replica that was being written is forgotten, and no other."""
    nginx = fleet(cluster, 3)
    homes = {}

    def at(i):
        homes[i] = ask(nginx, said(i, 3))
        return homes[i]
    of_each(at, 3)
    memory, index = index_of(nginx)
    hit = int.from_bytes(memory.read(index + 4, 4), "little")
    lost = homes[max(homes)]    # it was written last
    memory.write(index, "I", 1)

    before = blocks(nginx)
    n = len(said(0, 3)) // BLOCK
    stay = [i for i in homes if homes[i] != lost]
    assert all(ask(nginx, said(i, 3)) == homes[i] for i in stay)
    assert blocks(nginx) == (before[0] + n * len(stay), before[1])
    assert nginx.log().count("prefix index was rebuilt") == 1
    gone = next(i for i in homes if homes[i] == lost)
    ask(nginx, said(gone, 3))
    assert blocks(nginx)[1] == before[1] + n
    assert hit < 3


@pytest.mark.soak
def test_workers_killed_under_load_leave_it_usable(cluster, load):
    """Killed at any instruction."""
    draw = rng("workers")
    cluster.allowed += ["exited on signal 9", "was locked by"]
    nginx = fleet(cluster, 3, workers=4)
    jobs = [[said(i, 4), 2] for i in range(200)]
    work = load(nginx, jobs, connections=4, seconds=3, starts_per_second=300,
                until_told=True)
    work.running()
    for _ in range(10):
        victim = draw.choice(sorted(nginx.workers()))
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: victim not in nginx.workers()
                 and len(nginx.workers()) == 4, "its successor")
    work.stop()
    results = work.results()
    assert sum(r.code == "OK" for r in results) > 0.1 * len(results)

    for i in range(1000, 1010):
        home = ask(nginx, said(i, 2))
        assert ask(nginx, said(i, 3)) == home
