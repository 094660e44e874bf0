"""llama.cpp's own server behind the gateway: what it says arrives, and goes on
at another one when it is lost.

A long form: `make test-llama-server LLAMA_SERVER=PATH`.
"""

import json
import threading
import time

import pytest

from llmgw.engine.real import LlamaServer
from llmgw.fleet import words
from llmgw.model import gguf
from llmgw.proc import place
from llmgw.proc.place import SLOW
from llmgw.proc.wait import wait_for
from llmgw.speak import clients, sse

pytestmark = [pytest.mark.soak, pytest.mark.skipif(
    not place.LLAMA_SERVER, reason="needs LLAMA_SERVER, llama.cpp's server")]

# Seconds that a real server may take for its model, or for many tokens.
LOADS = 20

USAGE = {"stream_options": {"include_usage": True}}
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")

# A call begins with "=", which is one token, so that logit_bias brings it.
EQUALS = 289
TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}
        {{- tool | tojson + '\\n' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content %}{{- message.content }}{%- endif %}
    {%- for call in message.tool_calls or [] %}
        {{- '={"name": "' + call.function.name + '", "arguments": ' }}
        {{- call.function.arguments | tojson }}
        {{- '}&' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
TOOLS = [{"type": "function", "function": {
    "name": "weather", "parameters": {
        "type": "object", "required": ["city"],
        "properties": {"city": {"enum": ["a", "b"]}}}}}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {
    "type": "object", "required": ["a"],
    "properties": {"a": {"type": "integer"}}}}}

# The first bytes of characters that it spells byte by byte, made likelier.
SPELLED = {str(gguf.FIRST_BYTE + c.encode()[0]): 3 for c in gguf.SPELLED}


def fleet(cluster, n, pool="", timeout="3s", args=(), http="", **model):
    """n servers of one model with their adapters, and nginx."""
    cluster.agent("gw", "gateway")
    file = cluster.dir / "model.gguf"
    gguf.write(file, blank=False, **model)
    for i in range(1, n + 1):
        e = LlamaServer(cluster, f"e{i}", file, args=args)
        cluster.engines[e.id] = e.start()
        cluster.pair(f"a{i}", engine="llamacpp", engine_url=e.url)
    nginx = cluster.nginx(openai=True, pool=pool or "llmgw_breaker off;",
                          http=f"llmgw_token_timeout {timeout};"
                               f"llmgw_first_token_timeout {timeout};{http}")
    routable(cluster, nginx)
    return nginx


def routable(cluster, nginx):
    ids = sorted(cluster.replicas)
    wait_for(lambda: nginx.routable() == ids, f"{ids} to be routable",
             takes=LOADS)


def told(target, body, strict=False):
    path = sse.CHAT if "messages" in body else sse.TEXT
    more = USAGE if body.get("stream") else {}
    return sse.call(target, path, {**body, **more}, 30, strict=strict,
                    takes=10)


def same(got, right, counts=COUNTS):
    assert got.error is None and right.error is None, (got, right)
    for name in ("text", "finish_reason", "tool_calls", "logprobs"):
        assert getattr(got, name) == getattr(right, name), name
    for key in counts:
        assert got.usage[key] == right.usage[key], key


# name: (a body, what of its usage the server counts as we do)
ASKS = {
    "chat": (sse.chat("hello"), COUNTS),
    "completion": (sse.text("tell me"), COUNTS),
    "spelled": (sse.chat("odd", logit_bias=SPELLED), COUNTS),
    "stop string": (sse.chat("hello", stop=["e", "zz"]), COUNTS),
    "log probabilities": (sse.chat("hello", logprobs=True, top_logprobs=2),
                          COUNTS),
    "two choices": (sse.chat("hello", n=2, ignore_eos=True), ()),
    "two prompts": (sse.text(["one", "another prompt"], ignore_eos=True),
                    ()),
    "a schema": (sse.chat("hello", response_format=SCHEMA), COUNTS),
    "tools": (sse.chat("hello", tools=TOOLS, tool_choice="required",
                       logit_bias={str(EQUALS): 20}, max_tokens=120), COUNTS),
    "penalties": (sse.chat("hello", frequency_penalty=1.5,
                           presence_penalty=0.5), COUNTS),
}


@pytest.fixture(scope="module")
def three(shared):
    """One server behind an adapter of each kind that fits: {kind: nginx}."""
    made = {}
    file = shared.dir / "model.gguf"
    gguf.write(file, blank=False, template=TEMPLATE)
    first = shared.engines["e1"] = LlamaServer(shared, "e1", file).start()
    for kind in ("llamacpp", "auto", "openai"):
        gateway = shared.agent(f"gw-{kind}", "gateway", join=[])
        replica = shared.replica(f"r-{kind}", start=False, engine=kind,
                                 engine_url=first.url)
        agent = shared.agent(f"r-{kind}", grpc=replica.target,
                             join=[gateway.gossip])
        replica.argv += ["--agent", agent.control]
        replica.start()
        made[kind] = shared.nginx(gateway=gateway, openai=True)
    for kind, nginx in made.items():
        wait_for(lambda: nginx.routable() == [f"r-{kind}"], kind,
                 takes=LOADS)
    return made


@pytest.mark.parametrize("stream", (True, False), ids=("stream", "whole"))
@pytest.mark.parametrize("kind", ("llamacpp", "auto", "openai"))
@pytest.mark.parametrize("name", ASKS)
def test_answer_is_the_servers(shared, three, kind, name, stream):
    body, counts = ASKS[name]
    body = {**body, "stream": stream}
    right = told(shared.engines["e1"].target, body)
    got = told(three[kind].api, body, strict=True)
    same(got, right, counts)
    assert right.text[0] or right.tool_calls
    assert not stream or got.done == 1 and len(got.ids) == 1
    if name == "tools":
        assert [c["name"] for c in got.tool_calls][:1] == ["weather"]
        assert json.loads(got.tool_calls[0]["arguments"])["city"] in "ab"
    elif name == "a schema":
        assert json.loads(got.text[0])["a"] is not None
    elif name == "stop string":
        assert got.finish_reason == ["stop"] and "e" not in got.text[0]
    elif name.startswith("two") and kind != "openai":
        assert got.usage["completion_tokens"] == 2 * sse.GREEDY["max_tokens"]


def test_what_it_refuses_is_refused(shared, three):
    """The status is the server's, but for JSON of a wrong type."""
    for body, status, reason in (
            (sse.text("long " * 3000), 400, "context"),
            (sse.chat("x", temperature="hot"), 400, "temperature"),
            ({"model": place.ENGINE_MODEL, "messages": 5}, 400, "messages")):
        for stream in (True, False):
            path = sse.CHAT if "messages" in body else sse.TEXT
            got = sse.call(three["llamacpp"].api, path,
                           {**body, "stream": stream})
            assert got.status == status, got
            assert reason in got.error["message"].lower(), got


def test_embeddings_of_a_server_of_their_own(cluster):
    nginx = fleet(cluster, 1, args=("--embeddings", "--pooling", "mean"))
    body = {"model": place.ENGINE_MODEL, "input": ["one", "two"]}
    status, _, right, _ = clients.curl(
        cluster.engines["e1"].url + "/v1/embeddings", body)
    assert status == 200
    status, _, got, _ = clients.curl(
        f"http://{nginx.api}/v1/embeddings", body)
    assert status == 200
    assert json.loads(got)["data"] == json.loads(right)["data"]


# --- what else it serves

TEXT = "a text of some words"
SAID = [{"role": "user", "content": TEXT}]
OTHERS = {
    "chat": ((), sse.CHAT, sse.chat("hello")),
    "completion": ((), sse.TEXT, sse.text("tell me")),
    "tokenize": ((), "/tokenize", {"content": TEXT, "add_special": True}),
    "detokenize": ((), "/detokenize", {"tokens": [100, 101, 102]}),
    "responses": ((), "/v1/responses", {"input": TEXT, "temperature": 0,
                                        "max_output_tokens": 20}),
    "messages": ((), "/v1/messages", {"messages": SAID, "max_tokens": 20,
                                      "temperature": 0}),
    "count_tokens": ((), "/v1/messages/count_tokens", {"messages": SAID}),
    "no pooling": ((), "/v1/embeddings", {"input": [TEXT, "two"]}),
    "embeddings": (("--embeddings", "--pooling", "mean"), "/v1/embeddings",
                   {"input": [TEXT, "two"]}),
    "rerank": (("--reranking",), "/v1/rerank", {
        "query": "what", "documents": [TEXT, "two"]}),
    "no rerank": ((), "/v1/rerank", {"query": "what", "documents": [TEXT]})}

# What is another one in each answer, or takes time.
OWN = {"id", "created", "created_at", "completed_at", "timings"}


def lasting(value):
    if isinstance(value, dict):
        return {k: lasting(v) for k, v in value.items() if k not in OWN}
    return [lasting(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("args", dict.fromkeys(
    args for args, _, _ in OTHERS.values()), ids=lambda a: "".join(a) or "chat")
def test_each_endpoint_answers_as_the_server_does(cluster, args):
    """All that it says but names and times, a refusal too, and what it lacks.
    Each is asked twice, so that its cache has the prompt."""
    port = cluster.ports.take()
    fleet(cluster, 1, args=args, http=f"""
    server {{ listen 127.0.0.1:{port}; keepalive_requests 10000;
              location / {{ llmgw_openai llm; }} }}""")
    for name, (of, path, body) in OTHERS.items():
        if of != args:
            continue
        body = {"model": place.ENGINE_MODEL, **body}
        there, got = [[clients.curl(f"http://{target}{path}", body)
                       for _ in range(2)][-1]
                      for target in (cluster.engines["e1"].target,
                                     f"127.0.0.1:{port}")]
        assert got[0] == there[0], (name, got, there)
        if there[0] == 200:
            assert lasting(json.loads(got[2])) \
                == lasting(json.loads(there[2])), name


# --- what is known of it

def test_facts_of_a_server(cluster):
    """Its slots, its model, its group, and how many requests run."""
    nginx = fleet(cluster, 2, layers=60)
    rows = nginx.replicas()
    assert {r["max_capacity"] for r in rows.values()} == {8}
    table = cluster.agents["gw"].table()
    assert {table[id]["models"][0] for id in rows} == {place.ENGINE_MODEL}
    groups = {table[id]["resume_group"] for id in rows}
    assert len(groups) == 1 and groups.pop().startswith("llamacpp")
    with sse.Connection(nginx.api) as c:
        c.request(sse.CHAT, sse.chat("x", stream=True, max_tokens=1500,
                                     ignore_eos=True)).wait_events(2)
        wait_for(lambda: sum(e.metric("requests_processing")
                             for e in cluster.engines.values()) == 1,
                 "the request at a server")
        wait_for(lambda: sum(cluster.agents["gw"].table()[id]["running"] or 0
                             for id in rows) == 1, "it to be reported")


@pytest.mark.timed
def test_client_that_leaves_ends_its_request(cluster):
    nginx = fleet(cluster, 1, layers=60)
    server = cluster.engines["e1"]

    def running():
        return sum(s["is_processing"] for s in server.ask("/slots"))

    for stream in (True, False):
        with sse.Connection(nginx.api) as c:
            c.request(sse.CHAT, sse.chat("x", stream=stream, max_tokens=1900,
                                         ignore_eos=True))
            wait_for(lambda: running() == 1, "the request at the server")
            at = time.monotonic()
        wait_for(lambda: running() == 0, "its end")
        assert time.monotonic() - at < 0.5 * SLOW


def test_more_streams_than_slots_wait(cluster):
    nginx = fleet(cluster, 1, pool="llmgw_queue 100;")
    results = Play(nginx, [sse.chat(f"wait {i}", stream=True)
                           for i in range(40)]).results()
    for got in results:
        assert got.error is None and got.done == 1, got


def test_server_that_loads_is_starting(cluster):
    """It answers 503 until its model is there, here for about a second."""
    cluster.agent("gw", "gateway")
    file = cluster.dir / "slow.gguf"
    gguf.write(file, blank=False, more=400_000)
    server = LlamaServer(cluster, "e1", file)
    cluster.pair("a1", engine="llamacpp", engine_url=server.url)
    nginx = cluster.nginx(openai=True)
    server.start()
    routable(cluster, nginx)
    server.kill()
    wait_for(lambda: nginx.replicas()["a1"]["service"] == "DOWN", "DOWN",
             takes=5)
    server.start(wait=False)
    wait_for(lambda: "engine is STARTING, it was DOWN"
             in cluster.replicas["a1"].proc.text(), "STARTING", takes=LOADS)
    routable(cluster, nginx)
    assert told(nginx.api, sse.chat("well")).finish_reason == ["length"]


# --- losses

class Play:
    """Streams, each read by its own thread."""

    def __init__(self, nginx, bodies):
        self.nginx, self.bodies = nginx, bodies
        self.got, self.events = [None] * len(bodies), [0] * len(bodies)
        self.threads = [threading.Thread(target=self._read, args=(i,),
                                         daemon=True)
                        for i in range(len(bodies))]
        for thread in self.threads:
            thread.start()

    def _read(self, i):
        body = {**self.bodies[i], **USAGE}
        path = sse.CHAT if "messages" in body else sse.TEXT
        try:
            with sse.Connection(self.nginx.api, takes=15) as c:
                r = c.request(path, body)
                r.head(60)
                while not r.complete:
                    self.events[i] = len(r.wait_events(len(r.events) + 1, 60))
                self.got[i] = sse.result_of(r)
        except (AssertionError, OSError) as e:
            self.got[i] = e

    def results(self):
        for thread in self.threads:
            thread.join(90)
        bad = [got for got in self.got if not isinstance(got, sse.Result)]
        assert not bad, bad
        return self.got


TOKENS = 60
STREAMS = 12
VICTIMS = ("server", "adapter", "both")
MOMENTS = (0, 1, 7, "last")


def asks(api):
    """Long enough to be hit; with characters that are spelled."""
    more = {"stream": True, "max_tokens": TOKENS, "temperature": 0,
            "ignore_eos": True, "logit_bias": SPELLED}
    return [sse.chat(f"tell {i}", **more) if api == "chat"
            else sse.text(f"tell {i}", **more) for i in range(STREAMS)]


def parts(cluster, victim):
    """What is lost of the first server and its adapter."""
    server, adapter = cluster.engines["e1"], cluster.replicas["a1"]
    return {"server": [server], "adapter": [adapter],
            "both": [server, adapter]}[victim]


@pytest.mark.parametrize("api", ("chat", "completions"))
@pytest.mark.parametrize("act", ("kill", "freeze"))
@pytest.mark.parametrize("victim", VICTIMS)
def test_loss_is_not_noticed(cluster, victim, act, api):
    """At each moment, of a server, its adapter, or both: the text is the
    undisturbed one."""
    nginx = fleet(cluster, 3, layers=40)
    bodies = asks(api)
    whole = Play(nginx, bodies)
    right = whole.results()
    direct = [told(cluster.engines["e2"].target, b) for b in bodies]
    for got, own in zip(right, direct):
        same(got, own)
    assert any(c in r.text[0] for r in right for c in gguf.SPELLED)
    for moment in MOMENTS:
        begun = cluster.engines["e1"].metric("n_decode_total")
        streams = Play(nginx, bodies)
        if moment == 0:
            wait_for(lambda: cluster.engines["e1"].metric("n_decode_total")
                     > begun, "a request at the server", interval=0, takes=5)
        else:       # behind the last token: its finish, usage and [DONE]
            at = [n - 4 if moment == "last" else moment for n in whole.events]
            wait_for(lambda: any(map(int.__ge__, streams.events, at)),
                     f"token {moment}", interval=0, takes=LOADS)
        for part in parts(cluster, victim):
            getattr(part.proc, act)()
        try:
            for got, own in zip(streams.results(), right):
                same(got, own)
                assert (got.done, len(got.ids)) == (1, 1)
                assert got.roles == (api == "chat")
        finally:
            for part in parts(cluster, victim):
                if act == "kill":
                    part.start()
                else:
                    part.proc.thaw()
        routable(cluster, nginx)


def test_frozen_server_is_stalled(cluster):
    """It answers nothing at all, so that takes ten seconds of silence."""
    nginx = fleet(cluster, 1, timeout="60s", layers=60)
    server = cluster.engines["e1"]
    streams = Play(nginx, [sse.chat("long", stream=True, max_tokens=1500,
                                    ignore_eos=True)])
    wait_for(lambda: streams.events[0], "its first token", takes=LOADS)
    server.proc.freeze()
    try:
        wait_for(lambda: nginx.replicas()["a1"]["service"] == "STALLED",
                 "a1 to be STALLED", takes=12)
    finally:
        server.proc.thaw()
    routable(cluster, nginx)
    [got] = streams.results()
    assert got.error or got.finish_reason == ["length"]


def test_streams_that_cannot_go_on_end_with_an_error(cluster):
    """Each choice of several, a schema, a tool call that began."""
    nginx = fleet(cluster, 2, layers=60, template=TEMPLATE)
    for body in (sse.chat("x", n=2, max_tokens=600, ignore_eos=True),
                 sse.chat("x", logprobs=True, max_tokens=600,
                          ignore_eos=True),
                 sse.chat("x", tools=TOOLS, tool_choice="required",
                          logit_bias={str(EQUALS): 20}, max_tokens=600)):
        streams = Play(nginx, [{**body, "stream": True}])
        wait_for(lambda: streams.events[0] >= 3, "some tokens",
                 takes=5)
        busy = [e for e in cluster.engines.values()
                if e.metric("requests_processing")]
        assert len(busy) == 1
        busy[0].kill()
        [got] = streams.results()
        assert got.error["code"] == words.NOT_RESUMABLE and not got.done, got
        assert not any(got.finish_reason)
        busy[0].start()
        routable(cluster, nginx)


# --- what docs/engines.md says of exactness

def test_text_is_the_same_whoever_is_in_the_batch(cluster):
    nginx = fleet(cluster, 1)
    bodies = [sse.chat(f"batch {i}", stream=True) for i in range(8)]
    alone = [told(nginx.api, body) for body in bodies]
    for _ in range(5):
        for got, own in zip(Play(nginx, bodies).results(), alone):
            same(got, own)
