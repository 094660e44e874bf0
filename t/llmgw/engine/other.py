"""What passes through the gateway as it is: /v1/embeddings, /v1/responses and
Anthropic's /v1/messages.

vllm/entrypoints/openai/serving_embedding.py, serving_responses.py and
vllm/entrypoints/anthropic/ (0.11.1): the latter two are streams of events with
names.  What is input of a message: vLLM means the whole prompt, and says it at
both ends; SGLang
(python/sglang/srt/entrypoints/anthropic/response_conversion.py) and llama.cpp
(tools/server/server-task.cpp) mean what was not cached, and say it first.
vLLM announces a response before it has read the prompt.
"""

import base64
import contextlib
import struct
import uuid

from . import model
from .answer import Want, lag
from .run import Cut, Run
from .wire import Events


def routes(dialect):
    return {("POST", "/v1/embeddings"): lambda call: _embed(dialect, call),
            ("POST", "/v1/responses"): lambda call: _said(
                dialect, call, Responses),
            ("POST", "/v1/messages"): lambda call: _said(
                dialect, call, Messages)}


KEPT = {}       # responses by their id: the answer, and what was said before


async def kept(dialect, call):
    """vLLM: GET /v1/responses/ID and POST .../cancel; OpenAI: DELETE and
    .../input_items, too.  None: the path is none of these."""
    id, _, what = call.path.removeprefix("/v1/responses/").partition("/")
    methods = {"": ("GET", "DELETE"), "cancel": ("POST",),
               "input_items": ("GET",)}
    if call.method not in methods.get(what, ()):
        return False
    if id not in KEPT:
        dialect.refuse(404, f"Response with id '{id}' not found.",
                       "response_id")
    answer, said = KEPT[id]
    if call.method == "DELETE":
        del KEPT[id]
        answer = {"id": id, "object": "response", "deleted": True}
    elif what == "cancel":
        answer = {**answer, "status": "cancelled"}
    elif what:
        answer = {"object": "list", "data": said[:-1]}
    await call.answer(200, answer)
    return True


async def _embed(dialect, call):
    dialect.fail_if_asked(call)
    request = dialect.json(call)
    dialect.check_model(request)
    given = request.get("input")
    if not given:
        dialect.refuse(400, "input is missing", "input")
    many = given if isinstance(given, list) \
        and not isinstance(given[0], int) else [given]
    texts = [t if isinstance(t, str) else model.decode(t) for t in many]

    def shape(vector):
        if request.get("encoding_format") == "base64":
            return base64.b64encode(
                struct.pack(f"<{len(vector)}f", *vector)).decode()
        return vector
    used = sum(len(model.encode(t)) for t in texts)
    await call.answer(200, {
        "object": "list", "model": request.get("model"),
        "data": [{"object": "embedding", "index": n,
                  "embedding": shape(model.vector(t))}
                 for n, t in enumerate(texts)],
        "usage": {"prompt_tokens": used, "total_tokens": used}})


class Responses:
    is_early = True

    def __init__(self, request, run):
        self.run, self.id = run, "resp_" + uuid.uuid4().hex
        self.item = "msg_" + uuid.uuid4().hex
        self.model = request.get("model")
        self.sequence = -1

    @staticmethod
    def messages(request):
        given = request.get("input")
        before = KEPT.get(request.get("previous_response_id"), (None, []))[1]
        return before + ([{"role": "user", "content": given}]
                         if isinstance(given, str) else given)

    @staticmethod
    def limit(request):
        return request.get("max_output_tokens") or 64

    def keep(self, text, finish, messages):
        KEPT[self.id] = (self.whole(text, finish), [
            *messages, {"role": "assistant", "content": text}])

    def whole(self, text, status="completed"):
        return {"id": self.id, "object": "response", "created_at": 1700000000,
                "model": self.model, "status": status,
                "output": [self._item(text)] if text is not None else [],
                "usage": None if text is None else self._usage()}

    def _usage(self):
        run = self.run
        return {"input_tokens": run.prompt_tokens,
                "input_tokens_details": {"cached_tokens": run.cached_tokens},
                "output_tokens": run.tokens,
                "output_tokens_details": {"reasoning_tokens": run.thoughts},
                "total_tokens": run.prompt_tokens + run.tokens}

    def _item(self, text, status="completed"):
        return {"id": self.item, "type": "message", "role": "assistant",
                "status": status, "content": [self._part(text)]}

    def _part(self, text):
        return {"type": "output_text", "text": text, "annotations": []}

    def _event(self, kind, **more):
        self.sequence += 1
        return kind, {"type": kind, "sequence_number": self.sequence, **more}

    def begin(self):
        where = {"output_index": 0, "item_id": self.item, "content_index": 0}
        started = self.whole(None, "in_progress")
        return [self._event("response.created", response=started),
                self._event("response.in_progress", response=started),
                self._event("response.output_item.added", output_index=0,
                            item=self._item("", "in_progress")),
                self._event("response.content_part.added", **where,
                            part=self._part(""))]

    def delta(self, text):
        return self._event("response.output_text.delta", output_index=0,
                           item_id=self.item, content_index=0, delta=text)

    def end(self, text, finish):
        return [self._event("response.output_text.done", output_index=0,
                            item_id=self.item, content_index=0, text=text),
                self._event("response.output_item.done", output_index=0,
                            item=self._item(text)),
                self._event("response.completed", response=self.whole(text))]


