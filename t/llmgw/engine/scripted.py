"""A replica whose answers a test writes itself."""

import concurrent.futures
import contextlib
import threading
import time

import grpc

from ..speak import rpc


class Target:
    """What Cluster.static() takes for a replica."""

    def __init__(self, port):
        self.target = f"127.0.0.1:{port}"


@contextlib.contextmanager
def scripted(port, generate, threads=8, options=()):
    """generate(request, context) yields messages, or bytes to send as is."""
    def serialize(message):
        return message if isinstance(message, bytes) \
            else message.SerializeToString()

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(threads),
                         options=list(options))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
        "llmgateway.LLMReplica", {
            "Generate": grpc.unary_stream_rpc_method_handler(
                generate, rpc.pb.GenerateRequest.FromString, serialize)})])
    assert server.add_insecure_port(f"127.0.0.1:{port}") == port
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()


class Script:
    """What replicas answer, call by call; the last entry goes for all further
    calls.  An entry is a list of messages (bytes are sent as they are) or of
    functions that make one of the request, of seconds to wait, of a
    threading.Event to wait for, and of a status that ends the call."""

    def __init__(self, entries):
        self.entries = list(entries)
        self.requests = []

    def generate(self, request, context):
        self.requests.append(request)
        n = min(len(self.requests), len(self.entries))
        for step in self.entries[n - 1]:
            if isinstance(step, grpc.StatusCode):
                context.abort(step, "the engine's own words")
            elif isinstance(step, float):
                time.sleep(step)
            elif isinstance(step, threading.Event):
                assert step.wait(30), "nobody has set it"
            else:
                yield step(request) if callable(step) else step

    def delivered(self, n):
        """What call n was told that the client has."""
        request = self.requests[n]
        return request.delivered if request.HasField("delivered") else None

    @contextlib.contextmanager
    def serve(self, ports, n=2):
        """n replicas that play it; yields their targets."""
        with contextlib.ExitStack() as stack:
            taken = [ports.take() for _ in range(n)]
            for port in taken:
                stack.enter_context(scripted(port, self.generate))
            yield [Target(port) for port in taken]
