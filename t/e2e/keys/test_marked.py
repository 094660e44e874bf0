"""A marked key and a marked prompt: where they may be, and nowhere else."""

import os
import signal

import pytest

from llmgw.fleet.books import wait_records
from llmgw.fleet.ways_in import MESSAGES, messages
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc, sse
from llmgw.speak.keyfile import TAKEN, ask, basic, bearer, line

KEY = "sk-llmgw-MARKEDKEY" + "x" * 34
UNKNOWN = "sk-llmgw-MARKEDGUESS" + "x" * 32
PROMPT = "MARKEDPROMPT"
PAGES = ("/status", "/metrics", "/dashboard", "/dashboard/status")


def use_all(nginx):
    """Each way to show a key, that which is served and that which is not."""
    for key in (KEY, UNKNOWN):
        for headers in (bearer(key), [("x-api-key", key)], basic(key),
                        [("x-api-key", key)] * 2,
                        bearer(key) + [("x-api-key", "x")],
                        [("authorization", key)]):
            for path, body in ((sse.CHAT, sse.chat(f"{PROMPT} len=3;")),
                               (sse.CHAT, sse.chat(f"{PROMPT} len=3;",
                                                   stream=True)),
                               (MESSAGES, messages(f"{PROMPT} len=3;")),
                               ("/v1/models", None),
                               ("/v1/models/" + PROMPT, None)):
                ask(nginx.api, path, body, headers)
        with rpc.Client(nginx.target) as c:
            c.stream(f"{PROMPT} len=3;", 3, metadata=bearer(key))
        for page in PAGES:
            ask(nginx.api, page, headers=bearer(key))


def has(text, *marks):
    return [m for m in marks if m.encode() in text]


def files(cluster, *but):
    """All that was written, but for these."""
    return [p for p in cluster.dir.rglob("*")
            if p.is_file() and p not in but and not p.is_socket()]


@pytest.fixture
def marked(gateway, keyfile, cluster):
    keyfile.add("marked", "rpm=100000", key=KEY)
    return gateway(more=f" state={cluster.dir}/usage.state", nginx={
        "server": "location = /dashboard { llmgw_dashboard; }",
        "openai": "llmgw_timeout_header X-Stainless-Timeout;"})


def test_marks_are_nowhere(marked, cluster, keyfile, usage):
    """Not in logs, metrics, pages, the state, usage, nor in what engines get,
    but for the prompt there."""
    cluster.allowed.append(r"\[emerg\]")
    use_all(marked)
    keyfile.write(line(KEY, "marked") + f"\nmarked {KEY}\n")    # a mistake
    wait_for(lambda: f'"{keyfile.path}", line 2:' in marked.log(), "its error",
             TAKEN)
    wait_records(usage, 1 and len(usage.read_text().splitlines()))
    wait_for((cluster.dir / "usage.state").exists, "a state", TAKEN)
    engine = cluster.engines["e1"]
    for path in files(cluster, keyfile.path):
        marks = (KEY, UNKNOWN) if path == engine.log \
            else (KEY, UNKNOWN, PROMPT)
        found = has(path.read_bytes(), *marks)
        if path.name in ("access.log", "error.log"):    # a request's path
            found = [m for m in found if m != PROMPT]
        assert not found, (path, found)
    for page in PAGES[:3]:
        assert not has(marked.get(page)[1], KEY, UNKNOWN, PROMPT), page
    assert has(engine.log.read_bytes(), PROMPT)


def test_marks_are_not_kept_where_a_worker_dies(marked, cluster, keyfile,
                                                usage):
    cluster.allowed.append("exited on signal 9")
    cluster.hold(4)
    with sse.Connection(marked.api) as c:
        r = c.request(sse.CHAT, sse.chat(f"{PROMPT} len=9;", stream=True),
                      headers={"authorization": f"Bearer {KEY}"})
        r.wait_events(1)
        os.kill(marked.workers()[0], signal.SIGKILL)
    cluster.let_go()
    wait_records(usage, 1)
    for path in files(cluster, keyfile.path, cluster.engines["e1"].log):
        assert not has(path.read_bytes(), KEY, PROMPT), path


@pytest.mark.soak
def test_debug_log_has_no_key(gateway, keyfile, cluster):
    """nginx itself logs all headers at that level, if it was built so."""
    keyfile.add("marked", key=KEY)
    nginx = gateway(nginx={"http": "error_log @dir@/debug.log notice;"})
    use_all(nginx)
    text = (nginx.dir / "debug.log").read_bytes()
    assert not has(text, KEY, UNKNOWN, PROMPT)
