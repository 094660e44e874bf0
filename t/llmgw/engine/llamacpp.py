"""llama.cpp's server, as of 0.5.0: tools/server/

server-task.cpp: a role chunk with null content, before a choice's first token
unless that is held back; finish_reason alone in the last, with `timings`; each
choice has a usage of its own, at a completion's finish_reason whether asked for
or not, and a whole answer has the first choice's alone; `created` is the time
of each chunk; completions have ids of chatcmpl-; metrics have six digits.
server-context.cpp: nothing is sent while a character is not whole, and `tokens`
of /completion then has the last id only: `tokens_predicted` tells of the
others; the begin of a second prompt is an event `null`.  server.cpp: a client
of a whole answer is found gone only after a second in which nothing is
delivered to anybody; any model will do; bad JSON is 500.  server-http.cpp: 5 s
or 100 requests a connection.
"""

import contextlib
import time
import uuid

from . import answer, model, more, other
from .openai import CHAT_KEYS, TEXT_KEYS, OpenAI
from .prom import text
from .run import Cut, Run
from .wire import Events, Refused

MORE_KEYS = set("""
    top_k min_p typical_p repeat_penalty mirostat grammar json_schema n_predict
    n_keep n_probs cache_prompt id_slot samplers return_tokens timings_per_token
    ignore_eos t_max_predict_ms post_sampling_probs lora chat_template_kwargs
    reasoning_format add_generation_prompt response_format logprobs
    return_progress""".split())


def six(kind, name, value):
    """A metric, with C++'s six digits."""
    return (f"# HELP llamacpp:{name} As the engine has it.\n"
            f"# TYPE llamacpp:{name} {kind}\nllamacpp:{name} {value:g}\n")


