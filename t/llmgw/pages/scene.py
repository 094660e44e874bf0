"""A fake gateway: serves the dashboard and a status that a test sets.

It is for states and sizes that real processes take long to reach.  The page
cannot tell it from a gateway: the status is checked against
docs/status.schema.json, and the page is the one that the module contains.
"""

import contextlib
import copy
import http.server
import json
import pathlib
import threading
import time

import jsonschema

from ..proc import place

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = place.BUILD / "gen" / "dashboard.html"
SCHEMA = json.loads((ROOT / "docs" / "status.schema.json").read_text())

# The strictest policy that operators set for every page of a host.
POLICY = "default-src 'self' 'unsafe-inline'"

BOUNDS = {
    "first_token_seconds": [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                            0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
                            40.0, 80.0],
    "inter_token_seconds": [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
                            0.4, 0.5, 0.75, 1.0, 2.5],
    "request_seconds": [1.0, 10.0],
    "queue_wait_seconds": [1.0, 10.0],
}


def replica(id, **more):
    return {
        "id": id, "address": "10.0.0.1:7946", "state": "ALIVE", "cause": None,
        "service": "READY", "draining": False, "drain_owner": None,
        "routable": True, "model_version": "v1", "replica_start_ms": 0,
        "weight": 1, "resume_group": "", "group": None, "models": [],
        "models_cut": 0,
        "engine": None, "facts": None, "max_capacity": 8, "reported": 0,
        "share": 0.0, "in_flight": 0, "tokens": 0, "attempts": 0,
        "failures": 0,
        "rates": {"tokens": 0.0, "attempts": 0.0}, "first_token": None,
        "breaker": {"state": "closed", "failures": 0, "requests": 0,
                    "probe_in_ms": None}, **more}


DEAD = {"state": "DEAD", "cause": "down", "service": "DOWN",
        "routable": False}
SILENT = {"state": "DEAD", "cause": "timeout", "routable": False}
SUSPECT = {"state": "SUSPECT", "routable": False}
LEFT = {"state": "LEFT", "service": "STOPPED", "routable": False}
STARTING = {"service": "STARTING", "routable": False}
STALLED = {"service": "STALLED", "routable": False}
LOCK = "5d1f0c66a1b2c3d4"
OPEN = {"breaker": {"state": "open", "failures": 6, "requests": 8,
                    "probe_in_ms": 3200}}
HALF = {"breaker": {"state": "half_open", "failures": 6, "requests": 8,
                    "probe_in_ms": None}}


FIRST = "first_token_seconds"


def bucket(name, seconds):
    return sum(seconds > bound for bound in BOUNDS[name])


def of_group(name, state, epoch=0):
    """A member of a standby group."""
    said = {"group": {"name": name, "state": state, "epoch": epoch,
                      "lock": LOCK if epoch else None}}
    return said if state == "active" else {**STARTING, **said}


def shard(id, first, last, layers=16, computes=None, **more):
    """computes: further words of what it computes."""
    return {
        "id": id, "address": "10.0.0.7:50051", "state": "ALIVE",
        "cause": None, "service": "READY", "draining": False, "usable": True,
        "sessions": 0, "max_sessions": 64, "queue": 0,
        "computes": {"model": "toy", "weights": "0123456789abcdef" * 4,
                     "numerics": "n1", "first": first, "last": last,
                     "layers": layers, "memory": 1 << 30, "loaded": True,
                     "zone": "", **(computes or {})}, **more}


def key_zone(*accounts):
    return {"zone": "keys", "file": "/etc/llmgw/keys", "streams": 0,
            "usage": {"waiting": 0, "lost": 0},
            "auth_failures": {"missing": 0}, "accounts": list(accounts)}


def account(name, **more):
    return {"name": name, **dict.fromkeys((
        "requests", "refused", "prompt_tokens", "completion_tokens",
        "cached_tokens", "reasoning_tokens", "wasted_tokens", "streams"), 0),
        "max_streams": None, "rpm": None, "tpm": None, "budget": None, **more}


def draining(owner=None):
    return {"draining": True, "drain_owner": owner, "routable": False}


