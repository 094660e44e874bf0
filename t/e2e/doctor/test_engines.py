"""Engines that their adapters could not use, or not as their neighbours."""

import signal

from llmgw.pages import doctor
from llmgw.proc.wait import wait_for


def engines(cluster, *options):
    urls = ",".join(e.url for e in cluster.engines.values())
    return doctor.ask(None, None, "--engine-url", urls, *options)


def test_an_engine_that_is_not_there(cluster):
    url = f"http://127.0.0.1:{cluster.ports.take()}"
    said = doctor.ask(None, None, "--engine-url", url)
    said.found("engines", "wrong", f"the engine at {url} is not reached")


def test_an_engine_that_asks_for_a_key(cluster):
    cluster.engine(api_key="secret")
    line = engines(cluster).found("engines", "wrong", "asks for a key (401)")
    assert "--engine-key-file" in line[2]
    key = cluster.dir / "key"
    key.write_text("secret\n")
    engines(cluster, "--engine-key-file", key).ok("engines")


def test_an_engine_is_found_by_its_adapters_command_line(cluster):
    """With the adapter's key; when it is gone, its agent knows that, too."""
    key = cluster.dir / "key"
    key.write_text("secret\n")
    key.chmod(0o600)
    cluster.agent("gw", "gateway")
    engine = cluster.engine(api_key="secret")
    cluster.adapter(engine, "a1", engine_key_file=key)
    cluster.wait_ready()
    doctor.ask(cluster.agents["a1"]).ok("engines", "context")
    doctor.ask(cluster.gateway).found("engines", "unchecked", "no adapter")
    engine.kill()
    wait_for(lambda: cluster.gateway.table()["a1"]["service"] == "DOWN",
             "a1 to be DOWN", takes=5)
    said = doctor.ask(cluster.agents["a1"])
    said.found("members", "wrong", 'replica "a1" is DOWN')
    said.found("engines", "wrong", f"{engine.url} is not reached")


def test_an_engine_without_metrics(cluster):
    cluster.engine(kind="openai")
    line = engines(cluster).found("engines", "warning", "has no metrics")
    assert "--enable-metrics" in line[2]


def test_an_engine_that_hangs(cluster):
    engine = cluster.engine()
    engine.proc.send(signal.SIGSTOP)
    said = engines(cluster)
    engine.proc.send(signal.SIGCONT)
    said.found("engines", "wrong", "takes connections and does not answer")


def test_neighbours_with_another_context_or_model(cluster):
    cluster.engine("e1", max_context=4096)
    cluster.engine("e2", "sglang", max_context=8192)
    cluster.engine("e3", "llamacpp", max_context=4096)
    cluster.engine("e4", model="other")
    said = engines(cluster)
    line = said.found("context", "wrong", "has a context of 8192 tokens")
    assert cluster.engines["e2"].url in line[1] and "one of 4096" in line[1]
    line = said.found("context", "warning", 'serves "other"')
    assert len(said.lines["context"]) == 2


def test_an_engine_with_another_model_than_its_adapter_reports(cluster):
    cluster.agent("gw", "gateway")
    cluster.adapter(cluster.engine(), "a1")
    cluster.wait_ready()
    other = cluster.engine("e2", model="other")
    said = doctor.ask(cluster.agents["a1"], None, "--engine-url", other.url)
    said.found("engines", "wrong",
               'serves "other", and replica "a1" reports "mock-model"')


def test_contexts_are_compared_model_by_model(cluster):
    for i, (model, context) in enumerate([("a", 4096), ("b", 8192),
                                          ("b", 8192), ("b", 2048)]):
        cluster.engine(f"e{i}", model=model, max_context=context)
    said = engines(cluster)
    line = said.found("context", "wrong", "has a context of 2048 tokens")
    assert "one of 8192" in line[1]
    said.found("context", "warning", 'serves "b"')
    assert len(said.lines["context"]) == 2


def test_more_models_than_pools(cluster):
    """Three of them, and the upstream has two; with three nothing is said."""
    cluster.agent("gw", "gateway")
    for model in "abc":
        cluster.adapter(cluster.engine(f"e{model}", model=model), model)
    cluster.wait_ready()
    lines = f"llmgw_members {cluster.gateway.members} models={{}};" \
            "\n llmgw_hash prefix=64;"
    nginx = cluster.nginx(lines.format(2))
    wait_for(lambda: nginx.pool()["models_unrouted"] == 1, "one too many")
    said = doctor.ask(cluster.gateway, nginx)
    line = said.found("models", "wrong", "fewer pools than models, by 1")
    assert "models=NUMBER" in line[2]

    nginx.configure(upstream=lines.format(3))
    nginx.reload()
    wait_for(lambda: sorted(nginx.models()) == ["a", "b", "c"], "all three")
    said = doctor.ask(cluster.gateway, nginx)
    assert said.troubles() == set(), said.lines
    said.ok("models")
    urls = ",".join(e.url for e in cluster.engines.values())
    said = doctor.ask(cluster.gateway, nginx, "--engine-url", urls)
    assert said.troubles() == set(), said.lines
    said.ok("engines", "context", "models")


def test_a_replica_with_another_model_than_its_pool(cluster):
    """Unless the upstream has a pool for it."""
    nginx = cluster.engines_fleet(2)
    cluster.adapter(cluster.engine("e3", model="other"), "a3")

    def lists():
        return any(r["id"] == "a3" and r["models"] for p in
                   nginx.status()["pools"] for r in p["replicas"])
    wait_for(lists, "a3 to be listed")
    said = doctor.ask(cluster.gateway, nginx)
    if "other" in [pool["model"] for pool in nginx.status()["pools"]]:
        said.ok("models")
    else:
        said.found("models", "wrong", 'replica "a3" serves "other"')
