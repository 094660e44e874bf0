"""Many streams at once, in a separate process.

Reads one JSON job on standard input and answers with JSON lines:

  {"event": "running"}   every stream has its first token (or has ended)
  {"event": "done", "results": [...]}    fields as rpc.Result, in job order

The job: target, connections, method ("infer" or "generate"), seconds (the
streams' deadline), streams [[prompt, max_tokens], ...], starts_per_second,
fields (more fields of the message), metadata [[name, value], ...], until_told
(after the last stream starts again with the first, until a second line comes).
"""

import asyncio
import dataclasses
import json
import pathlib
import sys
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from llmgw.speak import rpc  # noqa: E402

MAX_GOAWAYS = 5


class Load:
    def __init__(self, job):
        self.job = job
        self.waiting = len(job["streams"])
        self.results = [rpc.Result() for _ in job["streams"]]
        self.infer = job.get("method", "infer") == "infer"

    def say(self, event, **fields):
        print(json.dumps({"event": event, **fields}), flush=True)

    def first(self):
        self.waiting -= 1
        if self.waiting == 0:
            self.say("running")

    def call(self, channel, prompt, max_tokens):
        fields = self.job.get("fields", {})
        if self.infer:
            method, answer = rpc.INFER, rpc.pb.InferResponse
            message = rpc.pb.InferRequest(prompt=prompt,
                                          max_tokens=max_tokens, **fields)
        else:
            method, answer = rpc.GENERATE, rpc.pb.GenerateResponse
            message = rpc.pb.GenerateRequest(prompt=prompt,
                                             max_tokens=max_tokens, **fields)
        start = channel.unary_stream(method, type(message).SerializeToString,
                                     answer.FromString)
        return start(message, timeout=self.job.get("seconds", 60),
                     metadata=[tuple(m) for m in self.job.get("metadata", ())],
                     wait_for_ready=True)

    async def stream(self, i, channel, delay):
        """What a closing worker has not taken gRPC sends again, but once; two
        workers may close one after the other."""
        await asyncio.sleep(delay)
        for _ in range(MAX_GOAWAYS):
            self.results[i] = result = rpc.Result()
            await self.ask(i, channel)
            if result.tokens or result.details != "GOAWAY received":
                break
        if not result.tokens:
            self.first()

    async def ask(self, i, channel):
        result, start = self.results[i], time.monotonic()
        call = self.call(channel,
                         *self.job["streams"][i % len(self.job["streams"])])
        try:
            async for message in call:
                result.add(message, start)
                if len(result.tokens) == 1:
                    self.first()
        except grpc.RpcError:
            pass
        result.end(await call.code(), await call.details(),
                   await call.trailing_metadata(), start)

    async def go_on(self, channels, rate):
        loop = asyncio.get_running_loop()
        told = loop.run_in_executor(None, sys.stdin.readline)
        self.results, tasks, start = [], [], loop.time()
        while not told.done():
            i = len(self.results)
            self.results.append(rpc.Result())
            tasks.append(loop.create_task(
                self.stream(i, channels[i % len(channels)], 0)))
            await asyncio.sleep(max(0, start + i / rate - loop.time()))
        await asyncio.gather(*tasks)

    async def run(self):
        n = self.job.get("connections", 1)
        channels = [grpc.aio.insecure_channel(self.job["target"],
                                              options=rpc.OPTIONS)
                    for _ in range(n)]
        rate = self.job.get("starts_per_second", 0)
        if self.job.get("until_told"):
            await self.go_on(channels, rate)
        else:
            await asyncio.gather(*(
                self.stream(i, channels[i % n], i / rate if rate else 0)
                for i in range(len(self.results))))
        self.say("done", results=[dataclasses.asdict(r)
                                  for r in self.results])
        for channel in channels:
            await channel.close()


def main():
    asyncio.run(Load(json.loads(sys.stdin.readline())).run())


if __name__ == "__main__":
    main()
