"""An orchestrating replica: the whole model's text, from shards that each have
some of its layers.

Tests that leave the processes as they were share them: two shards, and an
orchestrator that logs what was computed.
"""

import json
import re
import signal
import subprocess

import pytest

from llmgw.model import llama
from llmgw.model.llama import Call, ask, chat, request
from llmgw.proc.wait import wait_for
from llmgw.shards.replica import LOGITS, Shards, until

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

LAYERS = 4
HELD = {"logprobs": 5}      # of a completion: long messages, see llama.Call
GREEDY = {"temperature": 0}
SAMPLED = {"temperature": .8, "top_p": .95, "seed": 7}
ENDLESS = {"ignore_eos": True}


@pytest.fixture(scope="module")
def shards(shared):
    shared.agent("gw", "gateway")
    made = Shards(shared, layers=LAYERS, hashed=True)
    made.shards("0-1", "2-3")
    made.orchestrator("o1")
    return made


def bodies(n):
    """Requests of several lengths, greedy and seeded ones by turns."""
    return [chat(f"request {i} " + "pa ne " * (i * 23 % 70),
                 **(GREEDY if i % 2 else {**SAMPLED, "seed": i}), **ENDLESS,
                 frequency_penalty=.2 * (i % 3)) for i in range(n)]


def says(replica, body):
    return ask(replica, request(body)).whole().says()


def sessions(member):
    return member.agent.table()[member.id]["active_requests"]


def wait_free(*members):
    for member in members:
        wait_for(lambda: sessions(member) == 0, f"no session of {member.id}")


def pipelines(orchestrator):
    """What it says of itself to its agent."""
    out = orchestrator.agent.ctl("--json", "status")
    return json.loads(out.stdout).get("pipelines", {})


# the same text

@pytest.mark.parametrize("body", [
    chat("who are you?", **SAMPLED, **ENDLESS),
    pytest.param({"prompt": "pa ne " * 60, "max_tokens": 30, **GREEDY,
                  **ENDLESS}, marks=pytest.mark.soak)])
def test_text_is_the_whole_models(shards, body):
    """A chat, and a completion of several chunks."""
    assert says(shards["o1"], body) == shards.undisturbed(body)


@pytest.mark.soak
def test_every_row_and_all_logits_are_the_whole_models(shards):
    whole = shards.single("whole")
    body = chat("a text of its own " * 9, **SAMPLED, **ENDLESS)
    assert says(shards["o1"], body) == says(whole, body)
    expected = {row for row in shards.rows("whole") if row[0] in (2, LOGITS)}
    assert len(expected) > 80
    assert expected <= shards.rows("s0-1", "s2-3")
    whole.proc.stop()


@pytest.mark.soak
def test_logprobs_are_the_whole_models(shards):
    body = {**chat("likely?", **GREEDY, **ENDLESS), "logprobs": True,
            "top_logprobs": 3}
    whole = shards.single("likely")

    def chunks(replica):
        return ask(replica, request(body)).whole().chunks
    got = chunks(shards["o1"])
    assert got == chunks(whole)
    assert "top_logprobs" in json.dumps(got)
    whole.proc.stop()


def test_streams_beside_each_other_do_not_disturb_each_other(shards):
    asked = bodies(8)
    calls = [Call(shards["o1"], request(body)) for body in asked]
    got = [call.end().whole().says() for call in calls]
    assert got == [shards.undisturbed(body) for body in asked]
    wait_free(shards["s0-1"], shards["s2-3"])


def test_a_stream_goes_on_by_its_ids_as_if_nothing_had_happened(shards):
    two = shards.orchestrator("o2", max_capacity=3)
    groups = [re.search(r'streams of group "([^"]+)"', one.proc.text())[1]
              for one in (shards["o1"], two)]
    assert groups[0] == groups[1]
    for body in bodies(2):
        whole = ask(shards["o1"], request(body)).whole()
        for n in 0, 1, 9, len(whole.ids):
            rest = ask(two, request(body, delivered=(whole, n))).whole_rest(n)
            assert whole.ids[:n] + rest.ids == whole.ids


