"""Where nothing is wrong, nothing is called so."""

import re
import subprocess

from llmgw.pages import doctor
from llmgw.pages.doctor import keyring
from llmgw.proc import place
from llmgw.proc.wait import wait_for
from llmgw.speak.keyfile import KeyFile


def test_a_fleet_with_everything(cluster, pki):
    """Keyring, TLS, keys, state directories; each check has looked."""
    keys = KeyFile(cluster.dir)
    keys.add("alice")
    keys.path.chmod(0o640)
    agent = {"keyring": keyring(cluster)}
    for id in ("r1", "r2"):
        kept = cluster.dir / f"state-{id}"
        kept.mkdir()
        options = {**agent, "state_dir": kept, **pki.agent(id)}
        if cluster.gateway is None:
            cluster.agent("gw", "gateway", **agent)
        cluster.pair(id, agent_options=options, **pki.replica(id, "gw*,r*"))
    cluster.wait_ready([cluster.gateway])
    nginx = cluster.nginx(pool=pki.nginx(), http=keys.directive(
        "keys:1m", f"state={cluster.dir}/used"))
    wait_for(lambda: nginx.routable() == ["r1", "r2"], "both to be routable")
    said = doctor.ask(cluster.gateway, nginx)
    assert said.troubles() == set(), said.lines
    assert {check for check, lines in said.lines.items()
            for line in lines if line[0] == "unchecked"} <= {
                "engines", "context"}, said.lines


def test_engines_and_a_replicas_own_host(cluster):
    nginx = cluster.engines_fleet(2)
    urls = ",".join(e.url for e in cluster.engines.values())
    said = doctor.ask(cluster.gateway, nginx, "--engine-url", urls)
    assert said.troubles() == set(), said.lines
    said.ok("engines", "context", "models")
    said = doctor.ask(cluster.agents["a1"])
    assert said.troubles() == set(), said.lines
    said.ok("agent", "members", "udp", "tcp", "replicas", "engines")
    assert said.lines["gateway"][0][0] == "unchecked"


def test_without_an_agent_nothing_is_called_ok():
    said = doctor.ask()
    assert said.status == 0
    assert {line[0] for lines in said.lines.values() for line in lines} \
        == {"unchecked"}
    assert all(text for lines in said.lines.values() for _, text, _ in lines)


def test_people_get_a_line_each(cluster):
    cluster.agent("gw", "gateway")
    out = subprocess.run(
        [place.binary("llmgwctl"), "-s", cluster.gateway.control, "doctor",
         "--nginx-conf", "-"], input="", capture_output=True, text=True)
    assert out.returncode == 7 and out.stderr == ""
    *lines, last = out.stdout.splitlines()
    assert all(re.match(r"(ok|warning|wrong|unchecked) +[a-z]+  +\S", line)
               for line in lines), lines
    assert 'warning    agent         agent "gw" knows no other member; give' \
        in out.stdout
    assert re.fullmatch(r"\d+ ok, 1 warnings, 0 wrong, \d+ unchecked", last)
