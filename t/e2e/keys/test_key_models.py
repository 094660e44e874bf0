"""Which models a key may use."""

import pytest

from llmgw.fleet import words
from llmgw.fleet.ways_in import MESSAGES, messages
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.keyfile import KeyFile, ask, bearer

LINES = "llmgw_model gpt-4o as qwen3;"


@pytest.fixture(scope="module")
def keys(shared):
    made = KeyFile(shared.dir)
    return made, {
        "all": made.add("all"),
        "qwen": made.add("qwen", "models=qwen*"),
        "law": made.add("law", "models=law,embed"),
        "gpt": made.add("gpt", "models=gpt-4o"),
        "other": made.add("other", "models=other"),
    }


@pytest.fixture(scope="module")
def nginx(shared, keys):
    shared.agent("gw", "gateway")
    shared.adapter(shared.engine("e1", "vllm", model="qwen3", adapter="law"),
                   "a1")
    nginx = shared.nginx(openai=LINES, http=keys[0].directive())
    wait_for(lambda: nginx.replicas()["a1"]["models"] == ["qwen3", "law"],
             "both models")
    return nginx


def names(nginx, key):
    got = ask(nginx.api, "/v1/models", headers=bearer(key))
    return sorted(m["id"] for m in got.json["data"])


def chat(nginx, key, model, **more):
    return ask(nginx.api, sse.CHAT, sse.chat("hi len=2;", model=model, **more),
               bearer(key))


MAY = {"all": ["gpt-4o", "law", "qwen3"], "qwen": ["qwen3"], "law": ["law"],
       "gpt": ["gpt-4o"], "other": []}


@pytest.mark.parametrize("name", MAY)
def test_list_has_what_the_key_may_use(nginx, keys, name):
    assert names(nginx, keys[1][name]) == MAY[name]
    for model in MAY["all"]:
        got = ask(nginx.api, f"/v1/models/{model}", None,
                  bearer(keys[1][name]))
        assert got.status == (200 if model in MAY[name] else 404), model


@pytest.mark.parametrize("name", MAY)
def test_other_models_are_as_if_they_were_not_there(nginx, keys, name):
    """The same message for a model that the key may not use and one that does
    not exist."""
    key = keys[1][name]
    for stream in (True, False):
        for model in MAY["all"]:
            got = chat(nginx, key, model, stream=stream)
            if model in MAY[name]:
                assert got.status == 200, (model, got)
                continue
            got.is_refused(404, words.MODEL_NOT_FOUND)
            nobodys = chat(nginx, key, "x" * len(model), stream=stream)
            nobodys.is_refused(404, words.MODEL_NOT_FOUND)
            assert got.body == nobodys.body.replace(b"x" * len(model),
                                                    model.encode())


def test_name_is_the_clients_before_as(nginx, keys):
    """A key for gpt-4o reaches the engine's qwen3 by that name alone."""
    assert chat(nginx, keys[1]["gpt"], "gpt-4o").json["model"] == "gpt-4o"
    assert chat(nginx, keys[1]["gpt"], "qwen3").status == 404
    assert chat(nginx, keys[1]["qwen"], "gpt-4o").status == 404


def test_messages_say_it_in_their_form(nginx, keys):
    got = ask(nginx.api, MESSAGES, {**messages("hi len=2;"), "model": "law"},
              bearer(keys[1]["qwen"]))
    got.is_anthropics(404, "not_found_error")


def test_embeddings_of_another_model(nginx, keys):
    body = {"model": "law", "input": "one"}
    ask(nginx.api, "/v1/embeddings", body, bearer(keys[1]["qwen"])) \
        .is_refused(404, words.MODEL_NOT_FOUND)
    assert ask(nginx.api, "/v1/embeddings", body,
               bearer(keys[1]["law"])).status == 200


def test_infer_is_of_the_base_model(nginx, keys):
    codes = {}
    for name, key in keys[1].items():
        with rpc.Client(nginx.target) as c:
            got = c.stream("hi len=2;", 2, metadata=bearer(key))
        codes[name] = got.code
    assert codes == {"all": "OK", "qwen": "OK", "law": "NOT_FOUND",
                     "gpt": "NOT_FOUND", "other": "NOT_FOUND"}
