"""What docs/policies.md shows works as it stands there."""

import re

import pytest

from llmgw.proc import place
from llmgw.proc.wait import wait_for

PAGE = (place.ROOT / "docs" / "policies.md").read_text()
MEMBERS = "/run/llmgw/members"


def examples():
    """The configurations of the page, by the heading above each and a
    number."""
    found, heading = {}, ""
    for at in re.finditer(r"^## ([^\n]*)$|^```nginx\n(.*?)^```$", PAGE,
                          re.M | re.S):
        if at[1]:
            heading = at[1].lower().replace(" ", "-")
        else:
            count = sum(name.startswith(heading) for name in found)
            found[f"{heading}-{count + 1}"] = at[2]
    return found


def part(pattern, text):
    """The text in the braces after it; "" if there is none."""
    found = re.search(rf"^ *{pattern} \{{\n(.*?)^ *\}}", text, re.M | re.S)
    return found[1].strip() if found else ""


def run(cluster, text, n=2):
    """A gateway with that configuration before n replicas."""
    upstream = part("upstream llm", text)
    location = part("location /", text).replace("llmgw_pass llm;", "")
    options = {"location": location, "http": "".join(
        f"{m[0]}\n" for m in re.finditer(r"^map .*?^}", text, re.M | re.S))}
    assert upstream
    if MEMBERS not in upstream:
        made = [cluster.replica(f"r{i + 1}", token_delay="1ms")
                for i in range(n)]
        lines = re.sub(r" *server .*?;\n", "", upstream)
        return cluster.static(made, pool=lines, **options)
    cluster.agent("gw", "gateway")
    for i in range(n):
        cluster.pair(f"r{i + 1}", token_delay="1ms")
    upstream = upstream.replace(MEMBERS, cluster.gateway.members)
    return cluster.nginx(upstream, **options)


@pytest.mark.parametrize("name", examples())
def test_example(cluster, client, name):
    """It serves; and a conversation stays at one replica, if its policy has to
    do with prompts."""
    text = examples()[name]
    nginx = run(cluster, text)
    wait_for(lambda: len(nginx.routable()) == 2, "both to be routable")
    c, prompt, seen = client(nginx), "Once upon a time " * 150, set()
    for _ in range(4):
        got = c.stream(prompt, 3)
        assert (got.code, len(got.tokens)) == ("OK", 3)
        prompt += got.text + " and then? " * 10
        seen |= set(got.replicas)
    assert "least_loaded" in text or len(seen) == 1
