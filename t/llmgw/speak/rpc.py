"""The messages of proto/, and gRPC calls on them.

protoc writes the message classes into a temporary directory when this module
is first imported (child processes take the parent's); the calls are grpcio's
generic ones, which need no stubs.
"""

import atexit
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
import time

import grpc

from . import rawh2
from ..proc.place import ROOT
from ..proc.wait import PATIENCE, QUICK, Stopwatch, wait_for


def _messages():
    if "LLMGW_PB" not in os.environ:
        made = tempfile.mkdtemp(prefix="llmgw-pb-")
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        subprocess.run(["protoc", f"-I{ROOT / 'proto'}",
                        f"--python_out={made}",
                        "llmgateway.proto", "health.proto", "shard.proto"],
                       check=True)
        os.environ["LLMGW_PB"] = made
    sys.path.insert(0, os.environ["LLMGW_PB"])


_messages()
import health_pb2 as health  # noqa: E402
import llmgateway_pb2 as pb  # noqa: E402
import shard_pb2 as shard  # noqa: E402

INFER = "/llmgateway.InferenceGateway/Infer"
GENERATE = "/llmgateway.LLMReplica/Generate"
DRAIN = "/llmgateway.LLMReplica/Drain"
UNDRAIN = "/llmgateway.LLMReplica/Undrain"
SET_FAULTS = "/llmgateway.ReplicaControl/SetFaults"
GET_STATS = "/llmgateway.ReplicaControl/GetStats"
FORWARD = "/llmgateway.shard.Shard/Forward"
CHECK = "/grpc.health.v1.Health/Check"

OPTIONS = [("grpc.use_local_subchannel_pool", 1),
           ("grpc.max_receive_message_length", 64 << 20),
           ("grpc.max_send_message_length", 64 << 20),
           ("grpc.enable_http_proxy", 0),
           ("grpc.initial_reconnect_backoff_ms", 100),
           ("grpc.max_reconnect_backoff_ms", 1000)]


@dataclasses.dataclass
class Result:
    """The outcome of one stream."""
    code: str = ""
    details: str = ""
    tokens: list = dataclasses.field(default_factory=list)
    finals: list = dataclasses.field(default_factory=list)
    replicas: list = dataclasses.field(default_factory=list)
    times: list = dataclasses.field(default_factory=list)
    trailers: dict = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    began: float = 0.0          # by the machine's monotonic clock

    @property
    def text(self):
        return "".join(self.tokens)

    def check(self, tokens):
        """The stream was whole: these tokens, and only the last one final."""
        assert self.code == "OK", (self.code, self.details, self.trailers,
                                   len(self.tokens))
        assert self.tokens == tokens
        assert self.finals == [len(tokens) - 1]
        return self

    def add(self, message, start):
        if message.is_final:
            self.finals.append(len(self.tokens))
        self.tokens.append(message.token)
        replica = getattr(message, "replica_id", "")
        if not self.replicas or self.replicas[-1] != replica:
            self.replicas.append(replica)
        self.times.append(time.monotonic() - start)

    def end(self, call_code, details, trailers, start):
        self.code, self.details = call_code.name, details
        self.trailers = {k: v for k, v in trailers or ()
                         if isinstance(v, str)}
        self.began, self.seconds = start, time.monotonic() - start


