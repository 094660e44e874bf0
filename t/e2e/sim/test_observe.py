"""llmgw-sim observe: a real gateway with real replicas, by gRPC and by OpenAI's
API, and what is recorded of it."""

import csv
import http.server
import json
import subprocess
import threading

import pytest

from llmgw.proc import place

SIM = place.binary("llmgw-sim")
LENGTHS = ["--prompt-tokens", "30", "--prompt-tokens-stdev", "0",
           "--prompt-tokens-min", "1", "--output-tokens", "8",
           "--output-tokens-stdev", "3", "--output-tokens-min", "2",
           "--output-tokens-max", "20"]


class Observed:
    def __init__(self, where, process):
        self.process = process
        with open(where / "t.csv") as f:
            self.rows = list(csv.DictReader(f))
        self.header = (where / "t.yaml").read_text()
        itl = where / "t.csv.itl.csv"
        self.chunks = list(csv.DictReader(itl.open())) if itl.exists() else []


def observe(where, url, *options, code=0):
    got = subprocess.run(
        [SIM, "observe", "--server-url", url, "--trace-header", "t.yaml",
         "--trace-data", "t.csv", *map(str, options)], cwd=where,
        capture_output=True, text=True, timeout=60)
    assert got.returncode == code, got
    return Observed(where, got) if code < 2 else got


class Listener(http.server.BaseHTTPRequestHandler):
    """Answers a word, and keeps each prompt with its id."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.heard.append((asked["prompt"],
                                  self.headers["x-request-id"]))
        body = json.dumps({"choices": [{"index": 0, "text": "yes",
                                        "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def asked(where, port, *options):
    """The prompts that observe sends, and their ids."""
    at = "127.0.0.1", port
    with http.server.ThreadingHTTPServer(at, Listener) as server:
        server.heard = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        observe(where, f"http://127.0.0.1:{port}", "--model", "m",
                "--no-streaming", "--rate", 500, "--num-requests", 20,
                *options, *LENGTHS)
        server.shutdown()
        thread.join()
        return server.heard


def test_each_seed_has_prompts_of_its_own(ports, tmp_path):
    first, again, other = (sorted(asked(tmp_path, ports.take(), "--seed", n))
                           for n in (1, 1, 2))
    assert first == again
    assert len({prompt[:4] for prompt, _ in first}) > 15
    assert not {p[:16] for p, _ in first} & {p[:16] for p, _ in other}


def test_requests_that_prewarm_leave_no_prompt_in_a_cache(ports, tmp_path):
    heard = asked(tmp_path, ports.take(), "--prewarm-duration", "50ms")
    assert len(heard) > 20
    assert len({p[:16] for p, _ in heard}) == len(heard)
    assert len({id for _, id in heard}) == len(heard)


def times_are_in_order(rows):
    for r in rows:
        assert int(r["send_time_us"]) > 0
        assert (int(r["arrival_time_us"]) <= int(r["send_time_us"])
                <= int(r["first_chunk_time_us"])
                <= int(r["last_chunk_time_us"])), r


def test_grpc_open_loop(cluster, tmp_path):
    nginx = cluster.fleet(2)
    got = observe(tmp_path, f"grpc://{nginx.target}", "--rate", 200,
                  "--num-requests", 60, "--record-itl", "--warmup-requests", 5,
                  *LENGTHS)
    assert len(got.rows) == 55
    assert [int(r["request_id"]) for r in got.rows if r["status"] != "ok"] \
        == []
    assert min(int(r["request_id"]) for r in got.rows) == 5
    times_are_in_order(got.rows)
    tokens = sum(int(r["output_tokens"]) for r in got.rows)
    assert len(got.chunks) == tokens
    assert all(r["num_chunks"] == r["output_tokens"] for r in got.rows)
    stats = [r.stats() for r in cluster.replicas.values()]
    assert sum(s.finished for s in stats) == 60
    assert "mode: real" in got.header and "warm_up_requests: 5" in got.header


@pytest.mark.timed
def test_the_last_token_is_recorded_when_it_was_made(cluster, tmp_path):
    """Each 2 ms one, and not before, however late it is read."""
    nginx = cluster.fleet(2, replica={"token_delay": "2ms"})
    got = observe(tmp_path, f"grpc://{nginx.target}", "--rate", 200,
                  "--num-requests", 60, *LENGTHS)
    for r in got.rows:
        took = int(r["last_chunk_time_us"]) - int(r["send_time_us"])
        assert took >= (int(r["output_tokens"]) - 2) * 2000, r


def test_openai_users_in_closed_loop(cluster, tmp_path):
    nginx = cluster.fleet(2, nginx={"openai": True})
    got = observe(tmp_path, f"http://{nginx.api}", "--model", "sim",
                  "--concurrency", 4, "--num-requests", 40, *LENGTHS)
    assert len(got.rows) == 40
    assert {r["status"] for r in got.rows} == {"ok"}
    times_are_in_order(got.rows)
    assert len({r["session_id"] for r in got.rows}) == 4
    assert len({r["x_request_id"] for r in got.rows}) == 40
    stats = [r.stats() for r in cluster.replicas.values()]
    assert (sum(int(r["output_tokens"]) for r in got.rows)
            == sum(s.tokens for s in stats))
    # No user has two requests in flight.
    for session in {r["session_id"] for r in got.rows}:
        mine = sorted((int(r["send_time_us"]), int(r["last_chunk_time_us"]))
                      for r in got.rows if r["session_id"] == session)
        assert all(a[1] <= b[0] for a, b in zip(mine, mine[1:]))


@pytest.mark.soak
def test_chat_in_one_piece(cluster, tmp_path):
    nginx = cluster.fleet(1, nginx={"openai": True})
    got = observe(tmp_path, f"http://{nginx.api}", "--model", "sim", "--rate",
                  100, "--num-requests", 10, "--api-format", "chat",
                  "--no-streaming", *LENGTHS)
    assert {r["status"] for r in got.rows} == {"ok"}
    for r in got.rows:
        assert r["first_chunk_time_us"] == r["last_chunk_time_us"]
        assert r["streaming"] == "false"


def test_what_is_not_served_is_recorded(tmp_path):
    got = observe(tmp_path, "grpc://127.0.0.1:9", "--rate", 100,
                  "--num-requests", 3, *LENGTHS, code=1)
    assert [r["status"] for r in got.rows] == ["error"] * 3
    assert "3 of 3 requests were not served" in got.process.stderr


def test_a_request_that_takes_too_long_times_out(cluster, tmp_path):
    nginx = cluster.fleet(1)
    cluster.hold()
    got = observe(tmp_path, f"grpc://{nginx.target}", "--rate", 100,
                  "--num-requests", 2, "--timeout", 1, *LENGTHS, code=1)
    assert [r["status"] for r in got.rows] == ["timeout"] * 2


@pytest.mark.parametrize("options,error", [
    (["--server-url", "127.0.0.1:80"], "--server-url: it begins with "),
    *(pytest.param(*case, marks=pytest.mark.soak) for case in (
        (["--api-format", "text"], "--api-format: "),
        (["--record-itl", "--no-streaming"], "--record-itl: "),
        ([], "flags:"))),       # no number of requests, no horizon
])
def test_bad_options_are_one_line(tmp_path, options, error):
    got = observe(tmp_path, "grpc://127.0.0.1:9", *options, code=2)
    assert got.stderr.startswith("llmgw-sim: " + error), got.stderr
    assert got.stderr.count("\n") == 1
