#!/usr/bin/env python3
"""An engine without a model, for tests: engine/ says what it can do.

POST /mock/faults sets faults, GET /mock/state tells counts.
"""

import argparse
import asyncio
import json
import time

from engine import other, wire
from engine.llamacpp import LlamaCpp
from engine.openai import OpenAI
from engine.run import Engine
from engine.sglang import SGLang
from engine.vllm import VLLM

STEPS = ("/tokenize", "/detokenize", "/apply-template")
KINDS = {d.name: d for d in (OpenAI, VLLM, SGLang, LlamaCpp)}


class App:
    def __init__(self, engine):
        self.engine = engine
        self.routes = {**engine.dialect.routes(),
                       ("POST", "/mock/faults"): self.set_faults,
                       ("GET", "/mock/state"): self.tell_state}
        self.paths = {path for _, path in self.routes}

    async def __call__(self, scope, receive, send):
        call = wire.Call(self.engine, scope, receive, send)
        try:
            await call.read()
            await self.answer_or_leave(call)
        except wire.Refused as r:
            if not call.cycle.response_started:
                await call.answer(r.status, r.body, headers=r.headers)
        except asyncio.CancelledError:
            pass                # the client is gone

    async def answer_or_leave(self, call):
        """The answer, or its end when the client goes away."""
        work = asyncio.ensure_future(self.answer(call))
        watch = asyncio.ensure_future(call.until_gone())
        try:
            await asyncio.wait((work, watch),
                               return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and self.engine.dialect.deaf \
                    and not call.cycle.response_started:
                await self.quiet_second(work)
        finally:
            watch.cancel()
            work.cancel()
            await asyncio.wait((work,))
        work.result()

    async def quiet_second(self, work):
        while not work.done() and \
                time.monotonic() - self.engine.delivered < 1:
            await asyncio.sleep(0.01)

    async def answer(self, call):
        engine = self.engine
        route = self.routes.get((call.method, call.path))
        if call.path.startswith("/mock/"):
            return await route(call)
        if engine.api_key and call.path.startswith("/v1") and \
                call.headers.get("authorization") != \
                f"Bearer {engine.api_key}":
            engine.dialect.unauthorized()
        if engine.faults.hang_metrics and call.method == "GET" or \
                engine.faults.hang_steps and call.path in STEPS:
            await asyncio.Event().wait()
        if route is None and call.path.startswith("/v1/responses/") \
                and await other.kept(engine.dialect, call):
            return
        if route is None:
            engine.dialect.not_found(call, call.path in self.paths)
        await route(call)

    async def set_faults(self, call):
        try:
            self.engine.set_faults(**json.loads(call.body))
        except (ValueError, TypeError) as e:
            return await call.answer(400, str(e), "text/plain")
        await self.tell_state(call)

    async def tell_state(self, call):
        await call.answer(200, self.engine.state())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, default="vllm")
    parser.add_argument("--listen", default="127.0.0.1:8000")
    parser.add_argument("--uds", help="a socket in place of --listen")
    parser.add_argument("--log", default="/dev/null")
    parser.add_argument("--model", default="mock-model")
    parser.add_argument("--adapter", action="append", default=[],
                        help="the name of a LoRA that it serves as well")
    parser.add_argument("--max-running", type=int, default=256)
    parser.add_argument("--max-context", type=int, default=131072)
    parser.add_argument("--keep-alive", type=float, default=5)
    parser.add_argument("--reads", choices=("ids", "text"),
                        help="what the next id depends on (kind openai: text)")
    parser.add_argument("--reasoning", action="store_true",
                        help="it runs a parser for reasoning")
    parser.add_argument("--sampling-defaults", default="model",
                        choices=("model", "openai"), help="of sglang")
    parser.add_argument("--priorities", choices=("high", "low"),
                        help="of sglang: which one goes first")
    parser.add_argument("--adds", type=json.loads, default={}, metavar="JSON",
                        help="members of each answer, chunk, and usage:"
                        ' {"answer": {...}, "usage": {...}}')
    parser.add_argument("--api-key")
    parser.add_argument("--tls", metavar="FILE",
                        help="certificate and key: it speaks https")
    parser.add_argument("--ledger", help="a file for what it generates")
    parser.add_argument("--strict", action="store_true",
                        help="an unknown key is an error")
    parser.add_argument("--faults", default="{}", help="as JSON")
    args = parser.parse_args()

    dialect = KINDS[args.kind]()
    args.reads = args.reads or ("text" if args.kind == "openai" else "ids")
    engine = dialect.engine = Engine(dialect, wire.Log(args.log), args)
    host, _, port = args.listen.rpartition(":")
    engine.faults.set(**json.loads(args.faults))
    wire.serve(App(engine), engine, host, int(port), args.tls, args.uds)


if __name__ == "__main__":
    main()
