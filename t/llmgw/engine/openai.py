"""The API as an unnamed server has it; the engines' own differ from it.

Shapes: OpenAI's API reference, Chat and Completions; the role stands alone in
a first chunk, finish_reason alone in a last one, `usage` is null in all chunks
but one of its own.  A last message of the assistant is continued.
"""

import asyncio
import contextlib
import json
import math
import time
import uuid

from . import answer, model, more
from .run import Cut, Run
from .wire import Events, Refused

SAMPLING = """
    model frequency_penalty logit_bias logprobs max_tokens n presence_penalty
    seed stop stream stream_options temperature top_p user""".split()
CHAT_KEYS = {*SAMPLING, *"""
    messages max_completion_tokens metadata modalities parallel_tool_calls
    prediction reasoning_effort response_format service_tier store tool_choice
    tools top_logprobs functions function_call prompt_cache_key
    safety_identifier verbosity""".split()}
TEXT_KEYS = {*SAMPLING, *"prompt best_of echo suffix".split()}
INTEGERS = "max_tokens max_completion_tokens n seed min_tokens best_of".split()
JSON_TEXT = ('{"city": "Orléans", "days": [1, 2, 3],'
             ' "note": "a text that takes a while"}')


class Answer:
    """What all chunks of one answer share."""

    def __init__(self, id, api, request, run, model):
        self.id, self.api, self.run = id, api, run
        self.created = int(time.time())
        self.model = request.get("model") or model
        options = request.get("stream_options") or {}
        self.include_usage = bool(options.get("include_usage"))
        self.each_usage = bool(options.get("continuous_usage_stats"))
        self.return_ids = bool(request.get("return_token_ids"))
        self.offsets = {}

    def usage(self):
        run = self.run
        return {"prompt_tokens": run.prompt_tokens,
                "total_tokens": run.prompt_tokens + run.tokens,
                "completion_tokens": run.tokens,
                "prompt_tokens_details": {"cached_tokens": run.cached_tokens},
                **run.engine.dialect.usage_of_thoughts(run),
                **run.engine.adds.get("usage", {})}

    def head(self, object):
        return {"id": self.id, "object": object, "created": self.created,
                "model": self.model, **self.run.engine.adds.get("answer", {})}

    def logprobs(self, choice, step):
        if self.api == "chat":
            return answer.chat_logprobs(step)
        at = self.offsets.get(choice.index, 0)
        self.offsets[choice.index] = at + len(step.text)
        return answer.text_logprobs(step, at)