def test_a_client_that_leaves_frees_its_sessions(shards):
    body = {"prompt": "go on", "max_tokens": 900, **GREEDY, **ENDLESS, **HELD}
    call = Call(shards["o1"], request(body), hold=5)
    assert until(call, 5)
    wait_for(lambda: sessions(shards["s0-1"]) == 1, "a session")
    call.cancel()
    wait_free(shards["s0-1"], shards["s2-3"])
    wait_for(lambda: pipelines(shards["o1"])["streams"] == 0, "no flow")


# who may serve

@pytest.mark.soak
def test_without_shards_it_is_starting(cluster):
    """It is ready once all layers are there; and not when one is gone."""
    cluster.agent("gw", "gateway")
    s = Shards(cluster, layers=LAYERS)
    o = s.orchestrator("o1", wait=False)
    wait_for(lambda: "no pipeline (shard_unavailable): " in o.proc.text(),
             "its word of that")
    assert s.service(o) == "STARTING"
    assert ask(o, request(chat("no?"))).code == "UNAVAILABLE"
    s.shards("0-1")
    assert s.service(o) == "STARTING"
    s.shards("2-3")
    s.wait_ready(o)
    assert "shards lead over all 4 layers" in o.proc.text()
    body = chat("now", **GREEDY)
    assert says(o, body) == s.undisturbed(body)
    s["s2-3"].proc.kill()
    wait_for(lambda: s.service(o) == "STARTING", "to see that it is gone")


def test_shards_that_are_full_make_it_full(cluster):
    """Not a failure, for a stream that has no token yet."""
    cluster.agent("gw", "gateway")
    s = Shards(cluster, layers=LAYERS)
    s.shards("0-3", shard_sessions=1)
    o = s.orchestrator("o1")
    body = {"prompt": "on", "max_tokens": 900, **GREEDY, **ENDLESS, **HELD}
    first = Call(o, request(body), hold=3)
    assert until(first, 3)
    second = ask(o, request(body))
    assert (second.code, second.reason) == ("RESOURCE_EXHAUSTED",
                                            "shard_full")
    assert s.service(o) == "READY"
    first.cancel()
    wait_for(lambda: o.agent.table()["s0-3"]["active_requests"] == 0,
             "the orchestrator to hear of a free place")
    assert ask(o, request(chat("again"))).whole()


def test_at_sigterm_its_streams_finish(cluster):
    cluster.agent("gw", "gateway")
    s = Shards(cluster, layers=LAYERS)
    s.shards("0-3")
    o = s.orchestrator("o1")
    body = {"prompt": "to the end", "max_tokens": 600, **SAMPLED, **ENDLESS,
            **HELD}
    expected = s.undisturbed(body)
    call = Call(o, request(body), hold=20)
    assert until(call, 20)
    o.proc.send(signal.SIGTERM)
    wait_for(lambda: "stopping, 1 streams run" in o.proc.text(), "that")
    late = ask(o, request(body))
    assert (late.code, late.details) == ("UNAVAILABLE", "replica is draining")
    assert call.end().whole().says() == expected
    assert o.proc.popen.wait(15) == 0


@pytest.mark.soak
def test_with_halves_the_cuts_are_part_of_the_group(cluster):
    """And a shard's replacement changes nothing where it begins as it did."""
    cluster.agent("gw", "gateway")
    s = Shards(cluster, layers=LAYERS)
    halves = {"activation_dtype": "fp16"}
    for part, id in ("0-1", "a"), ("2-3", "b"), ("2-3", "c"):
        s.shard(part, id, **halves)
    s.wait_ready(*s.members.values())
    o = s.orchestrator("o1", **halves)

    def group():
        return o.agent.table()["o1"]["resume_group"]
    before = group()
    body = {"prompt": "half", "max_tokens": 300, **SAMPLED, **ENDLESS, **HELD}
    expected = says(o, body)
    call = Call(o, request(body), hold=20)
    assert until(call, 20)
    s["b"].proc.kill()
    assert call.end().whole().says() == expected
    assert group() == before
    s.wait_ready(s.shard("0-3", "whole", **halves))
    wait_for(lambda: group() != before, "another group, with no cut")