class LlamaCpp(OpenAI):
    name = "llamacpp"
    event_kind = "text/event-stream"
    requests_per_connection = 100
    chat_keys = CHAT_KEYS | MORE_KEYS
    text_keys = TEXT_KEYS | MORE_KEYS
    is_early = False
    default_text_tokens = None
    more_paths = ("/v1/rerank", more.COUNT)
    deaf = True

    def routes(self):
        plain = {**super().routes(), **other.routes(self),
                 ("GET", "/health"): self.health,
                 ("POST", "/completion"): self.completion}
        bare = {(m, p.removeprefix("/v1")): f for (m, p), f in plain.items()
                if p != "/v1/completions"}
        return {**bare, **plain,
                ("GET", "/v1/health"): self.health,
                ("GET", "/metrics"): self.metrics,
                ("GET", "/props"): self.props,
                ("POST", "/tokenize"): self.tokenize,
                ("POST", "/detokenize"): self.detokenize,
                ("POST", "/apply-template"): self.apply_template}

    def error(self, status, message, param=None, kind=None):
        kind = kind or {400: "invalid_request_error",
                        401: "authentication_error", 404: "not_found_error",
                        503: "unavailable_error"}.get(status, "server_error")
        return {"error": {"code": status, "message": message, "type": kind}}

    def not_found(self, call, allowed):
        self.refuse(404, "File Not Found")

    def bad_json(self, call, why):
        self.refuse(500, "[json.exception.parse_error.101] parse error at"
                         f" line 1: {why}")

    def unauthorized(self):
        self.refuse(401, "Invalid API Key")

    def check(self, request, api):
        super().check({**request, "model": None}, api)

    def hold(self, stop):
        return answer.begin_of_stop(stop)

    def is_json(self, request):
        return bool(request.get("json_schema")) or super().is_json(request)

    def ids_of(self, prompt):
        """A text may name special ids; text and ids may be mixed."""
        parts = prompt if isinstance(prompt, list) else [prompt]
        ids = []
        for part in parts:
            ids += (model.encode(part, special=True)
                    if isinstance(part, str) else super().ids_of([part]))
        has_begin = ids[:1] == [model.BOS]
        return ids if has_begin or not isinstance(parts[0], str) \
            else [model.BOS, *ids]

    def prompts(self, request, api):
        """A list of texts is several, one of texts and ids is not."""
        if api == "chat":
            return super().prompts(request, api)
        prompt = request["prompt"]
        if isinstance(prompt, list) and not any(isinstance(p, int)
                                                for p in prompt):
            return [self.ids_of(p) for p in prompt]
        return [self.ids_of(prompt)]

    def new_id(self, name, api):
        return "chatcmpl-" + name

    def call_id(self):
        return uuid.uuid4().hex

    def chunk_head(self, a):
        a.created = int(time.time())
        head = super().chunk_head(a)
        return {**head, "system_fingerprint": "0.5.0-mock"}

    def first_chunks(self, a):
        return ["null"] * (len(a.run.prompts) - 1)

    def last_chunks(self, a):
        return ()

    def chunks(self, a, choice, step):
        if a.api == "chat" and len(choice.ids) == 1 and \
                not choice.sequence.open:
            yield self.chunk(a, choice.index,
                             {"role": "assistant", "content": None})
        said = self.said(a, step)
        if said:
            yield self.chunk(a, choice.index, said,
                             logprobs=a.logprobs(choice, step))
        if step.finish:
            last = self.chunk(a, choice.index,
                              {} if a.api == "chat" else "", step.finish)
            timings = {"timings": self.timings(a.run)}
            usage = {"usage": self.usage(a, choice)}
            if a.api == "text":
                yield {**last, **usage, **timings}
            elif a.include_usage:
                yield last
                yield {**last, "choices": [], **usage, **timings}
            else:
                yield {**last, **timings}

    def usage(self, a, choice):
        alike = len(a.run.choices) // len(a.run.prompts)
        prompt = len(a.run.prompts[choice.index // alike])
        said = len(choice.ids)
        return {**a.usage(), "prompt_tokens": prompt,
                "completion_tokens": said, "total_tokens": prompt + said}

    def chunk(self, a, index, what, finish=None, logprobs=None, **more):
        got = super().chunk(a, index, what, finish, logprobs, **more)
        got.pop("usage", None)
        if logprobs is None:
            got["choices"][0].pop("logprobs")
        return got

    def timings(self, run):
        return {"cache_n": run.cached_tokens,
                "prompt_n": run.prompt_tokens - run.cached_tokens,
                "predicted_n": run.tokens, "predicted_ms": 1.0}

    def whole_answer(self, a, said):
        got = super().whole_answer(a, said)
        for choice in got["choices"]:
            if choice["logprobs"] is None and a.api == "chat":
                del choice["logprobs"]
        return {**got, "system_fingerprint": "0.5.0-mock",
                "usage": self.usage(a, a.run.choices[0]),
                "timings": self.timings(a.run)}

    def model_row(self, name):
        return {"id": name, "object": "model", "created": int(time.time()),
                "owned_by": "llamacpp",
                "meta": {"n_vocab": model.VOCABULARY,
                         "n_ctx_train": self.engine.max_context}}

    async def completion(self, call):
        """The native way."""
        self.fail_if_asked(call)
        request = self.json(call)
        if "prompt" not in request:
            self.refuse(400, '"prompt" must be provided')
        prompt = self.ids_of(request["prompt"])
        limit = request.get("n_predict", request.get("max_tokens", -1))
        room = self.engine.max_context - len(prompt)
        stop = request.get("stop") or []
        run = Run(call, [prompt], answer.Want(
            max_tokens=room if limit < 0 else min(limit, room), stop=stop,
            ignore_end=bool(request.get("ignore_eos")),
            script=None, hold=self.hold(stop)))
        said = self.native(request, run)
        if request.get("stream"):
            await self.native_stream(call, said)
        else:
            whole = [one async for one in said]
            await call.answer(200, {
                **whole[-1], "content": "".join(w["content"] for w in whole),
                "tokens": run.choices[0].ids if request.get("return_tokens")
                else []})

    async def native(self, request, run):
        async with contextlib.aclosing(run.steps()) as steps:
            async for choice, step in steps:
                if not choice.sequence.open and not choice.held:
                    yield self.partial(request, run, step.text, step.ids)
                if step.finish:
                    yield self.final(request, run, step)

    def partial(self, request, run, said, ids):
        return {"index": 0, "content": said,
                "tokens": ids if request.get("return_tokens") else [],
                "stop": False, "id_slot": 0, "tokens_predicted": run.tokens,
                "tokens_evaluated": run.prompt_tokens}

    def final(self, request, run, step):
        kind = {"length": "limit"}.get(step.finish, "eos")
        return {"index": 0, "content": "", "tokens": [], "id_slot": 0,
                "stop": True, "model": self.engine.model,
                "tokens_predicted": run.tokens,
                "tokens_evaluated": run.prompt_tokens,
                "generation_settings": {"n_predict":
                                        request.get("n_predict", -1)},
                "prompt": "", "has_new_line": False, "truncated": False,
                "stop_type": "word" if step.stop else kind,
                "stopping_word": step.stop or "",
                "tokens_cached": run.prompt_tokens + run.tokens,
                "timings": self.timings(run)}

    async def native_stream(self, call, said):
        events = Events(call, self.event_kind)
        try:
            async with contextlib.aclosing(said):
                async for one in said:
                    if not events.sent:
                        await events.begin()
                    await events.send(one)
        except Cut as cut:
            return await self.cut(call, str(cut), events)
        await events.end()

    async def cut(self, call, how, events=None):
        """No [DONE] behind an error."""
        if how != "error" or events is None:
            return await super().cut(call, how, events)
        if not events.sent:
            self.refuse(500, "as the test wanted")
        await events.send(self.error(500, "as the test wanted"))
        await events.end()

    async def health(self, call):
        if self.engine.faults.health != 200:
            raise Refused(503, self.error(503, "Loading model"))
        await call.answer(200, {"status": "ok"})

    async def props(self, call):
        await call.answer(200, {
            "default_generation_settings": {"n_ctx": self.engine.max_context},
            "total_slots": self.engine.max_running,
            "model_path": f"/models/{self.engine.model}.gguf",
            "chat_template": "{{ messages }}<think>" if self.engine.reasoning
            else "{{ messages }}", "build_info": "0.5.0-mock"})

    async def tokenize(self, call):
        """Texts and ids may be mixed, as in a prompt."""
        request = self.json(call)
        content = request.get("content", "")
        ids = []
        for part in content if isinstance(content, list) else [content]:
            ids += (model.encode(part, request.get("parse_special", True))
                    if isinstance(part, str) else [part])
        if request.get("add_special"):
            ids = [model.BOS, *ids]
        await call.answer(200, {"tokens": ids})

    async def detokenize(self, call):
        ids = self.ids_of(self.json(call).get("tokens", []))
        await call.answer(200, {"content": model.decode(ids)})

    async def apply_template(self, call):
        request = self.json(call)
        self.check_messages(request)
        await call.answer(200, {"prompt": model.decode(self.render(request),
                                                       special=True)})

    async def metrics(self, call):
        e = self.engine
        e.delivered = time.monotonic()
        await call.answer(200, text(
            six("gauge", "requests_processing", len(e.running)),
            six("gauge", "requests_deferred", len(e.waiting)),
            six("counter", "prompt_tokens_total", e.prompt_tokens),
            six("counter", "tokens_predicted_total", e.tokens),
            six("counter", "n_decode_total", e.iterations)),
            "text/plain; version=0.0.4")
