"""The engine `llama`: a real model in the replica, small and random.

It computes as fast as the machine lets it, so that a stream of a few hundred
tokens takes some tenths of a second.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from llmgw.fleet import words
from llmgw.fleet.updates import Fleet
from llmgw.model import gguf, llama
from llmgw.model.llama import Call, ask, chat, infer, request
from llmgw.proc import place
from llmgw.proc.preload import compiled
from llmgw.proc.wait import QUICK, wait_for
from llmgw.speak import rawh2, rpc, sse

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

# Streams under a rolling update: 100 in the long form.
STREAMS = int(os.environ.get("LLMGW_LLAMA_STREAMS", 12))

SAMPLED = {"temperature": .8, "top_p": .95, "seed": 7}
GREEDY = {"temperature": 0}
# The random model seldom ends by itself; here it shall not at all.
ENDLESS = {"ignore_eos": True}


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """models(**options): the path of a model, written once."""
    folder = tmp_path_factory.mktemp("models")

    def make(**options):
        name = "-".join(["tiny", *(f"{k}={v}" for k, v in options.items())])
        path = folder / f"{name}.gguf"
        if not path.exists():
            gguf.write(path, **options)
        return str(path)
    return make


def engine(**options):
    return {"engine": "llama", "threads": 1, **options}


@pytest.fixture(scope="module")
def replica(shared, models):
    """One that the tests which leave it as it was share."""
    return ready(shared.replica("shared", **engine(model=models())))


def ready(replica):
    wait_for(lambda: words.CONTINUE_HERE in replica.proc.text(),
             f"{replica.id} to load", takes=60)
    return replica


def group(replica):
    return re.search(r'streams of group "([^"]+)"',
                     replica.proc.text()).group(1)


def bodies(n):
    """Requests of several lengths, greedy and seeded ones by turns."""
    return [chat(f"request {i} " + "pa ne " * (i * 7 % 40),
                 **(GREEDY if i % 2 else {**SAMPLED, "seed": i}), **ENDLESS,
                 frequency_penalty=.2 * (i % 3)) for i in range(n)]


def continued(replica, body, whole, wish):
    """A stream that is cut there goes on as if nothing had happened."""
    n, text = whole.until(wish)
    rest = ask(replica, request(body, delivered=(whole, n))).whole_rest(n)
    assert whole.ids[:n] + rest.ids == whole.ids
    assert text + rest.text == whole.text
    assert rest.says()[2:] == whole.says()[2:]


# the same text

def test_text_is_the_same_whoever_is_in_the_batch(cluster, models):
    """Alone, and beside seven others that come and go."""
    one = ready(cluster.replica("one", **engine(model=models())))
    asked = bodies(16)
    alone = [ask(one, request(body)).whole() for body in asked]
    calls = [Call(one, request(body)) for body in asked[:7]]
    both = [c.end().whole() for c in calls]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        both += pool.map(lambda body: ask(one, request(body)).whole(),
                         asked[7:])
    assert [a.says() for a in both] == [a.says() for a in alone]
    assert len({a.text for a in alone}) == len(asked)


@pytest.mark.parametrize("model, cpu", [
    ({"weights": "q8_0"}, None), *(pytest.param(*case, marks=pytest.mark.soak)
                                   for case in (({"weights": "f32"}, None),
                                                ({"head": 16}, None),
                                                ({"weights": "q8_0"},
                                                 "sandybridge")))])
def test_resumed_text_is_the_undisturbed_one(cluster, models, model, cpu):
    """By ids at another replica, with other places.  What is not exact in
    chunks is decoded token by token: heads that are no blocks of q8_0, and
    what the probe finds."""
    options = engine(model=models(**model), **({"cpu": cpu} if cpu else {}))
    if cpu and " avx " not in pathlib.Path("/proc/cpuinfo").read_text():
        pytest.skip("needs a processor with AVX")
    one = ready(cluster.replica("one", **options))
    two = ready(cluster.replica("two", **options, max_capacity=3))
    assert group(one) == group(two)
    if model != {"weights": "q8_0"}:
        assert "one token in a call" in one.proc.text()
    for body in bodies(4):
        whole = ask(one, request(body)).whole()
        last = len(whole.ids)
        for wish in 0, 1, 7, last - 1, last:
            continued(two, body, whole, wish)


def test_infer_resumes_by_its_position(replica):
    whole = ask(replica, infer("Once upon a time", 60)).whole()
    tokens = [m.token for m in whole.messages]
    for n in 1, 30, len(tokens) - 2:
        rest = ask(replica, infer("Once upon a time", 60, n)).whole()
        assert [m.token for m in rest.messages] == tokens[n:]


def test_messages_are_whole_characters(replica):
    """The model spells two characters byte by byte."""
    body = chat("spell", **SAMPLED, **ENDLESS) | {"max_tokens": 600}
    got = ask(replica, request(body)).whole()
    spelled = [m for m in got.messages if set(m.token) & set(gguf.SPELLED)]
    assert spelled and all(len(m.token_ids) >= 3 for m in spelled)
    at = got.messages.index(spelled[0])
    n = sum(len(m.token_ids) for m in got.messages[:at])
    for wish in n, n + 2, n + len(spelled[0].token_ids):
        continued(replica, body, got, wish)


def test_another_prompt_is_not_continued(replica):
    whole = ask(replica, request(chat("one"))).whole()
    got = ask(replica, request(chat("two"), delivered=(whole, 3)))
    assert (got.code, got.ids) == ("FAILED_PRECONDITION", [])


@pytest.mark.soak
def test_without_exactness_ids_are_needed(cluster, models):
    fast = ready(cluster.replica("fast", **engine(model=models(),
                                                  exact="off")))
    assert "perhaps with another text" in fast.proc.text()
    whole = ask(fast, request(chat("hi", **ENDLESS))).whole()
    rest = ask(fast, request(chat("hi", **ENDLESS), delivered=(whole, 20)))
    assert len(rest.ids) == 20 and rest.usage == whole.usage
    assert ask(fast, infer("hi", 9, 3)).code == "FAILED_PRECONDITION"


# what a request asks for

def test_stop_strings_end_the_text(replica):
    whole = ask(replica, request(chat("stop", **SAMPLED, **ENDLESS))).whole()
    stop = re.search(r"[a-z ]{4}", whole.text[20:]).group()
    at = whole.text.index(stop)
    body = chat("stop", stop=["never", stop], **SAMPLED, **ENDLESS)
    got = ask(replica, request(body)).whole()
    assert (got.text, got.finish) == (whole.text[:at], "stop")
    for wish in range(0, len(got.ids) - 1, 3):
        continued(replica, body, got, wish)


@pytest.mark.soak
def test_model_may_end_its_text(replica):
    """A bias makes the token that ends a text likely."""
    body = chat("end", logit_bias={"2": 6}, **SAMPLED) | {"max_tokens": 400}
    got = ask(replica, request(body)).whole()
    assert got.finish == "stop" and 0 < len(got.ids) < 400
    longer = ask(replica, request(body | {"min_tokens": 50})).whole()
    assert len(longer.ids) >= 50
    endless = ask(replica, request(body | ENDLESS)).whole()
    assert (endless.finish, len(endless.ids)) == ("length", 400)


def chunked(answer):
    """The text and the logprobs' contents of data chunks."""
    deltas = [c["choices"][0] for c in answer.chunks]
    return ("".join(d.get("text") or d.get("delta", {}).get("content", "")
                    for d in deltas),
            [d["logprobs"] for d in deltas if d["logprobs"]],
            [d["finish_reason"] for d in deltas])


