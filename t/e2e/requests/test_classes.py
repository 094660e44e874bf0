"""Class and tenant of a request, and where they may come from."""

import json
import time

import pytest

from llmgw.engine.scripted import Target, scripted
from llmgw.fleet import words
from llmgw.fleet.native import grpc
from llmgw.proc.wait import wait_for
from llmgw.speak import rpc, sse

LOG = "access_log @dir@/whose.log whose; "
FORMAT = ("log_format whose escape=json "
          "'{\"class\":\"$llmgw_class\",\"tenant\":\"$llmgw_tenant\"}';")
BOTH = "llmgw_class request; llmgw_tenant request;"
NAMES = "llmgw_slo gold priority=7; llmgw_tenant_budget acme=1;"

CLASS = "x-gateway-inference-objective"
TENANT = "x-gateway-inference-fairness-id"
NEWER = "x-llm-d-inference-objective"
NEWER_TENANT = "x-llm-d-inference-fairness-id"


def static(cluster, location=BOTH, pool=NAMES, http="", **options):
    """One replica without agents; the location's requests are logged."""
    options.setdefault("location", LOG + location)
    return cluster.static([cluster.replica("r1", token_delay="1ms")],
                          pool=pool, http=FORMAT + http, **options)


def logged(nginx, n):
    """(class, tenant) of the n requests that were logged."""
    path = nginx.dir / "whose.log"
    lines = wait_for(lambda: path.exists()
                     and len(path.read_text().splitlines()) == n
                     and path.read_text().splitlines(), f"{n} lines")
    return [(row["class"], row["tenant"]) for row in map(json.loads, lines)]


def whose(nginx, client, *calls):
    """What is logged of calls of Infer: (metadata, fields)."""
    for metadata, fields in calls:
        got = client(nginx).stream("p", 1, metadata=metadata, **fields)
        assert got.code == "OK", got
    return logged(nginx, len(calls))


def test_field_goes_before_metadata(cluster, client):
    assert whose(
        static(cluster), client,
        ([(CLASS, "batch"), (TENANT, "t2")],
         {"slo_class": "gold", "tenant_id": "acme"}),
        ([(CLASS, "batch"), (TENANT, "acme")], {}),
        ([(CLASS, "batch")], {"tenant_id": "acme"}),
        ([], {"slo_class": "critical"}),
        ([], {})) == [("gold", "acme"), ("batch", "acme"), ("batch", "acme"),
                      ("critical", ""), ("other", "")]


def test_clients_are_not_believed_by_default(cluster, client):
    assert whose(
        static(cluster, location=""), client,
        ([(CLASS, "batch"), (TENANT, "acme")],
         {"slo_class": "gold", "tenant_id": "acme"})) == [("", "")]


def test_newer_names_of_headers_go_before_older_ones(cluster, client):
    assert whose(
        static(cluster), client,
        ([(NEWER, "batch"), (NEWER_TENANT, "acme")], {}),
        ([(CLASS, "critical"), (NEWER, "gold"), (TENANT, "other"),
          (NEWER_TENANT, "acme")], {})) \
        == [("batch", "acme"), ("gold", "acme")]


@pytest.mark.soak
def test_other_header_of_the_operators_choice(cluster, client):
    nginx = static(cluster, location="llmgw_class request header=x-prio;"
                                     " llmgw_tenant request header=X-Team;")
    assert whose(
        nginx, client,
        ([(CLASS, "batch"), (TENANT, "acme"), (NEWER, "batch"),
          (NEWER_TENANT, "acme")], {}),
        ([("x-prio", "batch"), ("x-team", "acme")], {})) \
        == [("other", ""), ("batch", "acme")]


def test_operator_says_it_by_a_variable(cluster, client):
    """Whatever the client claims; an empty value means none."""
    maps = ("map $http_authorization $class { k1 gold; default \"\"; }"
            "map $http_authorization $team { k1 acme; k2 new; default \"\"; }")
    nginx = static(cluster, http=maps + "llmgw_class $class;",
                   location="llmgw_tenant $team;")
    claim = {"slo_class": "critical", "tenant_id": "other"}
    (one, two, three) = whose(
        nginx, client, ([("authorization", "k1")], claim),
        ([("authorization", "k2")], claim), ([(CLASS, "gold")], claim))
    assert one == ("gold", "acme")
    assert two[0] == "other" and len(two[1]) == 16
    assert three == ("other", "")


@pytest.mark.soak
def test_location_turns_it_off_again(cluster, client):
    nginx = static(cluster, http=BOTH,
                   location="llmgw_class off; llmgw_tenant off;")
    assert whose(nginx, client,
                 ([], {"slo_class": "gold", "tenant_id": "acme"})) \
        == [("", "")]


def test_names_of_clients_are_no_words_in_logs(cluster, client):
    """Tenants that nobody configured are a number, the same each time, and
    classes are `other`, whatever bytes they have and how many."""
    odd = ["t", "u", "x" * 5000, 'a"b\\', "ACME", "acme2", "critica"]
    rows = whose(static(cluster), client,
                 *[([], {"slo_class": x, "tenant_id": x})
                   for x in odd + ["t"]])
    assert {row[0] for row in rows} == {"other"}
    tenants = [row[1] for row in rows]
    assert all(len(x) == 16 and int(x, 16) for x in tenants)
    assert tenants[0] == tenants[-1] and len(set(tenants)) == len(odd)


