"""Through nginx, with the front of OpenAI's API: a client does not see that a
shard or an orchestrator was lost."""

import pytest

from llmgw.model import llama
from llmgw.model.llama import chat
from llmgw.proc.wait import wait_for
from llmgw.shards.replica import Shards
from llmgw.speak import sse

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

STREAMS = 3
TOKENS, STEP_MS = 90, 6         # over a second
TRIES = 3           # where the machine lets the streams end before the kill


def conversation(i):
    return {**chat(f"conversation {i} " + "so la " * (5 * i)),
            "model": "tiny-random", "max_tokens": TOKENS, "stream": True,
            "stream_options": {"include_usage": True}, "ignore_eos": True,
            "seed": i, "temperature": .8 if i % 2 else 0}


def says(result):
    assert result.error is None, result.error
    return result.text[0], result.finish_reason[0], (
        result.usage["prompt_tokens"], result.usage["completion_tokens"])


@pytest.fixture(scope="module")
def fleet(shared):
    """Two orchestrators, each slice at two shards, nginx."""
    if not llama.is_built():
        pytest.skip(llama.MISSING)
    shared.agent("gw", "gateway")
    s = Shards(shared)
    s.cut("0-3", "4-7", "head")
    made = [s.shard(part, f"{x}{part}", slow_ms=STEP_MS)
            for x in "ab" for part in ("0-3", "4-7")]
    s.wait_ready(*made)
    s.orchestrator("o1"), s.orchestrator("o2")
    nginx = s.gateway()
    wait_for(lambda: nginx.routable() == ["o1", "o2"], "orchestrators")
    return s, nginx


class Streams:
    """Several at a time, over connections of their own."""

    def __init__(self, nginx):
        self.asked = [conversation(i) for i in range(STREAMS)]
        self.connections = [sse.Connection(nginx.api) for _ in self.asked]
        self.answers = [c.request(sse.CHAT, body) for c, body in
                        zip(self.connections, self.asked)]

    def until(self, n):
        for answer in self.answers:
            answer.wait_events(n)

    def undisturbed(self, s):
        got = [says(sse.result_of(answer)) for answer in self.answers]
        for c in self.connections:
            c.close()
        for body, said in zip(self.asked, got):
            text, _, finish, usage = s.undisturbed(body)
            assert said == (text, finish, usage)


def test_nginx_serves_orchestrators_and_no_shards(fleet):
    s, nginx = fleet
    assert set(nginx.replicas()) == {"o1", "o2"}
    table = s.cluster.gateway.table()
    assert {id for id, row in table.items() if row["role"] == "shard"} == \
        {"a0-3", "a4-7", "b0-3", "b4-7"}


def test_a_shard_is_killed_under_streams(fleet):
    s, nginx = fleet

    def lost():
        return sum(s[id].proc.text().count("lost shard")
                   for id in ("o1", "o2"))

    def hits():
        streams, before = Streams(nginx), lost()
        streams.until(5)
        s["a0-3"].kill()
        s["b4-7"].kill()
        streams.undisturbed(s)
        s.restart("a0-3"), s.restart("b4-7")
        return lost() > before
    assert any(hits() for _ in range(TRIES))


def test_an_orchestrator_is_killed_under_streams(fleet):
    s, nginx = fleet

    def hits():
        streams = Streams(nginx)
        streams.until(5)
        load = {id: r["in_flight"] for id, r in nginx.replicas().items()}
        victim = max(load, key=load.get)
        if load[victim]:
            s[victim].kill()
        streams.undisturbed(s)
        if load[victim]:
            s.restart(victim)
        return load[victim] > 0
    assert any(hits() for _ in range(TRIES))
    wait_for(lambda: nginx.routable() == ["o1", "o2"], "both again")
