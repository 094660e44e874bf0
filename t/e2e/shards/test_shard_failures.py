"""What a client, nginx's log and its pages say of shards that failed."""

import re

import pytest

from llmgw.model import llama
from llmgw.model.llama import chat
from llmgw.proc.wait import wait_for
from llmgw.shards.replica import Shards
from llmgw.speak import sse

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

TOKENS, STEP_MS = 120, 8
LOG = ("log_format vars '$llmgw_shard_failures|$llmgw_shard_failure';"
       " access_log @dir@/vars.log vars;")
TRIES = 3           # where the machine lets the stream end before the kill


def body(i):
    return {**chat(f"conversation {i}"), "model": "tiny-random",
            "max_tokens": TOKENS, "stream": True, "ignore_eos": True,
            "temperature": 0}


@pytest.fixture
def fleet(cluster):
    """One orchestrator; the first layers once, the last ones twice."""
    cluster.agent("gw", "gateway")
    s = Shards(cluster, layers=4)
    s.cut("0-1", "2-3", "head")
    made = [s.shard("0-1", "a", zone="here"),
            s.shard("2-3", "b", zone="here", slow_ms=STEP_MS),
            s.shard("2-3", "c", zone="there", slow_ms=STEP_MS)]
    s.wait_ready(*made)
    s.orchestrator("o1", zone="here")
    nginx = s.gateway(http=LOG, pool="llmgw_queue hold=0;",
                      server="location = /metrics { llmgw_metrics; }")
    wait_for(lambda: nginx.routable() == ["o1"], "the orchestrator")
    return s, nginx


def counted(nginx):
    page = nginx.get("/metrics")[1].decode()
    return {outcome: int(n) for outcome, n in re.findall(
        r'^llmgw_shard_failures_total{[^}]*outcome="(\w+)"[^}]*} (\d+)$',
        page, re.M)}


def logged(nginx):
    """The last line of a stream; pages are requests, too, and have "-"."""
    def lines():
        return [line for line in
                (nginx.dir / "vars.log").read_text().splitlines()
                if not line.startswith("-")]
    return wait_for(lines, "a stream's line")[-1]


def killed_under(nginx, i, *shards):
    """A stream in whose middle these are killed."""
    connection = sse.Connection(nginx.api)
    answer = connection.request(sse.CHAT, body(i))
    answer.wait_events(5)
    for shard in shards:
        shard.kill()
    result = sse.result_of(answer)
    connection.close()
    return result


def test_a_failure_that_the_client_does_not_notice_is_counted(fleet):
    s, nginx = fleet

    def hits():
        result = killed_under(nginx, 1, s["b"])
        assert result.error is None, result.error
        assert result.text[0] == s.undisturbed(body(1))[0]
        hit = "lost shard" in s["o1"].proc.text()
        if not hit:
            s.restart("b")
        return hit
    assert any(hits() for _ in range(TRIES))
    assert logged(nginx) == \
        "1|the shard of layers 2-3 ended or cannot be reached"
    assert counted(nginx) == {"survived": 1, "lost": 0}
    assert nginx.pool()["totals"]["shard_failures"] == {"survived": 1,
                                                        "lost": 0}


def test_an_error_says_which_layers_failed_and_names_no_shard(fleet):
    s, nginx = fleet
    result = killed_under(nginx, 2, s["b"], s["c"])
    said = result.error["message"]
    failure = re.search(
        r"the shard of layers 2-3 ended or cannot be reached, and no other "
        r"shard can compute layer 2$", said)
    assert failure, said
    assert "127.0.0.1" not in said and '"' not in said
    failures, _, text = logged(nginx).partition("|")
    assert int(failures) >= 1 and text == failure[0]
    got = counted(nginx)
    assert got["survived"] == 0 and got["lost"] == int(failures)
    assert 'lost shard "' in s["o1"].proc.text()
