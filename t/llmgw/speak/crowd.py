"""Many clients at once in one process, each with a connection of its own; what
they were told, and when."""

import asyncio
import dataclasses
import json
import random
import threading
import time


@dataclasses.dataclass
class Answer:
    """status: 0 if the connection ended.  times: of each piece of the body."""
    who: int
    sent: float
    status: int = 0
    times: list = dataclasses.field(default_factory=list)


class Crowd(threading.Thread):
    """asks(i): (path, body, headers) of client i.  Each asks, reads, pauses for
    `pause` seconds on average, and asks again, for so many seconds."""

    def __init__(self, nginx, n, asks, seconds, pause=1.0):
        super().__init__(daemon=True)
        self.host, _, self.port = nginx.api.rpartition(":")
        self.n, self.asks, self.pause = n, asks, pause
        self.over = time.monotonic() + seconds
        self.answers, self.failure = [], None
        self.start()

    def stop(self):
        """No further request."""
        self.over = 0

    def done(self):
        """All answers, in the order of their ends."""
        self.join()
        if self.failure:
            raise self.failure
        return self.answers

    def run(self):
        try:
            asyncio.run(self.go())
        except Exception as e:
            self.failure = e

    async def go(self):
        await asyncio.gather(*map(self.client, range(self.n)))

    async def client(self, i):
        path, body, headers = self.asks(i)
        raw = json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", "host: llm",
                 "content-type: application/json",
                 f"content-length: {len(raw)}",
                 *(f"{k}: {v}" for k, v in headers), "", ""]
        request = "\r\n".join(lines).encode() + raw
        await asyncio.sleep(random.uniform(0, self.pause))
        writer = None
        while time.monotonic() < self.over:
            answer = Answer(i, time.monotonic())
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection(
                        self.host, int(self.port))
                writer.write(request)
                await self.read(reader, answer)
            except (OSError, asyncio.IncompleteReadError):
                answer.status = 0
                if writer:
                    writer.close()
                writer = None
            self.answers.append(answer)
            await asyncio.sleep(random.uniform(.5, 1.5) * self.pause)
        if writer:
            writer.close()

    async def read(self, reader, answer):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        answer.status = int(head.split()[1])
        size = head.partition(b"content-length:")[2].split(b"\r")[0]
        if size:
            await reader.readexactly(int(size))
            answer.times.append(time.monotonic())
            return
        while n := int(await reader.readuntil(b"\r\n"), 16):
            await reader.readexactly(n + 2)
            answer.times.append(time.monotonic())
        await reader.readexactly(2)


def most_at_once(spans):
    """Of (begin, end): how many overlap."""
    edges = sorted([(b, 1) for b, _ in spans] + [(e, -1) for _, e in spans])
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most