class Pool:
    def __init__(self, name, n):
        self.name = name
        self.model = None
        self.replicas = {}
        for i in range(1, n + 1):
            self.add(f"r{i}", address=f"10.0.{i // 250}.{i % 250 + 1}:7946")
        self.view = {"source": "/run/llmgw/members", "age_ms": 12,
                     "stale": False, "generation": 1, "isolated": False,
                     "members": n + 1}
        self.queue = {"length": 0, "size": 1000, "held": 0,
                      "timeout_ms": 30000, "hold_ms": 5000,
                      "waits_for": None, "order": "fifo",
                      "fairness": "global", "saturation": "capacity",
                      "ttl_ms": None, "shedding": False}
        self.policy = {"name": "affinity", "scorers": []}
        self.admission = {"rule": "always", "bucket": None}
        self.classes, self.tenants, self.groups = {}, {}, []
        self.shards = []
        self.shard_failures = {"survived": 0, "lost": 0}
        self.tokens = 0
        self.requests = {("OK", ""): 0}
        self.failovers = {"connect": 0, "member_down": 0}
        self.circuits = {"opened": 0, "reopened": 0, "half_opened": 0,
                         "closed": 0}
        self.histograms = {name: [0] * (len(bounds) + 1)
                           for name, bounds in BOUNDS.items()}

    def add(self, id, **more):
        self.replicas[id] = replica(id, **more)

    def set(self, id, *states, **more):
        for state in (*states, more):
            self.replicas[id].update(state)

    def observe(self, name, seconds, n=1):
        self.histograms[name][bucket(name, seconds)] += n

    def group(self, kind, name, **more):
        """A class or a tenant; of `classes` or `tenants`."""
        made = getattr(self, kind).setdefault(name, {
            "name": name, "requests": {"": 0}, "first_token": {
                "bounds": BOUNDS[FIRST], "sum": 0.0, "count": 0,
                "counts": [0] * (len(BOUNDS[FIRST]) + 1)},
            **({"ttft_ms": None, "itl_ms": None, "goodput": 0}
               if kind == "classes" else {"budget": None, "in_flight": 0})})
        made.update(more)
        return made

    def serve(self, kind, name, n, seconds, reason="", good=0):
        """n requests of a group ended, with their first token then."""
        made = self.group(kind, name)
        made["requests"][reason] = made["requests"].get(reason, 0) + n
        if not reason:
            made["first_token"]["counts"][bucket(FIRST, seconds)] += n
            made["first_token"]["count"] += n
        if kind == "classes":
            made["goodput"] += good

    def status(self):
        shares = sum(not r["share"] for r in self.replicas.values())
        return {
            "name": self.name, "model": self.model, "view": self.view,
            "models_unrouted": 0, "streams": 0,
            "in_flight": sum(r["in_flight"] for r in self.replicas.values()),
            "sessions": len(self.replicas),
            "zone": {"slots": 1033, "used": len(self.replicas)},
            "queue": self.queue, "policy": self.policy, "prefix_index": None,
            "admission": self.admission,
            "classes": list(self.classes.values()),
            "tenants": list(self.tenants.values()),
            "rates": {"tokens": 0.0, "attempts": 0.0},
            "first_token": None,
            "totals": {
                "tokens": self.tokens, "attempts": 0, "failures": 0,
                "requests": [{"code": c, "reason": r, "count": n}
                             for (c, r), n in self.requests.items()],
                "failovers": self.failovers, "resumes": {},
                "shard_failures": self.shard_failures,
                "openai_tokens": {}, "prefix_blocks": {},
                "body_refusals": {}, "attempts_failed": {},
                "hedges": {"won": 0, "lost": 0},
                "breaker_transitions": self.circuits,
                "reads": {"event": 0, "interval": 0},
                "trace_lines": {"written": 0, "lost": 0}},
            "histograms": {
                name: {"bounds": BOUNDS[name], "counts": counts, "sum": 0.0,
                       "count": sum(counts)}
                for name, counts in self.histograms.items()},
            "groups": self.groups, "shards": self.shards, "gateways": [],
            "replicas": [{**r, "share": r["share"] or 1 / shares}
                         for r in self.replicas.values()]}


class Scene(http.server.ThreadingHTTPServer):
    """pools: {name: Pool}.  raw: what to answer instead of a status, as
    (code, type, bytes).  before: called before each status."""

    daemon_threads = True

    def __init__(self, ports, n=3, pools=("llm",)):
        self.pools = {name: Pool(name, n) for name in pools}
        self.keys = []
        self.raw = self.before = None
        self.gate = threading.Event()   # cleared: requests wait
        self.gate.set()
        self.asked = self.at_once = 0
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", ports.take()), Handler)
        self.origin = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.02,),
                         daemon=True).start()

    @property
    def pool(self):
        return next(iter(self.pools.values()))

    def set(self, id, *states, **more):
        self.pool.set(id, *states, **more)

    def status(self):
        said = {"schema": 1, "version": "0.3.0", "worker_pid": 1,
                "time_ms": int(time.time() * 1000), "pools": self._pools(),
                "keys": self.keys}
        jsonschema.Draft202012Validator(SCHEMA).validate(said)
        return said

    def _pools(self):
        while True:
            try:
                return copy.deepcopy([pool.status()
                                      for pool in self.pools.values()])
            except RuntimeError:    # the test was adding to a dictionary
                pass

    @contextlib.contextmanager
    def counted(self):
        with self.lock:
            self.asked += 1
            self.at_once += 1
        try:
            yield
        finally:
            with self.lock:
                self.at_once -= 1

    def answer(self):
        with self.counted():
            self.gate.wait(20)
            if self.raw:
                return self.raw
            if self.before:
                self.before(self)
            return 200, "application/json", json.dumps(self.status()).encode()

    def handle_error(self, request, client_address):
        """A page that closed its connection is no error here."""

    def close(self):
        self.gate.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/status":
            code, kind, body = self.server.answer()
        elif self.path == "/dashboard":
            code, kind, body = 200, "text/html; charset=utf-8", \
                PAGE.read_bytes()
        else:
            code, kind, body = 404, "text/plain", b"nothing here\n"
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
