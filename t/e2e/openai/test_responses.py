"""Responses that engines keep: those that go on from one, and those that ask
for one, come to the engine that has it, and to no other account's."""

import os
import signal

import pytest

from llmgw.proc.wait import wait_for
from llmgw.speak import keyfile, sse

PATH = "/v1/responses"


def fleet(cluster, n=3, **more):
    return cluster.engines_fleet(n, "vllm", **more)


def ask(target, text="hello", previous=None, key=None, path=PATH, method=None,
        stream=False):
    body = {"model": "mock-model", "input": text, "max_output_tokens": 4,
            "stream": stream}
    if previous:
        body["previous_response_id"] = previous
    with sse.Connection(target) as c:
        r = c.request(path, body if method is None else None, method=method,
                      headers={"authorization": f"Bearer {key}"} if key else {},
                      strict=False)
        r.read()
        return r


def place(cluster, id):
    """Which engine has it, by their logs."""
    return [e for e, engine in cluster.engines.items()
            if ask(engine.target, path=f"{PATH}/{id}", method="GET").status
            == 200]


def missing(r, id):
    error = r.json["error"]
    assert r.status == 404 and id in error["message"]
    assert error["type"] == "invalid_request_error"
    return True


def test_chain_stays_where_it_began(cluster):
    """Each turn has another key, and the engine has all that was said."""
    nginx = fleet(cluster)
    used = set()
    for n in range(6):
        r = ask(nginx.api, f"begin {n}")
        first = id = r.json["id"]
        prompt = 0
        for turn in range(4):
            r = ask(nginx.api, f"go on {n} {turn}", id, stream=bool(turn % 2))
            assert r.status == 200, r.body
            if turn % 2:
                r.text = r.body
                r._take_events()
                answer = r.events[-1].json["response"]
            else:
                answer = r.json
            assert answer["usage"]["input_tokens"] > prompt
            prompt, id = answer["usage"]["input_tokens"], answer["id"]
        assert place(cluster, first) == place(cluster, id)
        used.update(place(cluster, id))
    assert len(used) > 1


def test_response_is_asked_for_by_its_id(cluster):
    nginx = fleet(cluster)
    answer = ask(nginx.api).json
    id = answer["id"]
    path = f"{PATH}/{id}"
    r = ask(nginx.api, path=path, method="GET")
    assert (r.status, r.json) == (200, answer)
    r = ask(nginx.api, path=f"{path}?include=a&b=%20", method="GET")
    assert r.status == 200
    r = ask(nginx.api, path=path + "/input_items", method="GET")
    assert r.json["data"] == [{"role": "user", "content": "hello"}]
    r = ask(nginx.api, path=path + "/cancel", method="POST")
    assert r.json["status"] == "cancelled"
    r = ask(nginx.api, path=path, method="DELETE")
    assert r.json == {"id": id, "object": "response", "deleted": True}
    r = ask(nginx.api, path=path, method="GET")
    assert r.status == 404 and id in r.json["error"]["message"]
    assert r.json["error"]["type"] == "NotFoundError"       # the engine's words
    r = ask(nginx.api, path=path, method="PUT")
    assert (r.status, r.headers["allow"]) == (405, "GET, DELETE, OPTIONS")
    for bad in ("/any", "/cancel/", "%20", "/.."):
        r = ask(nginx.api, path=path + bad, method="GET")
        assert r.status in (400, 404)


def test_what_is_not_known_is_not_found(cluster):
    nginx = fleet(cluster, 2)
    for id in ("resp_none", "x", "a" * 200, "\\u0000", "é"):
        r = ask(nginx.api, previous=id)
        assert r.status == 404
        assert r.json["error"]["code"] == "previous_response_not_found"
        assert r.json["error"]["param"] == "previous_response_id"
    assert missing(ask(nginx.api, path=f"{PATH}/resp_none", method="GET"),
                   "resp_none")
    assert not any(e.events("request", PATH)
                   for e in cluster.engines.values())


def test_response_of_a_process_that_ended_is_gone(cluster):
    nginx = fleet(cluster, 2)
    id = ask(nginx.api).json["id"]
    [engine] = place(cluster, id)
    adapter = cluster.replicas["a" + engine[1:]]
    adapter.kill()
    wait_for(lambda: len(nginx.routable()) == 1, "the view to show it")
    assert missing(ask(nginx.api, previous=id), id)
    adapter.start()
    wait_for(lambda: len(nginx.routable()) == 2, "it to be back")
    assert missing(ask(nginx.api, previous=id), id)
    assert missing(ask(nginx.api, path=f"{PATH}/{id}", method="GET"), id)


def test_full_replica_is_waited_for_alone(cluster):
    """Another one has room all the while."""
    nginx = fleet(cluster, 2, adapter={"max_capacity": 1})
    id = ask(nginx.api).json["id"]
    [engine] = place(cluster, id)
    cluster.engines[engine].faults(gate=0)
    with sse.Connection(nginx.api) as busy, sse.Connection(nginx.api) as next:
        body = {"model": "mock-model", "input": "a", "max_output_tokens": 4,
                "previous_response_id": id}
        r = busy.request(PATH, body, strict=False)
        wait_for(lambda: nginx.in_flight() == 1, "the first to run")
        waits = next.request(PATH, body, strict=False)
        wait_for(lambda: nginx.waiting() == 1, "the second to wait")
        cluster.let_go()
        for one in (r, waits):
            one.read()
            assert one.status == 200
            assert place(cluster, one.json["id"]) == [engine]


def test_workers_that_are_killed_leave_the_map_whole(cluster):
    nginx = fleet(cluster, 2, nginx={"workers": 2})
    cluster.allowed.append("exited on signal 9")
    ids = [ask(nginx.api, f"begin {n}").json["id"] for n in range(8)]
    for _ in range(3):
        before = nginx.workers()
        os.kill(before[0], signal.SIGKILL)
        wait_for(lambda: before[0] not in nginx.workers()
                 and len(nginx.workers()) == 2, "another worker")
        for id in ids:
            assert ask(nginx.api, "on", id).status == 200


def chains(cluster, tmp_path, many):
    """Of five responses each, of two accounts, over three engines."""
    keys = keyfile.KeyFile(tmp_path)
    accounts = [keys.add(name) for name in ("one", "two")]
    nginx = fleet(cluster, 3, nginx={"http": keys.directive(),
                                     "pool": "llmgw_zone llm:8m;"})
    last = [None] * many
    for turn in range(5):
        for n in range(many):
            r = ask(nginx.api, f"{n} {turn}", last[n], accounts[n % 2])
            assert r.status == 200, r.body
            last[n] = r.json["id"]
    for n, id in enumerate(last):
        path, other = f"{PATH}/{id}", accounts[(n + 1) % 2]
        assert missing(ask(nginx.api, "steal", id, other), id)
        assert missing(ask(nginx.api, path=path, method="GET", key=other), id)
        assert missing(ask(nginx.api, path=path, method="DELETE", key=other),
                       id)
        r = ask(nginx.api, path=path, method="GET", key=accounts[n % 2])
        assert r.json["id"] == id
    assert len({tuple(place(cluster, id)) for id in last}) == 3


def test_chains_are_their_accounts_own(cluster, tmp_path):
    chains(cluster, tmp_path, 20)


@pytest.mark.soak
def test_200_chains_are_their_accounts_own(cluster, tmp_path):
    chains(cluster, tmp_path, 200)
