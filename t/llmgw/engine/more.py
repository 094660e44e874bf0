"""Endpoints beside generation, each answer a function of its request.

vllm/entrypoints/pooling/ (0.11): /rerank and /score under their versions,
/classify, /pooling; their usage has the prompt's tokens, /v2/rerank's the total
alone.  vllm/entrypoints/anthropic/ and llama.cpp's tools/server/server.cpp:
/v1/messages/count_tokens.  The latter answers 501 to what it was not started
for.  vllm/entrypoints/openai/speech_to_text.py: a form, read by its part
`model`.  Images and speech are OpenAI's API.
"""

import hashlib
import re

from . import model, other

RERANK = ("/rerank", "/v1/rerank", "/v2/rerank")
POOLING = (*RERANK, "/score", "/v1/score", "/classify", "/pooling")
COUNT = "/v1/messages/count_tokens"
AUDIO = ("/v1/audio/transcriptions", "/v1/audio/translations")
IMAGES, SPEECH = "/v1/images/generations", "/v1/audio/speech"


def routes(dialect, *paths):
    return {("POST", path): _handler(dialect, path) for path in paths}


def _handler(dialect, path):
    async def handle(call):
        dialect.fail_if_asked(call)
        if path in AUDIO:
            return await _audio(dialect, call)
        request = dialect.json(call)
        await HANDLERS[path.rpartition("/")[2]](call, request)
    return handle


def _score(text):
    return hashlib.sha1(text.encode()).digest()[0] / 256


def _texts(given):
    return given if isinstance(given, list) else [given]


def _used(*texts):
    return sum(len(model.encode(t)) for t in texts)


async def _rerank(call, request):
    query, documents = request["query"], request["documents"]
    used = _used(query, *documents)
    rows = [{"index": n, "document": {"text": d},
             "relevance_score": _score(query + d)}
            for n, d in enumerate(documents)]
    usage = {"total_tokens": used}
    if call.path != "/v2/rerank":
        usage["prompt_tokens"] = used
    await call.answer(200, {"id": "rerank-1", "model": request.get("model"),
                            "usage": usage, "results": rows})


def _listed(request, texts, **row):
    used = _used(*texts)
    return {"id": "pool-1", "object": "list", "created": 1700000000,
            "model": request.get("model"),
            "data": [{"index": n, **{k: f(t) for k, f in row.items()}}
                     for n, t in enumerate(texts)],
            "usage": {"prompt_tokens": used, "total_tokens": used,
                      "completion_tokens": 0, "prompt_tokens_details": None}}


async def _score_texts(call, request):
    texts = [a + b for a in _texts(request["text_1"])
             for b in _texts(request["text_2"])]
    await call.answer(200, _listed(request, texts, score=_score))


async def _classify(call, request):
    await call.answer(200, _listed(request, _texts(request["input"]),
                                   label=lambda t: f"LABEL_{len(t) % 2}",
                                   probs=lambda t: [_score(t)]))


async def _pooling(call, request):
    await call.answer(200, _listed(request, _texts(request["input"]),
                                   data=model.vector))


async def _count_tokens(call, request):
    messages = other.Messages.messages(request)
    await call.answer(200, {"input_tokens": len(model.render(messages))})


async def _generations(call, request):
    picture = hashlib.sha256(request["prompt"].encode()).hexdigest() * 1000
    used = _used(request["prompt"])
    await call.answer(200, {"created": 1700000000, "data": [
        {"b64_json": picture}] * (request.get("n") or 1),
        "usage": {"input_tokens": used, "output_tokens": 64,
                  "total_tokens": used + 64}})


async def _speech(call, request):
    """In pieces, whose number nobody knows at the beginning."""
    await call.start(200, [("content-type", "audio/mpeg")])
    for n in range(4):
        while 0 <= call.engine.faults.gate <= n:
            await call.engine.faults_changed.wait()
        await call.write(hashlib.sha512(
            f"{n}{request['input']}".encode()).digest() * 64)
    await call.write(b"", more=False)


def _form(call):
    """A parser of mail takes seconds for 25 MB, in which nothing else runs."""
    mark = call.headers["content-type"].partition("boundary=")[2].encode()
    found = {}
    for part in call.body.split(b"--" + mark)[1:-1]:
        head, _, content = part[2:-2].partition(b"\r\n\r\n")
        found[re.search(rb'name="(\w+)"', head)[1].decode()] = content
    return found


async def _audio(dialect, call):
    form = _form(call)
    name = form.get("model", b"").decode()
    if name not in call.engine.serves():
        dialect.unknown_model(name)
    if "file" not in form:
        dialect.refuse(400, "file is missing", "file")
    await call.answer(200, {"text": hashlib.sha1(form["file"]).hexdigest(),
                            "usage": {"type": "duration", "seconds": 3}})


HANDLERS = {"rerank": _rerank, "score": _score_texts, "classify": _classify,
            "pooling": _pooling, "count_tokens": _count_tokens,
            "generations": _generations, "speech": _speech}
