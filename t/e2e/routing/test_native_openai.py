"""llmgw_key prompt: OpenAI bodies under a stock proxy_pass."""

import http.client
import json

import pytest

from llmgw.fleet.native import http as passes
from llmgw.fleet.native import started
from llmgw.speak import sse

pytestmark = pytest.mark.ring("a prompt has a home")


def post(nginx, body, header=None):
    """The engine's name; or a header of the answer."""
    c = http.client.HTTPConnection("127.0.0.1", nginx.status_port, timeout=10)
    try:
        c.request("POST", "/http/v1/chat/completions",
                  body if isinstance(body, str) else json.dumps(body),
                  {"content-type": "application/json"})
        r = c.getresponse()
        if header:
            return r.getheader(header)
        assert r.status == 200
        return r.read().decode().split()[0]
    finally:
        c.close()


def chat(text, *more, **keys):
    return {"model": "m", "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": text}, *more], **keys}


def test_turns_of_a_conversation_have_one_home(cluster, engines):
    nginx = cluster.static(engines(6), **passes("llmgw_key prompt;"))
    homes = set()
    for i in range(12):
        text = f"conversation {i}, " + "x" * 2000
        home = post(nginx, chat(text))
        turn = {"role": "assistant", "content": "yes"}
        assert post(nginx, chat(text + "and more", turn)) == home
        assert post(nginx, json.dumps(chat(text, turn, stream=True), indent=2,
                                      sort_keys=True)) == home
        homes.add(home)
    assert len(homes) > 2


def test_large_body_in_a_file_has_its_home(cluster, engines):
    """nginx writes it to a file, and its key is that of a small one."""
    nginx = cluster.static(engines(4), **passes("llmgw_key prompt;"))
    image = {"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "x" * 500000}}]}
    for i in range(5):
        assert (post(nginx, chat(f"image {i}", image))
                == post(nginx, chat(f"image {i}")))
    assert "buffered to a temporary file" in nginx.log()


@pytest.mark.soak
def test_other_bodies_are_hashed_by_their_beginning(cluster, engines):
    nginx = cluster.static(engines(4), **passes("llmgw_key prompt;"))
    homes = set()
    for i in range(20):
        body = f"{i} no JSON, but long enough to fill the prefix".ljust(64)
        homes.add(post(nginx, body + "a"))
        assert post(nginx, body + "b") == post(nginx, body + "a")
    assert len(homes) > 1


@pytest.mark.parametrize("word", [
    "prompt_cache_key", pytest.param("user", marks=pytest.mark.soak)])
def test_member_is_the_key(cluster, engines, word):
    nginx = cluster.static(engines(4), **passes(f"llmgw_key {word};"))
    for i in range(5):
        assert len({post(nginx, chat(f"text {k}", **{word: f"key {i}"}))
                    for k in range(5)}) == 1
    assert len({post(nginx, chat(f"text {k}")) for k in range(20)}) > 1


def test_home_is_that_of_the_front(cluster):
    """A site may have both over the same replicas; here they speak gRPC, and
    refuse a request in JSON."""
    nginx = cluster.fleet(4, nginx={"openai": True, "server": """
        location /http/ {
            llmgw_key prompt;
            add_header x-home $llmgw_replica always;
            grpc_pass grpc://llm;
        }"""})
    for i in range(10):
        before = started(cluster)
        got = sse.call(nginx.api, sse.CHAT, chat(f"both {i}", max_tokens=1))
        assert got.finish_reason == ["length"]
        after = started(cluster)
        home = [x for x in after if after[x] > before[x]]
        assert [post(nginx, chat(f"both {i}"), "x-home")] == home


@pytest.mark.soak
def test_front_takes_a_member_as_the_key(cluster):
    nginx = cluster.fleet(4, nginx={"openai": "llmgw_key prompt_cache_key;"})
    before = started(cluster)
    for i in range(8):
        sse.call(nginx.api, sse.CHAT,
                 chat(f"text {i}", max_tokens=1, prompt_cache_key="k"))
    after = started(cluster)
    assert sorted(after[x] - before[x] for x in after) == [0, 0, 0, 8]