class Client:
    """A new channel to one address; with TLS if the server's certificate or
    its CA's is given, and an own pair of files where one is asked for.

    name: what the server's certificate names, if not the target.
    """

    def __init__(self, target, certificate=None, pair=None, name=None,
                 **options):
        self.target = target
        options = OPTIONS + list(options.items())
        if name:
            options.append(("grpc.ssl_target_name_override", name))
        chain, key = (f.read_bytes() for f in pair) if pair else (None, None)
        self.channel = grpc.secure_channel(
            target, grpc.ssl_channel_credentials(certificate, key, chain),
            options) \
            if certificate else grpc.insecure_channel(target, options)

    def close(self):
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self, prompt, max_tokens, timeout=60, metadata=(),
              method=INFER, already=0, **fields):
        """Starts a call and returns it, to be read message by message."""
        if method == GENERATE:
            message = pb.GenerateRequest(
                prompt=prompt, max_tokens=max_tokens,
                tokens_already_generated=already, **fields)
            answer = pb.GenerateResponse
        else:
            message = pb.InferRequest(prompt=prompt, max_tokens=max_tokens,
                                      **fields)
            answer = pb.InferResponse
        call = self.channel.unary_stream(
            method, type(message).SerializeToString, answer.FromString)
        return call(message, timeout=timeout, metadata=metadata,
                    wait_for_ready=True)

    def stream(self, prompt, max_tokens, takes=QUICK, **kw):
        """Runs one stream to its end; takes: as in drain()."""
        start = time.monotonic()
        return drain(self.start(prompt, max_tokens, **kw), start, takes=takes)

    def generate(self, prompt, max_tokens, **kw):
        return self.stream(prompt, max_tokens, method=GENERATE, **kw)

    def unary(self, method, request, answer, timeout=PATIENCE, **kw):
        call = self.channel.unary_unary(
            method, type(request).SerializeToString, answer.FromString)
        return call(request, timeout=timeout, wait_for_ready=True, **kw)

    def forward(self, requests, timeout=60):
        """A session of Shard.Forward: an iterator of shard.Reply."""
        call = self.channel.stream_stream(
            FORWARD, shard.Request.SerializeToString, shard.Reply.FromString)
        return call(requests, timeout=timeout, wait_for_ready=True)

    def stats(self):
        return self.unary(GET_STATS, pb.StatsRequest(), pb.Stats)

    def faults(self, **faults):
        return self.unary(SET_FAULTS, pb.Faults(**faults), pb.Faults)

    def drain(self):
        return self.unary(DRAIN, pb.DrainRequest(), pb.DrainResponse)

    def undrain(self):
        return self.unary(UNDRAIN, pb.UndrainRequest(), pb.UndrainResponse)

    def check(self):
        answer = self.unary(CHECK, health.HealthCheckRequest(),
                            health.HealthCheckResponse)
        return health.HealthCheckResponse.ServingStatus.Name(answer.status)

    def raw(self, bodies, method=INFER, timeout=PATIENCE, compression=None):
        """Sends any messages to any method; only the end of the call counts."""
        start, result = time.monotonic(), Result()
        call = self.channel.stream_stream(method)(
            iter(bodies), timeout=timeout, compression=compression,
            wait_for_ready=True)
        try:
            for message in call:
                result.tokens.append(message)
        except grpc.RpcError:
            pass
        result.end(call.code(), call.details(), call.trailing_metadata(),
                   start)
        return result


REQUESTS = {INFER: pb.InferRequest, GENERATE: pb.GenerateRequest,
            CHECK: lambda **_: health.HealthCheckRequest()}


def ask(h, prompt, max_tokens, headers=(), method=INFER):
    """Starts a call as a stream of h, a RawH2; returns the stream's id."""
    body = REQUESTS[method](prompt=prompt, max_tokens=max_tokens)
    return h.request(method, rawh2.frame(body.SerializeToString()),
                     headers=headers)


def ask_in_step(h, nginx, replica, prompts, max_tokens):
    """The same of many prompts, which the replica begins at one moment: a busy
    machine would spread them.  Returns {stream: its prompt}."""
    before = nginx.in_flight()
    replica.proc.freeze()
    try:
        sids = {ask(h, prompt, max_tokens): prompt for prompt in prompts}
        wait_for(lambda: nginx.in_flight() == before + len(sids),
                 "all requests to be sent")
    finally:
        replica.proc.thaw()
    return sids


def tokens(answer):
    """The messages of such a stream, which ended OK with a final one."""
    assert answer.grpc_status == 0, (answer.headers, answer.trailers)
    messages, rest = rawh2.unframe(answer.data)
    assert rest == b""
    got = [pb.InferResponse.FromString(m) for m in messages]
    assert [i for i, m in enumerate(got) if m.is_final] == [len(got) - 1]
    return [m.token for m in got]


def drain(call, start=None, into=None, takes=QUICK):
    """Reads a call to its end, whatever its status.  takes: seconds until its
    next token or its end, if it is more than QUICK."""
    start = time.monotonic() if start is None else start
    result = Result() if into is None else into
    watch = Stopwatch(takes)
    try:
        for message in call:
            watch.over(f"token {len(result.tokens)}")
            result.add(message, start)
            watch = Stopwatch(takes)
    except grpc.RpcError:
        pass
    watch.over("the end of a stream")
    result.end(call.code(), call.details(), call.trailing_metadata(), start)
    return result
