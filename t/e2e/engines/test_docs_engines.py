"""What docs/engines.md shows runs as it stands there, with an engine's mock and
other addresses."""

import re
import shlex
import subprocess

import pytest

from llmgw.fleet.cluster import Agent, Replica
from llmgw.model import gguf, llama
from llmgw.model.weights import WeightsService
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.speak import sse

TEXT = (place.ROOT / "docs" / "engines.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S))
INTRO = TEXT.partition("\n## ")[0]
MODEL = "Qwen/Qwen3-8B"

# Options of the engines' own that the page names.
THEIRS = {"--max-num-seqs", "--api-key", "--enable-metrics", "--metrics",
          "--sampling-defaults", "--reasoning-parser", "--parallel",
          "--enable-deterministic-inference", "--ctx-size", "--no-repack",
          "--flash-attn", "--cache-type-k", "--cache-type-v",
          "--no-kv-unified", "--embeddings", "--enable-cache-report", "--uds",
          "--scheduling-policy", "--enable-priority-scheduling",
          "--schedule-low-priority-values-first"}


def blocks(text, language=""):
    return [code for of, code in
            re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
            if of == language]


def command(section, program):
    """The words of the last command of a section that names a program."""
    lines = [line for block in blocks(section)
             for line in block.replace("\\\n", " ").splitlines()
             if program in line]
    return shlex.split(lines[-1])


def replica_command(section):
    words = command(section, "llmgw-replica")
    return words[words.index("llmgw-replica"):]


def option(words, name):
    return words[words.index(name) + 1]


def place_it(words, given):
    """With other values: {what stands there: what is meant}."""
    return [place.binary(w) if w.startswith("llmgw-") else given.get(w, w)
            for w in words]


@pytest.fixture
def gateway(cluster):
    return cluster.agent("gw", "gateway")


def run_replica(cluster, gateway, words, given):
    """An agent for it, and the replica as the page starts it."""
    replica = Replica(cluster, option(words, "--id"))
    agent = cluster.agent(replica.id, grpc=replica.target)
    given = {option(words, "--listen"): replica.target,
             option(words, "--agent"): agent.control, **given}
    replica.argv = place_it(words, given)
    cluster.replicas[replica.id] = replica
    return replica.start()


def answers(cluster, id, model):
    nginx = cluster.nginx(openai=True)
    wait_for(lambda: nginx.routable() == [id], f"{id} to be routable")
    got = sse.call(nginx.api, sse.CHAT, sse.chat("hello", model=model,
                                                 max_tokens=5))
    assert got.status == 200 and got.text[0], got


REPLICAS = [("the beginning", INTRO, "vllm"),
            ("sglang", SECTIONS["sglang"], "sglang"),
            ("llamacpp", SECTIONS["llamacpp"], "llamacpp"),
            ("openai", SECTIONS["openai"], "openai")]


@pytest.mark.soak
@pytest.mark.parametrize("section, kind", [r[1:] for r in REPLICAS],
                         ids=[r[0] for r in REPLICAS])
def test_replica(cluster, gateway, section, kind):
    words = replica_command(section)
    assert option(words, "--engine") == kind
    has_key = "--engine-key-file" in words
    engine = cluster.engine(kind=kind, **({"api_key": "k"} if has_key else {}))
    key = cluster.dir / "key"
    key.write_text("k\n")
    key.chmod(0o600)
    run_replica(cluster, gateway, words, {
        option(words, "--engine-url"): engine.url, "key": str(key)})
    answers(cluster, "r1", place.ENGINE_MODEL)


@pytest.mark.soak
def test_vllm_with_agent_and_nginx(cluster, gateway):
    section = SECTIONS["vllm"]
    words = command(section, "llmgw-agent")
    at = words.index("llmgw-replica")
    engine = cluster.engine(kind="vllm", model=MODEL)
    agent = Agent(cluster, "r1", "replica", [])
    grpc = f"127.0.0.1:{cluster.ports.take()}"
    agent.argv = place_it(words, {
        option(words, "--gossip"): agent.gossip,
        option(words, "--grpc"): grpc,
        option(words, "--control"): agent.control,
        option(words, "--join"): gateway.gossip,
        option(words[at:], "--engine-url"): engine.url})
    agent.start()

    [conf] = blocks(section, "nginx")
    listen = re.search(r"listen (\d+);", conf)[1]
    target = f"127.0.0.1:{cluster.ports.take()}"
    assert "/run/llmgw/members" in conf
    conf = conf.replace("/run/llmgw/members", gateway.members)
    conf = conf.replace(f"listen {listen};", f"listen {target};")
    nginx = cluster.nginx(http=conf.replace("upstream llm ",
                                            "upstream shown ")
                          .replace("llmgw_openai llm;",
                                   "llmgw_openai shown;"))
    wait_for(lambda: nginx.routable("shown") == ["r1"], "r1 to be routable")
    got = sse.call(target, sse.CHAT, sse.chat("hello", model=MODEL))
    assert got.status == 200 and got.finish_reason == ["stop"], got


OWN_WEIGHTS, SHARED_WEIGHTS = SECTIONS["llama"].split(
    "### Weights that engines share")


def run_llama(cluster, gateway, section, given={}):
    words = replica_command(section)
    words += ["--threads", "1"]     # others run on this machine
    file = cluster.dir / "tiny.gguf"
    gguf.write(file)
    run_replica(cluster, gateway, words,
                {option(words, "--model"): str(file), **given})
    answers(cluster, "r1", "tiny")


@pytest.mark.soak
def test_llama(cluster, gateway):
    if not llama.is_built():
        pytest.skip(llama.MISSING)
    run_llama(cluster, gateway, OWN_WEIGHTS)


@pytest.mark.soak
def test_llama_with_shared_weights(cluster, gateway):
    if not llama.is_built():
        pytest.skip(llama.MISSING)
    weights = WeightsService(cluster, adopt_window="0")
    assert "--socket" in command(SHARED_WEIGHTS, "llmgw-weights")
    run_llama(cluster, gateway, SHARED_WEIGHTS, {
        option(replica_command(SHARED_WEIGHTS), "--weights"): weights.path})
    assert weights.state()["id"]


@pytest.mark.soak
def test_model(cluster, gateway):
    words = replica_command(SECTIONS["model"])
    run_replica(cluster, gateway, words, {})
    answers(cluster, "r1", option(words, "--model"))


def options_of(program, *words):
    out = subprocess.run([program, *words, "--help"], capture_output=True,
                         text=True, timeout=20).stdout
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", out))


def test_options_that_it_names_are_there():
    ours = options_of(place.binary("llmgw-replica")) \
        | options_of(place.binary("llmgw-simreplica")) \
        | options_of(place.binary("llmgw-agent")) \
        | options_of(place.binary("llmgw-sim"), "replay")
    prose = re.sub(r"^```.*?^```$", "", TEXT, flags=re.M | re.S)
    named = {o for code in re.findall(r"`([^`]+)`", prose)
             for o in re.findall(r"(?<![\w-])--[a-z][a-z-]*", code)}
    assert named - ours <= THEIRS <= named


def test_commands_that_start_an_engine_have_our_options():
    [block] = blocks(SECTIONS["An engine that is started here"])
    ours = options_of(place.binary("llmgw-replica"))
    for line in block.replace("\\\n", " ").strip().split("\n\n"):
        words = shlex.split(line)
        assert {w for w in words if w.startswith("--")} <= ours
        engine = words[words.index("--engine-command") + 1]
        assert "{port}" in engine or "{socket}" in engine


def test_no_command_goes_untested():
    """Each block of the page is one that a test above runs, or an engine's
    own command, which our tests have no engine for."""
    tested = {"": 9, "nginx": 1}
    assert {k: len(blocks(TEXT, k)) for k in tested} == tested
    assert set(re.findall(r"^```(\w*)\n", TEXT, re.M)) <= set(tested)


@pytest.mark.soak
@pytest.mark.skipif(not place.LLAMA_SERVER, reason="needs LLAMA_SERVER")
def test_llama_servers_command():
    words = command(SECTIONS["llamacpp"], "llama-server")
    known = options_of(place.LLAMA_SERVER)
    for word in words:
        assert not word.startswith("--") or word in known, word