def test_logprobs_of_a_chat(replica):
    plain = chat("why", **GREEDY, **ENDLESS)
    body = {**plain, "logprobs": True, "top_logprobs": 3}
    plain = ask(replica, request(plain)).whole()
    got = ask(replica, request(body)).whole()
    text, logprobs, reasons = chunked(got)
    tokens = [t for one in logprobs for t in one["content"]]
    assert (text, got.ids, got.finish) == (plain.text, plain.ids, "length")
    assert reasons == [None] * (len(reasons) - 1) + ["length"]
    assert [c["choices"][0]["delta"].get("role") for c in got.chunks] == \
        ["assistant"] + [None] * (len(got.chunks) - 1)
    assert {(c["id"], c["created"], c["model"]) for c in got.chunks} == \
        {("c-1", 1700000000, "shown")}
    assert len(tokens) == len(got.ids)
    for token in tokens:
        best = token["top_logprobs"]
        likely = [b for b in best if b["bytes"]][0]     # ends are forbidden
        assert likely["logprob"] == token["logprob"] <= 0   # it is greedy
        assert likely["bytes"] == token["bytes"]
        assert [b["logprob"] for b in best] == sorted(
            (b["logprob"] for b in best), reverse=True) and len(best) == 3

    n, _ = got.until(7)
    rest = ask(replica, request(body, delivered=(got, n))).whole_rest(n)
    assert text.endswith(chunked(rest)[0])
    assert "role" not in rest.chunks[0]["choices"][0]["delta"]