class Messages:
    is_early = False

    def __init__(self, request, run):
        self.run, self.id = run, "msg_" + uuid.uuid4().hex
        self.model = request.get("model")

    @staticmethod
    def messages(request):
        system = request.get("system")
        first = [{"role": "system", "content": system}] if system else []
        return first + request.get("messages", [])

    @staticmethod
    def limit(request):
        return request.get("max_tokens") or 64

    def whole(self, text, finish):
        return {"id": self.id, "type": "message", "role": "assistant",
                "model": self.model,
                "content": [] if text is None else [
                    {"type": "text", "text": text}],
                "stop_reason": self._reason(finish), "stop_sequence": None,
                "usage": {**self._input(), "output_tokens":
                          0 if text is None else self.run.tokens}}

    def _input(self):
        run = self.run
        if run.engine.dialect.name == "vllm":
            return {"input_tokens": run.prompt_tokens}
        return {"input_tokens": run.prompt_tokens - run.cached_tokens,
                "cache_read_input_tokens": run.cached_tokens}

    def _reason(self, finish):
        return {"stop": "end_turn", "length": "max_tokens"}.get(finish)

    def begin(self):
        return [("message_start", {"type": "message_start",
                                   "message": self.whole(None, None)}),
                ("content_block_start", {
                    "type": "content_block_start", "index": 0,
                    "content_block": {"type": "text", "text": ""}})]

    def delta(self, text):
        return "content_block_delta", {
            "type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": text}}

    def end(self, text, finish):
        again = self._input() if self.run.engine.dialect.name == "vllm" else {}
        return [("content_block_stop", {"type": "content_block_stop",
                                        "index": 0}),
                ("message_delta", {
                    "type": "message_delta",
                    "delta": {"stop_reason": self._reason(finish),
                              "stop_sequence": None},
                    "usage": {**again, "output_tokens": self.run.tokens}}),
                ("message_stop", {"type": "message_stop"})]


async def _said(dialect, call, shape):
    dialect.fail_if_asked(call)
    request = dialect.json(call)
    dialect.check_model(request)
    previous = request.get("previous_response_id")
    if previous and previous not in KEPT:
        dialect.refuse(404, f"Response with id '{previous}' not found.",
                       "response_id")
    messages = shape.messages(request)
    dialect.check_messages({"messages": messages})
    run = Run(call, [model.render(messages)],
              Want(max_tokens=shape.limit(request), hold=lag([])))
    said = shape(request, run)
    text = ""
    events = Events(call, dialect.event_kind) if request.get("stream") \
        else None

    async def begin():
        await events.begin()
        for name, data in said.begin():
            await events.send(data, name)
    try:
        if events and dialect.is_early and shape.is_early:
            await begin()
        async with contextlib.aclosing(run.steps()) as steps:
            async for _, step in steps:
                if events and not events.sent:
                    await begin()
                text += step.text
                if events and step.text:
                    name, data = said.delta(step.text)
                    await events.send(data, name)
    except Cut as cut:
        return await dialect.cut(call, str(cut), events)
    if shape is Responses:
        said.keep(text, step.finish, messages)
    if not events:
        return await call.answer(200, said.whole(text, step.finish))
    for name, data in said.end(text, step.finish):
        await events.send(data, name)
    await events.end()
