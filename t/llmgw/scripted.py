"""A replica whose answers a test writes itself."""

import concurrent.futures
import contextlib

import grpc

from . import rpc


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
