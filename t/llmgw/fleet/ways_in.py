"""One gateway with each way in, for tests of keys."""

import contextlib

from . import words
from ..engine.pyhttp import HttpEngine
from ..proc.wait import wait_for
from ..speak import rpc, sse
from ..speak.keyfile import KeyFile, ask

MESSAGES = "/v1/messages"
DOORS = ("openai", "messages", "http", "infer", "generate")

UPSTREAMS = """
    upstream py {{ llmgw_hash; server {py}; }}
    upstream web {{ llmgw_hash; server {web}; }}"""
LOCATIONS = """
        location /llmgateway.InferenceGateway/ { llmgw_pass py; }
        location /llmgateway.LLMReplica/ { grpc_pass grpc://py; }
        location /http/ { proxy_pass http://web; }
        location = /metrics { llmgw_metrics; }
"""


def messages(prompt, **more):
    """The body of a request of Anthropic's."""
    return {"model": "mock-model", "max_tokens": 64,
            "messages": [{"role": "user", "content": prompt}], **more}


@contextlib.contextmanager
def held(cluster, nginx, tokens=1):
    """While it lasts streams are held; at its end none is left."""
    cluster.hold(tokens)
    try:
        yield
    finally:
        cluster.let_go()
    wait_for(lambda: not nginx.counts(), "counts of zero")


class Doors:
    """One gateway with each way in.  Each tells whether it `served` a request
    or called its credentials `invalid`, in its own form."""

    def __init__(self, shared):
        self.keys = KeyFile(shared.dir)
        self.key = self.keys.add("alice")
        self.py = shared.pyreplica("py", token_delay_ms=1, tell=True)
        self.web = HttpEngine(shared.ports.take(), "web")
        shared.closers.append(self.web.close)
        self.log = shared.dir / "usage.log"
        self.shared = shared
        self.nginx = shared.engines_fleet(1, nginx={
            "http": f"{self.keys.directive()}"
                    f"llmgw_usage_log {self.log} gateway=gw1;"
                    + UPSTREAMS.format(py=self.py.target,
                                       web=self.web.target),
            "server": LOCATIONS})

    def openai(self, headers):
        got = ask(self.nginx.api, sse.CHAT, sse.chat("hi len=3;"), headers)
        if got.status == 200:
            return "served"
        got.is_refused(401, "invalid_api_key", "invalid_request_error")
        return self.reason(got.reason)

    def messages(self, headers):
        got = ask(self.nginx.api, MESSAGES, messages("hi len=3;"), headers)
        if got.status == 200:
            return "served"
        got.is_anthropics(401, "authentication_error")
        return self.reason(got.reason)

    def http(self, headers):
        got = ask(self.nginx.api, "/http/x", b"{}", headers)
        if got.status == 200:
            return "served"
        got.is_refused(401, "invalid_api_key", "invalid_request_error")
        return self.reason(got.reason)

    def infer(self, headers):
        return self.grpc(rpc.INFER, headers)

    def generate(self, headers):
        return self.grpc(rpc.GENERATE, headers)

    def grpc(self, method, headers):
        with rpc.Client(self.nginx.target) as c:
            got = c.stream("hi", 2, method=method, metadata=headers)
        if got.code == "OK":
            return "served"
        assert got.code == "UNAUTHENTICATED", got
        return self.reason(got.trailers.get(words.REASON))

    def reason(self, reason):
        assert reason == "invalid_api_key"
        return "invalid"