@pytest.mark.soak
def test_logprobs_of_a_whole_completion(replica):
    body = {"prompt": "so", "logprobs": 2, "max_tokens": 30, **GREEDY,
            **ENDLESS}
    got = ask(replica, request(body, stream=False))
    whole = json.loads(got.raw)
    choice = whole["choices"][0]
    plain = ask(replica, request({k: v for k, v in body.items()
                                  if k != "logprobs"})).whole()
    logprobs = choice["logprobs"]
    assert (choice["text"], choice["finish_reason"]) == (plain.text, "length")
    assert whole["usage"]["completion_tokens"] == 30 == len(plain.ids)
    assert {len(v) for v in logprobs.values()} == {30}
    for at, token in zip(logprobs["text_offset"], logprobs["tokens"]):
        assert plain.text[at:].startswith(token) or "\ufffd" in token
    assert got.finish == "length" and got.usage == plain.usage


def test_what_does_not_fit_is_refused(cluster, models):
    small = ready(cluster.replica("small", **engine(model=models(),
                                                    context_tokens=256)))
    got = ask(small, request(chat("x" * 300)))
    assert got.code == "INVALID_ARGUMENT"
    status, body = got.failure
    assert (status, body["error"]["code"]) == (400,
                                               "context_length_exceeded")
    assert "256" in body["error"]["message"]

    # One that no tokens could make short is not even tokenized.
    got = ask(small, request({"prompt": "x" * 100_000, "max_tokens": 1}))
    status, body = got.failure
    assert "longer than any" in body["error"]["message"]
    assert body["error"]["param"] == "prompt"

    # Without a limit of its own a text may fill the context.
    body = chat("fill", **ENDLESS)
    del body["max_tokens"]
    full = ask(small, request(body)).whole()
    assert full.finish == "length" and sum(full.usage) == 256
    again = ask(small, request(body, delivered=(full, len(full.ids))))
    assert again.whole_rest(len(full.ids)).finish == "length"


@pytest.mark.parametrize("body, param", [
    (chat("a", tools=[{"type": "function"}]), "tools"),
    (chat("a", n=2), "n"),
    (chat("a", response_format={"type": "json_object"}), "response_format"),
    ({"prompt": [5, 99999], "max_tokens": 3}, "prompt"),
    ({"max_tokens": 3, "messages": "hi"}, "messages")])
def test_what_it_cannot_do_is_a_400(replica, body, param):
    got = ask(replica, request(body))
    status, error = got.failure
    assert (status, error["error"]["param"]) == (400, param)
    assert got.code == "INVALID_ARGUMENT"


