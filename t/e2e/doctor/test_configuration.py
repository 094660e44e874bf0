"""Faults of nginx's configuration, and of the files that it names."""

import re

import pytest

from llmgw.pages import doctor
from llmgw.speak.keyfile import KeyFile


@pytest.fixture
def gateway(cluster):
    return cluster.fleet(1)


def changed(nginx, *changes):
    conf = doctor.configuration(nginx)
    for old, new in changes:
        conf, n = re.subn(old, new, conf)
        assert n > 0, old
    return conf


def test_limits_that_are_nginxs_own(cluster, gateway):
    """Each with its place, and what to write there."""
    said = doctor.ask(cluster.gateway, gateway, conf=changed(
        gateway, (r"http2_max_concurrent_streams \d+;", ""),
        (r"keepalive_requests \d+;", ""),
        (r"client_max_body_size 8m;", ""),
        (r"worker_connections \d+;", "worker_connections 512;")))
    assert said.status == 7
    place = rf"in the server at {re.escape(str(gateway.conf))}:\d+"
    for check, text, remedy in (
            ("streams", "http2_max_concurrent_streams is 128",
             "http2_max_concurrent_streams 10000"),
            ("keepalive", "keepalive_requests is 1000",
             "keepalive_requests 1000000")):
        line = said.found(check, "warning", text)
        assert re.search(place, line[1]) and remedy in line[2]
    assert "413" in said.found("body", "warning", "1024 KiB")[2]
    said.found("connections", "warning",
               "1 workers take 511 clients, and 1000 may run or wait")


def test_a_limit_above_counts_for_what_is_within(cluster, gateway):
    said = doctor.ask(cluster.gateway, gateway, conf=changed(
        gateway, (r"client_max_body_size 8m;", ""),
        (r"http \{", "http { client_max_body_size 64m;")))
    said.ok("body")


def test_descriptors_that_do_not_suffice(cluster):
    nginx = cluster.fleet(1, nginx={"main": "worker_rlimit_nofile 700;",
                                    "worker_connections": 600})
    said = doctor.ask(cluster.gateway, nginx)
    said.ok("descriptors")
    said = doctor.ask(cluster.gateway, nginx, conf=changed(
        nginx, (r"worker_connections 600;", "worker_connections 8192;")))
    assert "worker_rlimit_nofile" in said.found(
        "descriptors", "warning",
        "a worker may have 700 descriptors, and needs 8256")[2]


def test_a_zone_that_is_too_small(cluster):
    lines = "\n        ".join(f"server 127.0.0.1:{20000 + i} down;"
                              for i in range(600))
    nginx = cluster.nginx(f"llmgw_hash;\n        llmgw_queue size=1;\n"
                          f"        llmgw_zone small:512k;\n        {lines}")
    slots = nginx.pool()["zone"]["slots"]
    assert slots < 600
    said = doctor.ask(None, nginx)
    assert "llmgw_zone" in said.found(
        "zone", "wrong", f"has room for {slots} of 600 replicas")[2]


def test_key_files(cluster, gateway):
    """Their mode, keys that have expired or soon will, a wrong line."""
    keys = KeyFile(cluster.dir)
    keys.add("alice", "expires=2020-01-01")
    keys.add("bob")
    keys.path.chmod(0o664)
    conf = changed(gateway, (r"http \{", f"http {{ llmgw_keys {keys.path}"
                             " zone=keys:1m;"))
    said = doctor.ask(cluster.gateway, gateway, conf=conf)
    said.found("keys", "wrong", "has mode 0664: others may add keys")
    said.found("keys", "warning", "has 1 expired keys")
    keys.path.chmod(0o644)
    keys.path.write_text(keys.path.read_text() + "carol what\n")
    said = doctor.ask(cluster.gateway, gateway, conf=conf)
    assert said.lines["keys"][0][0] == "wrong"
    assert "line 3: " in said.lines["keys"][0][1]
    keys.path.unlink()
    said = doctor.ask(cluster.gateway, gateway, conf=conf)
    said.found("keys", "wrong", "No such file")


def test_certificates_that_nginx_is_given(cluster, gateway, pki):
    cert, key = pki.issue("soon", "--days", "9")
    old, _ = pki.expired("gw")
    key.chmod(0o644)
    conf = changed(gateway, (
        r"upstream llm \{", f"upstream llm {{ llmgw_ssl_certificate {cert};"
        f" llmgw_ssl_certificate_key {key};"
        f" llmgw_ssl_trusted_certificate {pki.ca};"), (
        r"http \{", f"http {{ ssl_certificate {old}; ssl_certificate_key"
        f" {cluster.dir}/none.key;"))
    said = doctor.ask(cluster.gateway, gateway, conf=conf)
    said.found("certificates", "warning", f"{cert} expires in ")
    said.found("certificates", "wrong", f"{old} expired ")
    said.found("certificates", "wrong", f"the private key {key} is readable")
    said.found("certificates", "wrong", "none.key: No such file")
    assert len(said.lines["certificates"]) == 4


def test_a_segment_that_is_another_agents(cluster, gateway):
    said = doctor.ask(cluster.gateway, gateway, conf=changed(
        gateway, (r"llmgw_members \S+;", "llmgw_members /tmp/no/members;")))
    said.found("segment", "wrong",
               f"the agent writes {cluster.gateway.members}, and nginx does")
    said.found("segment", "wrong", "/tmp/no/members: ")


def test_a_configuration_that_cannot_be_read(cluster, gateway):
    said = doctor.ask(cluster.gateway, gateway, conf="http { llmgw_pass")
    assert said.lines["streams"] == [
        ("unchecked", "nginx's configuration cannot be read: -:1: a directive"
         ' is not ended by ";"', None)]
