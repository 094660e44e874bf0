"""The time of the answer to a wrong key reveals nothing about valid ones:
nginx executes as many instructions for each."""

import re
import shutil

import pytest

from llmgw.proc.wait import wait_for
from llmgw.speak import sse
from llmgw.speak.keyfile import ask, bearer

ASKED = 20
UNDER = ["valgrind", "-q", "--tool=callgrind", "--trace-children=yes",
         "--toggle-collect=llmgw_keys_find"]


def answers(nginx):
    try:
        return nginx.status()
    except OSError:
        return None


def instructions(cluster, http, headers):
    """Of looking up the keys of some requests, and the last answer."""
    nginx = cluster.nginx(
        "server 127.0.0.1:9 down; llmgw_hash; llmgw_queue off;",
        start=False, openai=True, http=http)
    proc = cluster.run("nginx", [
        *UNDER, f"--callgrind-out-file={nginx.dir}/callgrind.%p",
        *nginx.argv()])
    wait_for(lambda: answers(nginx), "nginx to answer", 30)
    for i in range(ASKED):
        got = ask(nginx.api, sse.CHAT, sse.chat("x", "one"), headers)
    assert proc.stop(takes=30) is None
    texts = [path.read_text() for path in nginx.dir.glob("callgrind.*")]
    return sum(int(n) for text in texts
               for n in re.findall(r"(?m)^summary: (\d+)", text)), got.status


@pytest.mark.soak
@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
def test_each_key_costs_as_many_instructions(cluster, keyfile):
    known = keyfile.add("alice")
    for i in range(50):
        keyfile.add(f"account{i}")
    keys = {"known": known, "unknown": known[:-6] + "AAAAAA",
            "without the prefix": "xx" + known[2:],
            "malformed": "!" * len(known)}
    found = {name: instructions(cluster, keyfile.directive(), bearer(key))
             for name, key in keys.items()}
    assert [status for _, status in found.values()] == [503, 401, 401, 401]
    counts = {count for count, _ in found.values()}
    assert len(counts) == 1 and counts.pop() > 1000 * ASKED, found
