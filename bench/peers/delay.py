#!/usr/bin/env python3
"""A TCP relay that forwards what comes some time later, as a long way does.

    delay.py PORT TARGET_PORT MS

Nothing that the target says arrives as if it had been said before the client's
part of TCP's handshake was there.  With SIGUSR1 the relay forwards nothing more
on the connections that are open, as a firewall that has lost them.
"""

import asyncio
import contextlib
import signal
import sys


class Relay:
    def __init__(self, target, ms):
        self.target, self.seconds = target, ms / 1000
        self.lost = 0           # connections of before the last signal

    def lose(self):
        self.lost += 1

    async def forward(self, reader, writer, age, begins):
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if age == self.lost:
                    loop.call_at(max(begins, loop.time()) + self.seconds,
                                 writer.write, data)
        loop.call_later(self.seconds, writer.close)

    async def serve(self, reader, writer):
        age, began = self.lost, asyncio.get_running_loop().time()
        there = await asyncio.open_connection("127.0.0.1", self.target)
        await asyncio.gather(
            self.forward(reader, there[1], age, began),
            self.forward(there[0], writer, age, began + self.seconds))


async def main(port, target, ms):
    relay = Relay(target, ms)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, relay.lose)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


asyncio.run(main(*map(int, sys.argv[1:])))
