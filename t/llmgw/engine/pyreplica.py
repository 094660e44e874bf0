"""A foreign engine: LLMReplica served by grpcio.

It knows no drains, faults or agents.  SIGTERM is grpcio's graceful stop:
GOAWAY, and running streams finish.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import signal
import sys
import threading
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from llmgw.engine.ledger import Ledger, whose  # noqa: E402
from llmgw.speak import rpc  # noqa: E402


def token(prompt, i):
    return f"{hashlib.sha1(prompt.encode()).hexdigest()[:8]}-{i} "


def tokens(prompt, n):
    return [token(prompt, i) for i in range(n)]


class Engine:
    def __init__(self, args):
        self.args, self.ledger = args, Ledger(args.ledger)

    def generate(self, request, context):
        if self.args.tell:
            print("CALL", json.dumps({
                "request_id": request.request_id,
                "already": request.tokens_already_generated,
                "fields": context.invocation_metadata()}), flush=True)
        end = max(self.args.end_after or request.max_tokens, 0)
        for i in range(request.tokens_already_generated, request.max_tokens):
            self.wait_turn(i)
            time.sleep(self.args.token_delay_ms / 1000)
            if i >= end:
                if self.args.end_code != "OK":
                    context.abort(grpc.StatusCode[self.args.end_code], "fault")
                return
            self.ledger.made(whose(request.prompt), context.is_active())
            yield rpc.pb.GenerateResponse(
                token=token(request.prompt, i),
                is_final=i + 1 == request.max_tokens)
        if self.args.linger_ms:
            gone = threading.Event()
            if context.add_callback(gone.set):
                gone.wait(self.args.linger_ms / 1000)

    def wait_turn(self, i):
        """Holds token i back while the file of --hold is there."""
        path, _, n = self.args.hold.rpartition(":")
        while path and i >= int(n) and os.path.exists(path):
            time.sleep(0.01)

    def check(self, request, context):
        return rpc.health.HealthCheckResponse(status="SERVING")

    def handlers(self):
        return [
            grpc.method_handlers_generic_handler("llmgateway.LLMReplica", {
                "Generate": grpc.unary_stream_rpc_method_handler(
                    self.generate, rpc.pb.GenerateRequest.FromString,
                    rpc.pb.GenerateResponse.SerializeToString)}),
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", {
                "Check": grpc.unary_unary_rpc_method_handler(
                    self.check, rpc.health.HealthCheckRequest.FromString,
                    rpc.health.HealthCheckResponse.SerializeToString)}),
        ]


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--listen", required=True)
    p.add_argument("--token-delay-ms", type=float, default=10)
    p.add_argument("--hold", default="", metavar="FILE:N",
                   help="each stream gets only N tokens while FILE is there")
    p.add_argument("--threads", type=int, default=128)
    p.add_argument("--max-streams", type=int, default=0,
                   help="SETTINGS_MAX_CONCURRENT_STREAMS")
    p.add_argument("--end-after", type=int, default=0,
                   help="each stream ends after so many tokens; -1: at once")
    p.add_argument("--end-code", default="OK", help="with this status")
    p.add_argument("--tell", action="store_true",
                   help="print a line for each call")
    p.add_argument("--linger-ms", type=float, default=0,
                   help="the status comes so long after the last token, "
                   "unless the call has ended by then")
    p.add_argument("--ledger", help="a file for what it generates")
    return p.parse_args()


def main():
    args = parse()
    options = [("grpc.so_reuseport", 0)]
    if args.max_streams:
        options.append(("grpc.max_concurrent_streams", args.max_streams))
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(args.threads),
                         handlers=Engine(args).handlers(), options=options)
    server.add_insecure_port(args.listen)
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    server.start()
    over.wait()
    stopped = server.stop(30)
    print("stopping", flush=True)
    stopped.wait()


if __name__ == "__main__":
    main()