def test_what_no_shard_has_room_for_is_the_requests_fault(cluster):
    """So nginx asks nobody else, and no breaker counts it."""
    cluster.agent("gw", "gateway")
    s = Shards(cluster, layers=LAYERS)
    s.shards("0-3", context_tokens=128)
    o = s.orchestrator("o1")
    long = ask(o, request({"prompt": "on", "max_tokens": 900, **GREEDY}))
    assert (long.code, long.reason) == ("FAILED_PRECONDITION", "context_full")
    assert ask(o, request(chat("short"))).whole()
    wait_free(s["s0-3"])


# when shards fail

def test_nobody_else_has_the_layers(cluster):
    """Two orchestrators, one with the whole model at hand."""
    cluster.agent("gw", "gateway")
    s = Shards(cluster, layers=LAYERS)
    s.shards("0-1", "2-3")
    poor = s.orchestrator("poor")
    rich = s.orchestrator("rich", fallback_local=s.model, threads=1)
    body = {"prompt": "fall", "max_tokens": 400, **SAMPLED, **ENDLESS, **HELD}
    calls = [Call(one, request(body), hold=20) for one in (poor, rich)]
    assert all(until(call, 20) for call in calls)
    s["s2-3"].proc.kill()
    lost, saved = (call.end() for call in calls)
    assert (lost.code, lost.reason) == ("UNAVAILABLE", "shard_unavailable")
    assert "layer 2" in lost.details
    assert saved.whole().says() == s.undisturbed(body)
    wait_for(lambda: pipelines(rich).get("fallbacks") == 1, "its count")
    assert "it goes on here" in rich.proc.text()


# what is refused at the start

@pytest.mark.parametrize("options, error", [
    ({"orchestrate": "h"}, "--orchestrate: needs --members PATH"),
    ({"orchestrate": "h", "members": "m", "model": "f"},
     "--model: not with --orchestrate"),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        ({"members": "m"}, "--members: needs --orchestrate HEAD"),
        ({"fallback_local": "f"}, "--fallback-local: needs --orchestrate HEAD"),
        ({"audit": "1%"}, "--audit: needs --orchestrate HEAD"),
        ({"orchestrate": "h", "members": "m", "audit": "1"},
         '--audit: "1" is not a share from 0% to 100%'),
        ({"orchestrate": "h", "members": "m", "audit": "101%"},
         '--audit: "101%" is not a share'),
        ({"orchestrate": "h", "members": "m", "engine": "llama",
          "model": "f"}, "--orchestrate: not with --engine llama"),
        ({"orchestrate": "h", "members": "m", "exact": "off"},
         "--exact: not with --orchestrate"),
        ({"orchestrate": "h", "members": "m", "activation_dtype": "int8"},
         '--activation-dtype: "int8" is not fp32 or fp16'),
        ({"orchestrate": "h", "members": "m", "activation_dtype": "fp16",
          "fallback_local": "f"},
         "--fallback-local: not with --activation-dtype"),
        ({"orchestrate": "h", "members": "m", "shard_tls_cert": "c"},
         "--shard-tls-key: is missing"),
        ({"engine": "orchestrate"}, '--engine: "orchestrate" is not one of'))),
])
def test_options_that_do_not_fit_are_refused(cluster, options, error):
    replica = cluster.replica("r1", start=False, **{"engine": None, **options})
    done = subprocess.run(replica.argv, capture_output=True, text=True,
                          timeout=20)
    assert done.returncode == 2
    assert done.stderr.startswith(f"llmgw-replica: {error}"), done.stderr