class OpenAI:
    name = "openai"
    event_kind = "text/event-stream; charset=utf-8"
    requests_per_connection = math.inf
    chat_keys, text_keys = CHAT_KEYS, TEXT_KEYS
    reasoning_key = "reasoning_content"
    is_early = True         # 200 goes out before the first token
    default_text_tokens = 16
    more_paths = (more.SPEECH, more.IMAGES, *more.AUDIO)
    deaf = False            # notices late that a client is gone

    def __init__(self):
        self.engine = None

    def routes(self):
        return {("POST", "/v1/chat/completions"): self.chat,
                ("POST", "/v1/completions"): self.completions,
                **more.routes(self, *self.more_paths),
                ("GET", "/v1/models"): self.models}

    def usage_of_thoughts(self, run):
        return {"completion_tokens_details":
                {"reasoning_tokens": run.thoughts}}

    # errors

    def error(self, status, message, param=None, kind=None):
        return {"error": {
            "message": message, "param": param, "code": None,
            "type": kind or ("invalid_request_error" if status < 500
                             else "server_error")}}

    def refuse(self, status, message, param=None, headers=()):
        raise Refused(status, self.error(status, message, param), headers)

    def not_found(self, call, allowed):
        self.refuse(405 if allowed else 404,
                    f"Invalid URL ({call.method} {call.path})")

    def bad_json(self, call, why):
        self.refuse(400, "We could not parse the JSON body of your request."
                         f" ({why})")

    def unauthorized(self):
        self.refuse(401, "Incorrect API key provided.")

    def unknown_model(self, name):
        self.refuse(404, f"The model `{name}` does not exist", "model")

    def unknown_keys(self, keys):
        self.refuse(400, f"Unrecognized request argument supplied: {keys[0]}",
                    keys[0])

    # reading a request

    def json(self, call):
        try:
            got = json.loads(call.body)
        except ValueError as e:
            self.bad_json(call, e)
        if not isinstance(got, dict):
            self.bad_json(call, "not an object")
        return got

    def read(self, call, api):
        request = self.json(call)
        known = self.chat_keys if api == "chat" else self.text_keys
        more = [k for k in request if k not in known]
        if more and self.engine.strict:
            self.unknown_keys(more)
        self.check(request, api)
        return request

    def check_model(self, request):
        name = request.get("model")
        if name is not None and name not in self.engine.serves():
            self.unknown_model(name)

    def check(self, request, api):
        self.check_model(request)
        for key in INTEGERS:
            value = request.get(key)
            if value is not None and (type(value) is not int):
                self.refuse(400, f"{key} is not an integer", key)
            if value is not None and key not in ("seed", "min_tokens") \
                    and value < 1:
                self.refuse(400, f"{key} must be at least 1, got {value}.",
                            key)
        if type(request.get("stream") or False) is not bool:
            self.refuse(400, "stream is not a boolean", "stream")
        if request.get("stream_options") and not request.get("stream"):
            self.refuse(400, "Stream options can only be defined when"
                             " `stream=True`.", "stream_options")
        if api == "chat":
            self.check_messages(request)
        elif request.get("prompt") in (None, [], [[]]):
            self.refuse(400, "you must provide a prompt", "prompt")

    def check_messages(self, request):
        messages = request.get("messages")
        if not isinstance(messages, list) or not messages:
            self.refuse(400, "messages is not a list of messages", "messages")
        for m in messages:
            if not isinstance(m, dict) or m.get("role") not in model.ROLE:
                self.refuse(400, f"a message is not one: {m}", "messages")
            if not isinstance(m.get("content"), (str, list, type(None))):
                self.refuse(400, "content is neither text nor parts",
                            "messages")

    def goes_on(self, request):
        return request["messages"][-1]["role"] == "assistant"

    def render(self, request):
        tools = request.get("tools")
        return model.render(request["messages"], tools,
                            self.goes_on(request),
                            request.get("add_generation_prompt", True))

    def prompts(self, request, api):
        """A list of prompts, each a list of ids."""
        if api == "chat":
            got = [self.render(request)]
        else:
            prompt = request["prompt"]
            many = prompt if isinstance(prompt, list) and not isinstance(
                prompt[0], int) else [prompt]
            got = [self.ids_of(p) for p in many]
        for ids in got:
            if len(ids) >= self.engine.max_context:
                self.refuse(400, "This model's maximum context length is"
                                 f" {self.engine.max_context} tokens, you"
                                 f" gave {len(ids)}.",
                            "messages" if api == "chat" else "prompt")
        return got

    def ids_of(self, prompt):
        if isinstance(prompt, str):
            return [model.BOS, *model.encode(prompt)]
        for i in prompt:
            if type(i) is not int or not 0 <= i < model.VOCABULARY:
                self.refuse(400, f"Token id {i} is out of vocabulary",
                            "prompt")
        return prompt

    def want(self, request, api, prompts):
        stop = request.get("stop") or []
        stop = [stop] if isinstance(stop, str) else stop
        limit = request.get("max_completion_tokens") \
            or request.get("max_tokens")
        if limit is None and api == "text":
            limit = self.default_text_tokens
        room = self.engine.max_context - max(map(len, prompts))
        logprobs = request.get("logprobs")
        if api == "chat":
            logprobs = request.get("top_logprobs", 0) if logprobs else None
        return answer.Want(
            max_tokens=min(limit or room, room), stop=stop,
            min_tokens=request.get("min_tokens") or 0,
            ignore_end=bool(request.get("ignore_eos")), logprobs=logprobs,
            script=JSON_TEXT if self.is_json(request) else None,
            calls=api == "chat" and bool(request.get("tools"))
            and request.get("tool_choice") != "none",
            thoughts=api == "chat" and self.engine.reasoning,
            hold=self.hold(stop))

    def hold(self, stop):
        return answer.lag(stop)

    def is_json(self, request):
        form = request.get("response_format") or {}
        return form.get("type") in ("json_object", "json_schema")

    # answering

    async def chat(self, call):
        await self.complete(call, "chat")

    async def completions(self, call):
        await self.complete(call, "text")

    async def complete(self, call, api):
        self.fail_if_asked(call)
        request = self.read(call, api)
        prompts = self.prompts(request, api)
        run = Run(call, prompts, self.want(request, api, prompts),
                  request.get("n") or 1)
        name = self.name_of(call)
        self.engine.names.add(name)
        try:
            a = Answer(self.new_id(name, api), api, request, run,
                       self.engine.model)
            answer_it = self.stream if request.get("stream") else self.whole
            await answer_it(call, a)
        finally:
            self.engine.names.discard(name)

    def fail_if_asked(self, call):
        faults = self.engine.faults
        if faults.takes():
            headers = ([("retry-after", str(faults.retry_after))]
                       if faults.retry_after else [])
            self.refuse(faults.status, "as the test wanted", headers=headers)

    def name_of(self, call):
        return uuid.uuid4().hex

    def new_id(self, name, api):
        return ("chatcmpl-" if api == "chat" else "cmpl-") + name

    async def stream(self, call, a):
        events = Events(call, self.event_kind)
        if events.shape == "silent":
            await asyncio.Event().wait()
        if self.is_early or events.shape == "empty":
            await events.begin()
        if events.shape == "empty":
            return await events.end()
        try:
            await self.tokens(call, a, events)
        except Cut as cut:
            return await self.cut(call, str(cut), events)
        for chunk in self.last_chunks(a):
            await events.send(chunk)
        if not self.engine.faults.no_done:
            await events.send("[DONE]")
        await events.end()

    async def tokens(self, call, a, events):
        begun = False
        async with contextlib.aclosing(a.run.steps()) as steps:
            async for choice, step in steps:
                if not begun:
                    begun = True
                    if not self.is_early:
                        await events.begin()
                    for chunk in self.first_chunks(a):
                        await events.send(chunk)
                for chunk in self.chunks(a, choice, step):
                    await events.send(chunk)

    async def cut(self, call, how, events=None):
        if how == "close":
            call.transport.close()
        elif how == "reset":
            call.transport.abort()
        elif events is None:
            self.refuse(500, "as the test wanted")
        else:
            if not call.cycle.response_started:
                await events.begin()
            if how == "error":
                await events.send(self.error(500, "as the test wanted"))
                await events.send("[DONE]")
            await events.end()

    async def whole(self, call, a):
        if self.engine.faults.shape == "silent":
            await asyncio.Event().wait()
        said = [[] for _ in a.run.choices]
        try:
            async with contextlib.aclosing(a.run.steps()) as steps:
                async for choice, step in steps:
                    said[choice.index].append(step)
        except Cut as cut:
            return await self.cut(call, str(cut))
        await call.answer(200, self.whole_answer(a, said))

    # shapes

    def chunk_head(self, a):
        head = a.head("chat.completion.chunk" if a.api == "chat"
                      else "text_completion")
        return {**head, "system_fingerprint": "fp_mock"}

    def chunk(self, a, index, what, finish=None, logprobs=None, **more):
        """what: the delta, or the text."""
        name = "delta" if a.api == "chat" else "text"
        got = {**self.chunk_head(a), "choices": [
            {"index": index, name: what, "logprobs": logprobs,
             "finish_reason": finish, **more}]}
        if a.include_usage:
            got["usage"] = None
        return got

    def last_chunks(self, a):
        if a.include_usage:
            yield {**self.chunk_head(a), "choices": [], "usage": a.usage()}

    def first_chunks(self, a):
        if a.api == "chat":
            for choice in a.run.choices:
                yield self.chunk(a, choice.index,
                                 {"role": "assistant", "content": ""})

    def chunks(self, a, choice, step):
        said = self.said(a, step)
        if said:
            yield self.chunk(a, choice.index, said,
                             logprobs=a.logprobs(choice, step))
        if step.finish:
            yield self.chunk(a, choice.index,
                             {} if a.api == "chat" else "", step.finish)

    def said(self, a, step):
        """The delta, or the text; empty if a step says nothing."""
        if a.api == "text":
            return step.text
        delta = {}
        if step.reasoning:
            delta[self.reasoning_key] = step.reasoning
        if step.text:
            delta["content"] = step.text
        if step.call:
            delta["tool_calls"] = [self.call_delta(step.call)]
        return delta

    def call_delta(self, call):
        if "name" not in call:
            return {"index": 0, "function": call}
        return {"index": 0, "id": self.call_id(), "type": "function",
                "function": {**call, "arguments": ""}}

    def call_id(self):
        return "call_" + uuid.uuid4().hex[:24]

    def whole_answer(self, a, said):
        choices = [self.whole_choice(a, index, steps)
                   for index, steps in enumerate(said)]
        return {**a.head("chat.completion" if a.api == "chat"
                         else "text_completion"),
                "choices": choices, "usage": a.usage()}

    def whole_choice(self, a, index, steps):
        text = "".join(s.text for s in steps)
        got = {"index": index, "logprobs": self.whole_logprobs(a, index, steps),
               "finish_reason": steps[-1].finish}
        if a.api == "text":
            return {**got, "text": text}
        reasoning = "".join(s.reasoning for s in steps)
        message = {"role": "assistant", "content": text}
        if reasoning:
            message[self.reasoning_key] = reasoning
        calls = [s.call for s in steps if s.call]
        if calls:
            message["content"] = text or None
            message["tool_calls"] = [
                {"id": self.call_id(), "type": "function", "function": {
                    "name": calls[0]["name"], "arguments": "".join(
                        c.get("arguments", "") for c in calls)}}]
        return {**got, "message": message}

    def whole_logprobs(self, a, index, steps):
        choice = a.run.choices[index]
        parts = [p for p in (a.logprobs(choice, s) for s in steps) if p]
        if not parts:
            return None
        return {key: [x for p in parts for x in p[key]] for key in parts[0]}

    async def models(self, call):
        await call.answer(200, {"object": "list", "data": [
            self.model_row(name) for name in self.engine.listed()]})

    def model_row(self, name):
        return {"id": name, "object": "model", "created": 1700000000,
                "owned_by": "organization"}
