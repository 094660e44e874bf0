"""Who may use a shard: TLS on both ends, a key that both have, and a shard
that has neither and could be reached from elsewhere."""

import os
import subprocess

import pytest

from llmgw.fleet.certs import Authority
from llmgw.model import llama
from llmgw.proc import place
from llmgw.proc.preload import compiled
from llmgw.proc.wait import wait_for
from llmgw.shards.replica import Shards

pytestmark = pytest.mark.skipif(not llama.is_built(), reason=llama.MISSING)

BODY = llama.chat("the quick brown fox", max_tokens=10)
KEY = "00112233445566778899aabbccddeeff" * 2


def preloaded(library):
    env = {**os.environ, "LD_PRELOAD": library}
    if place.FLAVOUR == "asan":     # the preload is loaded before its runtime
        env["ASAN_OPTIONS"] = ":".join(filter(None, [
            os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
    return env


def tls(authority, name="IP:127.0.0.1", **options):
    pem = authority.sign(name, **options)
    return {"shard_tls_cert": pem, "shard_tls_key": pem,
            "shard_tls_ca": authority.file}


def key(cluster, name, text):
    path = cluster.dir / name
    path.write_text(text + "\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("listen", [
    "0.0.0.0:21999", pytest.param("[::]:21999", marks=pytest.mark.soak)])
def test_a_shard_that_anybody_reaches_needs_tls_or_a_key(tmp_path, listen):
    done = subprocess.run(
        [place.binary("llmgw-replica"), "--id", "s1", "--listen", listen,
         "--shard", str(tmp_path / "none.gguf")], capture_output=True,
        text=True, timeout=20)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f'"{listen}" is not loopback' in done.stderr
    assert "--shard-tls-cert" in done.stderr
    assert "--shard-key FILE" in done.stderr


def test_a_shard_whose_name_is_not_found_yet_does_not_start(tmp_path):
    """And not where the name leads to a moment later, with neither of them."""
    done = subprocess.run(
        [place.binary("llmgw-replica"), "--id", "s1", "--listen",
         "shard-3.invalid:21999", "--shard", str(tmp_path / "none.gguf")],
        capture_output=True, text=True, timeout=20,
        env=preloaded(compiled("late_names", tmp_path)))
    assert done.returncode == 1
    assert 'cannot listen: host "shard-3.invalid"' in done.stderr
    assert "none.gguf" not in done.stderr


def test_tls_and_a_key_let_in_those_that_have_them(cluster):
    s = Shards(cluster, layers=4)
    ours, other = (Authority(cluster.dir, n) for n in ("ours", "other"))
    cluster.agent("gw", "gateway")
    both = {**tls(ours), "shard_key": key(cluster, "key", KEY)}
    s.shards("0-1", "2-3", **both)
    text = s.undisturbed(BODY)
    good = s.orchestrator("o1", **both)
    assert llama.ask(good, llama.request(BODY)).whole().says() == text

    # Each of the others is refused, says why, and so does the shard.
    cases = {
        "plain": ({"shard_key": both["shard_key"]}, "it may expect TLS",
                  "does not speak TLS"),
        "stranger": ({**both, **tls(other)}, "not signed by the CA",
                     "unknown CA"),
        "keyless": (tls(ours), "bad_token", None),
        "other-key": ({**both, "shard_key": key(cluster, "key2", KEY[::-1])},
                      "bad_token", None),
    }
    for id, (options, here, there) in cases.items():
        o = s.orchestrator(id, **options)
        answer = llama.ask(o, llama.request(BODY))
        assert answer.code == "UNAVAILABLE", (id, answer.details)
        wait_for(lambda: here in o.proc.text(), f"{id} to say why")
        shards = [s["s0-1"], s["s2-3"]]
        if there:
            wait_for(lambda: any(there in one.proc.text() for one in shards),
                     f"a shard to say why it refuses {id}")
        o.stop()