@pytest.mark.soak
def test_model_without_a_template_completes(cluster, models):
    one = ready(cluster.replica("one", **engine(model=models(template=""))))
    got = ask(one, request(chat("hi")))
    assert got.failure[0] == 400 and "template" in got.details
    ask(one, request({"prompt": "hi", "max_tokens": 5})).whole()


# places

def test_full_replica_refuses_and_a_cancel_makes_room(cluster, models):
    one = ready(cluster.replica("one", **engine(model=models(),
                                                max_capacity=1)))
    body = chat("long", **ENDLESS, **llama.LOGPROBS) | {"max_tokens": 1900}
    for _ in range(3):
        call = Call(one, request(body), hold=1)
        assert call.began.wait(10) and call.answer.messages
        assert ask(one, request(body)).code == "RESOURCE_EXHAUSTED"
        call.cancel()
        wait_for(lambda: ask(one, request(chat("short"))).code == "OK",
                 "the place")


@pytest.mark.soak
def test_places_are_used_again_without_a_trace(cluster, models):
    one = ready(cluster.replica("one", **engine(model=models(),
                                                max_capacity=2)))
    asked = bodies(4)
    first = [ask(one, request(body)).whole().says() for body in asked]
    for call in [Call(one, request(chat("noise", **ENDLESS)
                                   | {"max_tokens": 900}))
                 for _ in range(2)]:
        assert call.began.wait(10)
        call.cancel()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        again = pool.map(lambda body: ask(one, request(body)).whole().says(),
                         asked)
    assert list(again) == first


@pytest.mark.soak
def test_client_that_does_not_read_holds_up_itself_only(replica):
    """Its sequence pauses, and goes on later with the same text."""
    body = chat("slow", **SAMPLED, **ENDLESS) | {"max_tokens": 1300}
    whole = ask(replica, request(body)).whole()
    with rawh2.RawH2(replica.target, window=1000) as h:
        h.reading = False
        sid = h.request(rpc.GENERATE,
                        rawh2.frame(request(body).SerializeToString()))
        while h.pump(.2):
            pass
        assert ask(replica, request(body)).whole().says() == whole.says()
        assert not h.answers[sid].ended
        h.resume()
        slow = llama.Answer(code="OK")
        for message in rawh2.unframe(h.wait(sid, 30).data)[0]:
            slow.take(rpc.pb.GenerateResponse.FromString(message))
    assert slow.whole().says() == whole.says()


# the start

@pytest.mark.parametrize("file, words, status", [
    ("absent.gguf", "No such file", 1), ("text.gguf", "not a GGUF file", 1),
    ("cut.gguf", "cannot load", 1), ("modèle.gguf", "--model-name", 1),
    (None, "needs --model", 2)])
