"""Real clients with a key, and with one that is wrong or used up."""

import pytest

from llmgw.fleet.books import wait_records
from llmgw.fleet.ways_in import messages
from llmgw.speak import clients, sse

BODY = sse.chat("hi len=9;")
NAMES = (*clients.JS, "anthropic")


def jobs(nginx, **secrets):
    """{(client, name of the key, stream): result} of all clients."""
    base = f"http://{nginx.api}"
    made = []
    for name, secret in secrets.items():
        for client in NAMES:
            for stream in (True, False):
                theirs = client == "anthropic"
                made.append((
                    f"{client}/{name}/{stream}", client,
                    base if theirs else base + "/v1",
                    "messages" if theirs else "chat", stream,
                    messages("hi len=9;") if theirs else BODY, secret))
    return {tuple(key.split("/")): got
            for key, got in clients.run_js(made).items()}


@pytest.mark.first
def test_each_client_is_served_charged_and_refused(gateway, keyfile, usage):
    good, over = keyfile.add("alice"), keyfile.add("bob", "budget=1/day")
    none = keyfile.add("carol", "models=other")
    nginx = gateway()
    got = jobs(nginx, good=good)
    for where, result in got.items():
        assert result["error"] is None, (where, result)
        assert result["text"][0] and result["usage"], where
    found = wait_records(usage, len(got))
    assert {r["outcome"] for r in found} == {"ok"}
    assert sum(r["completion_tokens"] for r in found) == sum(
        r["usage"]["completion_tokens"] for r in got.values())

    first = jobs(nginx, over=over)
    assert sum(r["error"] is None for r in first.values()) >= 1
    got = jobs(nginx, wrong="sk-llmgw-" + "x" * 43, over=over, none=none)
    statuses = {"wrong": 401, "over": 429, "none": 404}
    for where, result in got.items():
        client, name, _ = where
        assert result["error"], where
        if client in ("openai", "anthropic", "fetch"):
            assert result["error"]["status"] == statuses[name], (where, result)
        assert not any(result["text"]), where
    types = {name: got["anthropic", name, "False"]["error"]["type"]
             for name in statuses}
    assert types == {"wrong": "authentication_error",
                     "over": "rate_limit_error", "none": "not_found_error"}


def test_client_sees_the_models_of_its_key(gateway, keyfile):
    keys = keyfile.add("alice"), keyfile.add("bob", "models=other")
    nginx = gateway()
    got = clients.run_js([(f"{i}", "openai", f"http://{nginx.api}/v1", "models",
                           False, None, key) for i, key in enumerate(keys)])
    assert [got[f"{i}"]["ids"] for i in range(2)] == [["mock-model"], []]
