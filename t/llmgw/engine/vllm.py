"""vLLM, as of 0.11: vllm/entrypoints/openai/

serving_chat.py and serving_completion.py: a role chunk first, with the
prompt's ids on top; finish_reason stands with the last token; token_ids in
each choice if return_token_ids asks; ids may come with empty text; behind an
error in the stream comes [DONE].  protocol.py: the keys.  api_server.py: 200
before the first token, the errors' shape, /tokenize, /detokenize, /version.
vllm/v1/metrics/loggers.py: the metrics.
"""

import asyncio
import uuid

from . import model, more, other
from .openai import CHAT_KEYS, TEXT_KEYS, OpenAI
from .prom import counter, gauge, histogram, padding, text
from .wire import Refused

MORE_KEYS = set("""
    use_beam_search top_k min_p repetition_penalty length_penalty
    stop_token_ids include_stop_str_in_output ignore_eos min_tokens
    skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens
    allowed_token_ids prompt_logprobs add_special_tokens response_format
    guided_json guided_regex guided_choice guided_grammar structural_tag
    structured_outputs priority request_id logits_processors
    return_tokens_as_token_ids return_token_ids cache_salt kv_transfer_params
    vllm_xargs""".split())
MORE_CHAT_KEYS = set("""
    echo add_generation_prompt continue_final_message documents chat_template
    chat_template_kwargs mm_processor_kwargs include_reasoning bad_words
    """.split())
KINDS = {400: "BadRequestError", 401: "AuthenticationError",
         404: "NotFoundError", 429: "RateLimitError",
         503: "ServiceUnavailableError"}