@pytest.mark.parametrize("field", [
    pytest.param(6, id="slo_class"),
    pytest.param(7, id="tenant_id", marks=pytest.mark.soak)])
def test_fields_that_are_not_utf8_are_refused(cluster, client, field):
    nginx = static(cluster)
    message = (rpc.pb.InferRequest(prompt="p", max_tokens=1)
               .SerializeToString() + bytes([field << 3 | 2, 2]) + b"\xff\xfe")
    got = client(nginx).raw([message])
    assert got.code == "INVALID_ARGUMENT"
    assert got.details == "slo_class and tenant_id must be UTF-8"


def test_openai_request_has_headers(cluster):
    nginx = static(cluster, openai=LOG + BOTH)
    got = sse.call(nginx.api, sse.TEXT, sse.text("p", max_tokens=1),
                   headers={CLASS: "gold", TENANT: "acme"})
    assert got.status == 200
    assert logged(nginx, 1) == [("gold", "acme")]


@pytest.mark.parametrize("tier, header, expected", [
    ("gold", None, "gold"), ("gold", "batch", "gold"),
    ("flex", None, "other"), ("auto", "batch", "batch"),
    ("default", None, "other"), ("", "batch", "batch"), (None, "gold", "gold"),
    (7, "gold", "gold"), ('go"ld', None, "other")])
def test_service_tier_is_a_class(cluster, tier, header, expected):
    nginx = static(cluster, openai=LOG + BOTH)
    got = sse.call(nginx.api, sse.TEXT,
                   sse.text("p", max_tokens=1, service_tier=tier),
                   headers={CLASS: header} if header else {})
    assert got.status == 200
    assert logged(nginx, 1) == [(expected, "")]


def test_service_tier_is_not_believed_by_default(cluster):
    nginx = static(cluster, openai=LOG)
    got = sse.call(nginx.api, sse.TEXT,
                   sse.text("p", max_tokens=1, service_tier="gold"))
    assert got.status == 200
    assert logged(nginx, 1) == [("", "")]


def test_native_pass_has_headers(cluster, client):
    nginx = static(cluster, **grpc(LOG + BOTH))
    got = client(nginx).generate("p", 1, metadata=[(CLASS, "gold"),
                                                   (TENANT, "acme")])
    assert got.code == "OK"
    assert logged(nginx, 1) == [("gold", "acme")]


# --- what is counted

METRICS = "location = /metrics { llmgw_metrics; }"


def paused(request, context):
    """A tenth of a second to each token."""
    for i in range(request.max_tokens):
        time.sleep(0.1)
        if not context.is_active():
            return
        yield rpc.pb.GenerateResponse(token="x",
                                      is_final=i + 1 == request.max_tokens)


def test_goodput_is_what_was_served_within_the_targets(cluster, ports,
                                                       client):
    with scripted(port := ports.take(), paused, threads=16):
        nginx = cluster.static(
            [Target(port)], location=BOTH, server=METRICS,
            pool="llmgw_slo lax ttft=1h itl=1m; llmgw_slo first ttft=50ms;"
                 " llmgw_slo next itl=5ms; llmgw_slo free;"
                 " llmgw_tenant_budget acme=1;")
        c = client(nginx)
        calls = [c.start("p", n, slo_class=name,
                         tenant_id="new" if name == "free" else "acme")
                 for name in ("lax", "first", "next", "free", "what", "")
                 for n in (1, 2)]
        gone = c.start("p", 1000, slo_class="lax", tenant_id="acme")
        assert {rpc.drain(call).code for call in calls} == {"OK"}
        next(gone)
        assert nginx.counted("llmgw_tenant_in_flight") == {"acme": 1,
                                                            "other": 0}
        gone.cancel()
        wait_for(lambda: nginx.counted("llmgw_tenant_in_flight")
                 == {"acme": 0, "other": 0}, "none in flight")

    assert nginx.counted("llmgw_class_requests_total") == {
        ("lax", ""): 2, ("lax", words.CLIENT_GONE): 1, ("first", ""): 2,
        ("next", ""): 2, ("free", ""): 2, ("other", ""): 4}
    assert nginx.counted("llmgw_class_goodput_total") == {
        "lax": 2, "first": 0, "next": 1, "free": 2, "other": 4}
    assert nginx.counted("llmgw_class_first_token_seconds_count") == {
        "lax": 3, "first": 2, "next": 2, "free": 2, "other": 4}
    assert nginx.counted("llmgw_tenant_first_token_seconds_count") == {
        "acme": 11, "other": 2}


@pytest.mark.soak
def test_reload_keeps_what_was_counted(cluster, client):
    """Names that are not configured any more stay, and new ones come."""
    nginx = cluster.static([cluster.replica("r1", token_delay="1ms")],
                           location=BOTH, server=METRICS, pool=NAMES)
    assert client(nginx).stream("p", 1, slo_class="gold", tenant_id="acme"
                                ).code == "OK"
    nginx.configure(upstream=nginx.upstream.replace("gold", "silver"))
    nginx.reload()
    c = client(nginx)
    for name in ("gold", "silver"):
        assert c.stream("p", 1, slo_class=name, tenant_id="acme").code == "OK"
    assert nginx.counted("llmgw_class_requests_total") == {
        ("gold", ""): 1, ("silver", ""): 1, ("other", ""): 1}
    assert nginx.counted("llmgw_tenant_requests_total") == {("acme", ""): 3}
