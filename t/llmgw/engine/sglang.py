"""SGLang, as of 0.5: python/sglang/srt/entrypoints/

openai/serving_chat.py: no token ids; text only if there is some; finish_reason
in a chunk of its own behind the last text.  openai/serving_completions.py:
token_ids, and the prompt's in the first choice, if return_token_ids asks; the
status waits for the first chunk.  openai/protocol.py: unknown keys are
ignored, every key of a chunk is written, null or not.  openai/serving_base.py:
errors without the level `error`.  http_server.py: /generate, /server_info,
/health.  srt/observability/: the metrics; realtime_tokens_total moves with each
step, the other counters with each request that ends, gauges with a prefill and
every fortieth step, and when nothing was for 30 s.
"""

import contextlib
import time
import uuid

from . import answer, model, more
from .prom import counter, gauge, text
from .run import Cut, Run
from .vllm import VLLM
from .wire import Events, Refused

EMPTY_DELTA = {"role": None, "content": None, "reasoning_content": None,
               "tool_calls": None}


class SGLang(VLLM):
    name = "sglang"
    reasoning_key = "reasoning_content"
    detokenized = "text"
    more_paths = ("/v1/rerank", "/v1/score", "/classify", more.IMAGES,
                  *more.AUDIO)
    is_early = False
    told = 0, 0         # requests that run and wait, as metrics have it

    def routes(self):
        return {**super().routes(),
                ("GET", "/health_generate"): self.health,
                ("GET", "/server_info"): self.server_info,
                ("GET", "/get_server_info"): self.server_info,
                ("GET", "/get_model_info"): self.model_info,
                ("POST", "/generate"): self.generate}

    def error(self, status, message, param=None, kind=None):
        kind = kind or ("BadRequestError" if status < 500
                        else "InternalServerError")
        return {"object": "error", "message": message, "type": kind,
                "param": param, "code": status}

    def refuse_detail(self, status, detail):
        raise Refused(status, {"detail": detail})

    def unauthorized(self):
        raise Refused(401, {"error": "Unauthorized"})

    def check(self, request, api):
        """Any model will do."""
        super().check({**request, "model": None}, api)

    def name_of(self, call):
        return uuid.uuid4().hex

    def new_id(self, name, api):
        return name

    def usage_of_thoughts(self, run):
        return {"reasoning_tokens": run.thoughts}

    def chunk(self, a, index, what, finish=None, logprobs=None, **more):
        name = "delta" if a.api == "chat" else "text"
        if a.api == "chat":
            what = {**EMPTY_DELTA, **what}
        else:
            more.setdefault("token_ids", None)
            more.setdefault("prompt_token_ids", None)
        return {**self.chunk_head(a), "choices": [
            {"index": index, name: what, "logprobs": logprobs,
             "finish_reason": finish,
             "matched_stop": more.pop("matched", None), **more}],
            "usage": a.usage() if a.each_usage else None}

    def first_chunks(self, a):
        if a.api == "chat":
            for choice in a.run.choices:
                yield self.chunk(a, choice.index,
                                 {"role": "assistant", "content": ""})

    def chunks(self, a, choice, step):
        said = self.said(a, step)
        matched = {"matched": step.stop or model.END} \
            if step.finish == "stop" else {}
        if a.api == "chat":
            if said:
                yield self.chunk(a, choice.index, said,
                                 logprobs=a.logprobs(choice, step))
            if step.finish:
                yield self.chunk(a, choice.index, {}, step.finish, **matched)
            return
        ids = {}
        if a.return_ids:
            ids["token_ids"] = step.ids
            if step.begins == 0:
                ids["prompt_token_ids"] = a.run.prompts[0]
        yield self.chunk(a, choice.index, said, step.finish,
                         a.logprobs(choice, step), **ids, **matched)

    def call_id(self):
        return "call_" + uuid.uuid4().hex[:24]

    def whole_answer(self, a, said):
        got = super().whole_answer(a, said)
        for key in ("service_tier", "system_fingerprint",
                    "kv_transfer_params", "prompt_token_ids"):
            got.pop(key, None)
        for choice, steps in zip(got["choices"], said):
            choice["matched_stop"] = choice.pop("stop_reason")
            if a.api == "chat":
                choice.pop("token_ids")
        return {"metadata": {"weight_version": "default"}, **got}

    async def cut(self, call, how, events=None):
        """In a stream the level is there."""
        if how != "error" or events is None:
            return await super().cut(call, how, events)
        if not events.sent:
            self.refuse(500, "as the test wanted")
        await events.send({"error": self.error(500, "as the test wanted")})
        await events.send("[DONE]")
        await events.end()

    def model_row(self, name):
        return {"id": name, "object": "model", "created": 1700000000,
                "owned_by": "sglang", "root": name, "parent": None,
                "max_model_len": self.engine.max_context}

    async def version(self, call):
        self.refuse_detail(404, "Not Found")

    async def server_info(self, call):
        e = self.engine
        await call.answer(200, {
            "model_path": f"/models/{e.model}", "served_model_name": e.model,
            "version": "0.5.4", "max_running_requests": e.max_running,
            "max_total_num_tokens": 65536, "context_length": e.max_context,
            "reasoning_parser": "qwen3" if e.reasoning else None,
            "sampling_defaults": e.sampling_defaults, "dp_size": 1,
            "enable_priority_scheduling": e.priorities is not None,
            "schedule_low_priority_values_first": e.priorities == "low",
            "internal_states": [{
                "effective_max_running_requests_per_dp": e.max_running}]})

    async def model_info(self, call):
        await call.answer(200, {"model_path": f"/models/{self.engine.model}",
                                "is_generation": True})

    async def generate(self, call):
        """The native way: text and output_ids are the whole so far."""
        self.fail_if_asked(call)
        request = self.json(call)
        sampling = request.get("sampling_params") or {}
        ids = request.get("input_ids")
        prompt = self.ids_of(ids if ids is not None else request["text"])
        stop = sampling.get("stop") or []
        stop = [stop] if isinstance(stop, str) else stop
        run = Run(call, [prompt], answer.Want(
            max_tokens=sampling.get("max_new_tokens", 128), stop=stop,
            min_tokens=sampling.get("min_new_tokens", 0),
            ignore_end=bool(sampling.get("ignore_eos")), hold=self.hold(stop)))
        rid = request.get("rid") or uuid.uuid4().hex
        if request.get("stream"):
            await self.generate_stream(call, run, rid)
        else:
            said = [s async for s in self.native(run, rid)]
            await call.answer(200, said[-1])

    async def native(self, run, rid):
        text = ""
        async with contextlib.aclosing(run.steps()) as steps:
            async for choice, step in steps:
                text += step.text
                finish = {"type": step.finish} if step.finish else None
                yield {"text": text, "output_ids": list(choice.ids),
                       "meta_info": {
                           "id": rid, "finish_reason": finish,
                           "prompt_tokens": run.prompt_tokens,
                           "completion_tokens": run.tokens,
                           "cached_tokens": run.cached_tokens}}

    async def generate_stream(self, call, run, rid):
        events = Events(call, self.event_kind)
        try:
            async with contextlib.aclosing(self.native(run, rid)) as said:
                async for one in said:
                    if not events.sent:
                        await events.begin()
                    await events.send(one)
        except Cut as cut:
            return await self.cut(call, str(cut), events)
        await events.send("[DONE]")
        await events.end()

    async def health(self, call):
        """It generates a token, if nothing else is generated."""
        e = self.engine
        if not e.faults.plain_health:
            while e.faults.hang:
                await e.faults_changed.wait()
            if not e.running:
                e.prompt_tokens += 1
                self.told = 0, len(e.waiting)
        await super().health(call)

    def counts(self):
        """An idle server says for half a minute what was last."""
        e = self.engine
        if e.running or e.waiting or time.monotonic() - e.delivered > 30:
            self.told = len(e.running), len(e.waiting)
        return self.told

    async def metrics(self, call):
        e = self.engine
        label = {"model_name": e.model}
        running, waiting = self.counts()
        await call.answer(200, text(
            gauge("sglang:num_running_reqs", running, label),
            gauge("sglang:num_queue_reqs", waiting, label),
            gauge("sglang:token_usage",
                  min(1, len(e.running) / e.max_running), label),
            counter("sglang:generation_tokens_total", e.ended_tokens, label),
            counter("sglang:realtime_tokens_total", e.prompt_tokens,
                    {**label, "mode": "prefill_compute"}),
            counter("sglang:realtime_tokens_total", e.tokens,
                    {**label, "mode": "decode"})),
            "text/plain; version=0.0.4; charset=utf-8")
