"""Affinity: the turns of a conversation find the replica of the first."""

import collections
import concurrent.futures

from llmgw.proc.wait import wait_for
from llmgw.speak import sse

CONVERSATIONS, TURNS, AT_ONCE = 100, 4, 8
SYSTEM = "You are the assistant of a large company. ".ljust(3000, "#")
LOG = {"http": "log_format who '$http_x_turn $llmgw_replica';"
               " access_log @dir@/who.log who;", "openai": True}


def served(nginxes):
    """{conversation: the replica of each turn}"""
    turns = collections.defaultdict(dict)
    for nginx in nginxes:
        for line in (nginx.dir / "who.log").read_text().splitlines():
            turn, replica = line.split(" ", 1)
            if turn != "-":
                conversation, n = map(int, turn.split("."))
                turns[conversation][n] = replica
    return turns


def converse(nginxes, number):
    """Each turn goes to the next gateway and carries what was said."""
    messages = [{"role": "system", "content": SYSTEM}]
    connections = [sse.Connection(n.api) for n in nginxes]
    for turn in range(TURNS):
        messages.append({"role": "user",
                         "content": f"question {turn} of {number}"})
        response = connections[turn % len(nginxes)].request(
            sse.CHAT, {"model": "sim", "messages": messages, "max_tokens": 2},
            headers={"x-turn": f"{number}.{turn}"})
        got = sse.result_of(response)
        assert got.error is None, got
        messages.append({"role": "assistant", "content": got.text[0]})
    for connection in connections:
        connection.close()


def test_later_turns_find_the_replica_of_the_first(cluster):
    for id in ("gw", "gw2"):
        cluster.agent(id, "gateway")
    ids = [f"r{n}" for n in range(8)]
    for id in ids:
        cluster.pair(id, token_delay="0ms")
    nginxes = [cluster.nginx(gateway=cluster.agents[id], hash="", **LOG)
               for id in ("gw", "gw2")]
    for nginx in nginxes:
        wait_for(lambda: nginx.routable() == ids, "eight replicas")
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda n: converse(nginxes, n), range(CONVERSATIONS)))

    # A line is logged after the last byte of its answer.
    turns = wait_for(lambda: (t := served(nginxes)) and sum(
        map(len, t.values())) == CONVERSATIONS * TURNS and t, "the log")
    assert len(turns) == CONVERSATIONS
    later = [t[n] == t[0] for t in turns.values() for n in range(1, TURNS)]
    assert len(later) == CONVERSATIONS * (TURNS - 1)
    assert sum(later) >= 0.9 * len(later), sum(later) / len(later)
    firsts = collections.Counter(t[0] for t in turns.values())
    assert set(firsts) == set(ids), firsts
    assert max(firsts.values()) < CONVERSATIONS / 3, firsts