def test_unusable_model_ends_the_replica(tmp_path, models, ports, file, words,
                                         status):
    (tmp_path / "text.gguf").write_text("no model")
    whole = pathlib.Path(models()).read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[:len(whole) // 2])
    argv = [place.binary("llmgw-replica"), "--id", "r", "--engine", "llama",
            "--listen", f"127.0.0.1:{ports.take()}"]
    if file:
        argv += ["--model", str(tmp_path / file)]
    got = subprocess.run(argv, capture_output=True, text=True, timeout=20)
    assert got.returncode == status and words in got.stderr


@pytest.mark.parametrize("tokens", ["1", "31"])
def test_too_small_a_context_is_refused_by_its_option(ports, tokens):
    got = subprocess.run(
        [place.binary("llmgw-replica"), "--id", "r", "--engine", "llama",
         "--listen", f"127.0.0.1:{ports.take()}", "--model", "absent.gguf",
         "--context-tokens", tokens],
        capture_output=True, text=True, timeout=20)
    assert got.returncode == 2
    assert got.stderr.startswith("llmgw-replica: --context-tokens: at least 32")


@pytest.mark.soak
def test_missing_plugin_says_how_to_get_it(tmp_path, models, ports):
    copy = shutil.copy(place.binary("llmgw-replica"), tmp_path)
    got = subprocess.run(
        [copy, "--id", "r", "--engine", "llama", "--model", models(),
         "--listen", f"127.0.0.1:{ports.take()}"],
        capture_output=True, text=True, timeout=20)
    assert got.returncode == 1 and "make llama" in got.stderr


@pytest.mark.soak
def test_it_listens_while_it_loads(cluster, models, tmp_path):
    """From a disk that is as slow as the test wants it to be."""
    slow = tmp_path / "slow"
    slow.touch()
    one = cluster.replica("one", start=False, **engine(model=models()))
    one.env = {"LD_PRELOAD": compiled("slow_pread", tmp_path),
               "ASAN_OPTIONS": "verify_asan_link_order=0",
               "SLOW_PREAD": str(slow)}
    early = ask(one.start(), request(chat("hi")))
    assert (early.code, early.details) == ("UNAVAILABLE",
                                           "engine is STARTING")
    slow.unlink()
    ask(ready(one), request(chat("hi"))).whole()


# behind the gateway

def stand_still(cluster):
    """All engines do, and no stream ends meanwhile; returns how to go on."""
    procs = [one.proc for one in cluster.replicas.values()]
    for proc in procs:
        proc.freeze()
    return lambda: [proc.thaw() for proc in procs]


def test_killed_engine_loses_nothing(cluster, models, client):
    """kill -9 of one of three under 12 streams of Infer.  The last is so
    long that it still runs when it is seen to have begun."""
    nginx = cluster.fleet(3, replica=engine(model=models(), max_capacity=16,
                                            token_delay=None))
    for one in cluster.replicas.values():
        ready(one)
    asked = [(f"stream {i}", 200 if i < 11 else 1500) for i in range(12)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        direct = list(pool.map(
            lambda a: ask(cluster.replicas["r1"], infer(*a)).whole().text,
            asked))
    c = client(nginx)
    calls = [c.start(*a) for a in asked]
    results = [rpc.Result() for _ in asked]
    results[-1].add(next(calls[-1]), 0)
    cluster.replicas[results[-1].replicas[0]].kill()
    for call, result in zip(calls, results):
        rpc.drain(call, into=result)
    assert {r.code for r in results} == {"OK"}, [
        (r.code, r.details, r.trailers) for r in results if r.code != "OK"]
    assert [r.text for r in results] == direct
    assert len(results[-1].replicas) == 2


def conversation(i, n=300, **more):
    """Every fourth one greedy, the others with a seed of their own."""
    return {**chat(f"conversation {i}"), "model": "tiny", "max_tokens": n,
            "stream": True, "stream_options": {"include_usage": True},
            **(SAMPLED if i % 4 else GREEDY), "seed": i, **ENDLESS, **more}


def three(cluster, models, http="", **options):
    nginx = cluster.fleet(3, nginx={"openai": True, "http": http},
                          replica=engine(model=models(), max_capacity=16,
                                         token_delay=None, **options))
    for one in cluster.replicas.values():
        ready(one)
    return nginx


def says(result):
    assert result.error is None, result.error
    return result.text, result.finish_reason, result.usage


def together(api, asked):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(
            lambda body: says(sse.call(api, sse.CHAT, body, 60)), asked))


# make test: the first; make soak: one of each; LLMGW_KILLS=all: all of them.
ALL = os.environ.get("LLMGW_KILLS") == "all"
TOKENS, CONVERSATIONS = (300, 32) if ALL else (150, 16)
LOSSES = [(act, moment) for act in ("kill", "freeze")
          for moment in (0, 1, 7, 100, TOKENS - 1, "finish")] if ALL else [
    ("kill", 1), pytest.param("freeze", 7, marks=pytest.mark.soak)]


def is_finished(answer):
    return any(c["finish_reason"] for e in answer.events if e.data != "[DONE]"
               for c in e.json["choices"])


def wait_until(answer, moment):
    """The stream is so far: that many chunks, or its finish_reason."""
    if moment != "finish":
        answer.wait_events(moment)
    while moment == "finish" and not is_finished(answer):
        answer.wait_events(len(answer.events) + 1)


@pytest.mark.parametrize("act, moment", LOSSES)
def test_lost_engine_shows_in_no_answer(cluster, models, act, moment):
    """One of three under streams of OpenAI's API, whole answers too."""
    nginx = three(cluster, models, http="llmgw_token_timeout 3s;"
                                        "llmgw_first_token_timeout 3s;")
    takes = 6 if act == "freeze" else QUICK
    asked = [conversation(i, TOKENS, stream=i % 8 != 7, **(
        {} if i % 8 != 7 else {"stream_options": None}))
        for i in range(CONVERSATIONS)]
    undisturbed = together(nginx.api, asked)
    connections = [sse.Connection(nginx.api, 60, takes) for _ in asked]

    def load():
        return {id: r["in_flight"] for id, r in nginx.replicas().items()}
    go_on = stand_still(cluster)
    answers = [c.request(sse.CHAT, body)
               for c, body in zip(connections, asked)]
    wait_for(lambda: sum(load().values()) > 8, "streams")
    go_on()
    wait_until(answers[0], moment)
    victim = cluster.replicas[max(load(), key=load().get)]
    getattr(victim.proc, act)()
    try:
        got = [sse.result_of(answer, 60) for answer in answers]
    finally:
        victim.proc.thaw()
    for c in connections:
        c.close()
    assert [says(r) for r in got] == undisturbed
    assert {len(r.ids) for r in got} == {1}
    assert {(r.roles, r.done) for r, b in zip(got, asked) if b["stream"]} == \
        {(1, 1)}


def test_front_serves_all_forms(cluster, models):
    nginx = three(cluster, models)
    body = conversation(1, n=30)
    stream = sse.call(nginx.api, sse.CHAT, body)
    plain = {k: v for k, v in body.items() if "stream" not in k}
    whole = sse.call(nginx.api, sse.CHAT, plain)
    assert says(stream) == says(whole)
    for more in {}, {"stream": True}:
        with_logprobs = sse.call(nginx.api, sse.CHAT, {
            **plain, **more, "logprobs": True, "top_logprobs": 2})
        assert with_logprobs.text == whole.text
        assert with_logprobs.logprobs == 30
    text = {k: v for k, v in plain.items() if k != "messages"}
    got = sse.call(nginx.api, sse.TEXT, {**text, "prompt": "so"})
    assert got.usage["completion_tokens"] == 30
    refused = sse.call(nginx.api, sse.CHAT, {**plain, "max_tokens": 9000})
    assert refused.status == 400
    assert refused.error["code"] == "context_length_exceeded"


@pytest.mark.soak
def test_rolling_update_shows_in_no_answer(cluster, models):
    """Three engines in the process, restarted one by one under streams."""
    fleet = Fleet(cluster, 3, nginx={"openai": True}, token_delay=None,
                  **engine(model=models(), max_capacity=max(16, STREAMS)))
    api = fleet.nginx.api
    asked = [conversation(i, 150) for i in range(STREAMS)]
    undisturbed = together(api, asked)
    done, rounds = [], []

    def stream(i):
        while not done or not rounds:
            assert says(sse.call(api, sse.CHAT, asked[i], 60)) \
                == undisturbed[i]
            rounds.append(i)

    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        streams = [pool.submit(stream, i) for i in range(STREAMS)]
        try:
            fleet.update().done()
        finally:
            done.append(True)
        for one in streams:
            one.result()
    fleet.close()
    assert len(rounds) >= STREAMS