class VLLM(OpenAI):
    name = "vllm"
    chat_keys = CHAT_KEYS | MORE_KEYS | MORE_CHAT_KEYS
    text_keys = TEXT_KEYS | MORE_KEYS
    reasoning_key = "reasoning"
    detokenized = "prompt"
    more_paths = (*more.POOLING, more.COUNT, *more.AUDIO)

    def routes(self):
        return {**super().routes(), **other.routes(self),
                ("GET", "/health"): self.health,
                ("GET", "/ping"): self.health,
                ("GET", "/version"): self.version,
                ("GET", "/metrics"): self.metrics,
                ("POST", "/tokenize"): self.tokenize,
                ("POST", "/detokenize"): self.detokenize}

    def error(self, status, message, param=None, kind=None):
        kind = kind or KINDS.get(status, "InternalServerError")
        return {"error": {"message": message, "type": kind, "param": param,
                          "code": status}}

    def not_found(self, call, allowed):
        if allowed:
            self.refuse_detail(405, "Method Not Allowed")
        self.refuse_detail(404, "Not Found")

    def refuse_detail(self, status, detail):
        """FastAPI's own."""
        self.refuse(status, detail)

    def bad_json(self, call, why):
        self.refuse(400, "[{'type': 'json_invalid', 'loc': ('body', 0), 'msg':"
                         f" 'JSON decode error', 'ctx': {{'error': {why}}}}}]")

    def unauthorized(self):
        raise Refused(401, {"error": "Unauthorized"})

    def unknown_model(self, name):
        self.refuse(404, f"The model `{name}` does not exist.", "model")

    def unknown_keys(self, keys):
        self.refuse(400, "[{'type': 'extra_forbidden', 'loc': ('body',"
                         f" '{keys[0]}'), 'msg': 'Extra inputs are not"
                         " permitted'}]")

    def check(self, request, api):
        super().check(request, api)
        if request.get("continue_final_message") \
                and request.get("add_generation_prompt", True):
            self.refuse(400, "Cannot set both `continue_final_message` and"
                             " `add_generation_prompt` to True.")

    def goes_on(self, request):
        return bool(request.get("continue_final_message"))

    def is_json(self, request):
        guided = any(request.get(k) for k in ("guided_json",
                                              "structured_outputs"))
        return guided or super().is_json(request)

    def name_of(self, call):
        """The caller's id, if it gives one; no two may run at once."""
        given = call.headers.get("x-request-id") or uuid.uuid4().hex
        if given in self.engine.names:
            self.refuse(400, f"Request id {given} already running.")
        return given

    def usage_of_thoughts(self, run):
        return {}

    def chunk_head(self, a):
        return a.head("chat.completion.chunk" if a.api == "chat"
                      else "text_completion")

    def chunk(self, a, index, what, finish=None, logprobs=None, **more):
        name = "delta" if a.api == "chat" else "text"
        got = {**self.chunk_head(a), "choices": [
            {"index": index, name: what, "logprobs": logprobs,
             "finish_reason": finish, **more}]}
        if a.each_usage:
            got["usage"] = a.usage()
        return got

    def first_chunks(self, a):
        for chunk in super().first_chunks(a):
            if a.return_ids:
                chunk["prompt_token_ids"] = a.run.prompts[0]
            yield chunk

    def chunks(self, a, choice, step):
        said = self.said(a, step)
        more = {"token_ids": step.ids if a.return_ids else None}
        if a.api == "chat":
            if not said and choice.called is None:
                said = {"content": ""}
            elif not said and not a.return_ids and not step.finish:
                return      # a parser that is still reading says nothing
        else:
            n = len(a.run.choices) // len(a.run.prompts)
            more["prompt_token_ids"] = (
                a.run.prompts[choice.index // n]
                if a.return_ids and step.begins == 0 else None)
            more["stop_reason"] = step.stop
        if step.finish:
            more["stop_reason"] = step.stop
        yield self.chunk(a, choice.index, said, step.finish,
                         a.logprobs(choice, step), **more)

    def call_id(self):
        return "chatcmpl-tool-" + uuid.uuid4().hex

    def whole_answer(self, a, said):
        got = super().whole_answer(a, said)
        if a.return_ids and a.api == "chat":
            got["prompt_token_ids"] = a.run.prompts[0]
        return {**got, "service_tier": None, "system_fingerprint": None,
                "kv_transfer_params": None}

    def whole_choice(self, a, index, steps):
        got = super().whole_choice(a, index, steps)
        ids = [i for s in steps for i in s.ids]
        got["stop_reason"] = steps[-1].stop
        got["token_ids"] = ids if a.return_ids else None
        if a.api == "text":
            n = len(a.run.choices) // len(a.run.prompts)
            got["prompt_token_ids"] = (a.run.prompts[index // n]
                                       if a.return_ids else None)
        return got

    def model_row(self, name):
        base = self.engine.listed()[0]
        return {"id": name, "object": "model", "created": 1700000000,
                "owned_by": "vllm", "root": f"/models/{name}",
                "parent": None if name == base else base,
                "max_model_len": self.engine.max_context}

    async def health(self, call):
        await asyncio.sleep(self.engine.faults.health_delay)
        await call.answer(self.engine.faults.health, b"")

    async def version(self, call):
        await call.answer(200, {"version": "0.11.0"})

    async def tokenize(self, call):
        request = self.json(call)
        if "messages" in request:
            self.check_messages(request)
            ids = self.render(request)
        else:
            ids = self.ids_of(request.get("prompt", ""))
            if not request.get("add_special_tokens", True):
                ids = ids[1:]
        await call.answer(200, {"count": len(ids), "tokens": ids,
                                "max_model_len": self.engine.max_context,
                                "token_strs": None})

    async def detokenize(self, call):
        ids = self.ids_of(self.json(call).get("tokens", []))
        await call.answer(200, {self.detokenized: model.decode(ids)})

    async def metrics(self, call):
        e = self.engine
        label = {"engine": "0", "model_name": e.model}
        await call.answer(200, text(
            gauge("vllm:num_requests_running", len(e.running), label),
            gauge("vllm:num_requests_waiting", len(e.waiting), label),
            gauge("vllm:kv_cache_usage_perc",
                  min(1, len(e.running) / e.max_running), label),
            counter("vllm:prompt_tokens_total", e.prompt_tokens, label),
            counter("vllm:generation_tokens_total", e.tokens, label),
            counter("vllm:request_success_total", e.finished,
                    {**label, "finished_reason": "stop"}),
            histogram("vllm:iteration_tokens_total", e.iterations, e.tokens,
                      label),
            padding(e.faults.pad_metrics)),
            "text/plain; version=0.0.4; charset=utf-8")
