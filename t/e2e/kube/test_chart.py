"""The Helm chart: what it renders, what Kubernetes says of it, what it refuses.
"""

import json
import sys

import jsonschema
import pytest
import yaml

from llmgw.kube import chart
from llmgw.proc import place

sys.path.insert(0, str(chart.HERE))
import manifests  # noqa: E402

GIVEN = sorted((chart.HERE / "values").glob("*.yaml"))
REFUSED = sorted((chart.HERE / "refused").glob("*.yaml"))
SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text())


def merged(path):
    """The values that Helm would hold against the schema."""
    def into(base, more):
        for key, value in more.items():
            if value is None:
                base.pop(key, None)
            elif isinstance(value, dict) and isinstance(base.get(key), dict):
                into(base[key], value)
            else:
                base[key] = value
        return base
    return into(yaml.safe_load((chart.CHART / "values.yaml").read_text()),
                yaml.safe_load(path.read_text()) or {})


def complaints(path):
    validator = jsonschema.Draft7Validator(SCHEMA)
    return [e.message for e in validator.iter_errors(merged(path))]


def of_kind(path, kind):
    return {o["metadata"]["name"]: o
            for o in chart.objects(chart.render(path)[0])
            if o["kind"] == kind}


def named(name):
    return chart.HERE / "values" / f"{name}.yaml"


def test_schema_is_one():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert len(GIVEN) == 12


@pytest.mark.parametrize("path", GIVEN, ids=lambda p: p.stem)
def test_values_are_accepted(path):
    assert not complaints(path)


@pytest.mark.parametrize("path", REFUSED, ids=lambda p: p.stem)
def test_wrong_values_are_refused(path):
    assert complaints(path)


def test_kubernetes_takes_what_is_rendered():
    """As its schemas say, and no field that they do not know."""
    named = [(f"{path.stem} {o['kind']} {o['metadata']['name']}", o)
             for path in GIVEN for o in chart.objects(chart.render(path)[0])]
    assert {o["kind"] for _, o in named} > {
        "StatefulSet", "ScaledObject", "ServiceMonitor", "PrometheusRule",
        "HTTPRoute", "Certificate", "NetworkPolicy", "PodDisruptionBudget"}
    assert chart.wrong(named) == []


def test_misspelt_field_of_a_manifest_is_noticed():
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
           "spec": {"containers": [{"name": "c", "readinesProbe": {}}]}}
    line, = chart.wrong([("p", pod)])
    assert "readinesProbe" in line


@pytest.mark.parametrize("name", manifests.HEADS)
def test_plain_manifests_are_the_chart(name):
    """Otherwise: make manifests."""
    got = (place.ROOT / f"packaging/kubernetes/{name}.yaml").read_text()
    assert got == manifests.text(name)


def test_names_are_unique():
    for path in GIVEN:
        names = [(o["kind"], o["metadata"]["name"])
                 for o in chart.objects(chart.render(path)[0])]
        assert len(set(names)) == len(names), path


def test_selectors_find_their_pods():
    for path in GIVEN:
        objects = chart.objects(chart.render(path)[0])
        pods = {o["metadata"]["name"]: o["spec"]["template"]["metadata"]
                ["labels"] for o in objects
                if o["kind"] in ("Deployment", "StatefulSet")}
        for o in objects:
            spec = o.get("spec", {})
            selector = spec.get("selector", spec.get("podSelector", {}))
            wanted = selector.get("matchLabels", selector)
            if o["kind"] in ("Service", "Deployment", "StatefulSet",
                             "PodDisruptionBudget", "NetworkPolicy"):
                found = {n for n, labels in pods.items()
                         if wanted.items() <= labels.items()}
                assert found or o["metadata"]["name"].endswith("-engine"), \
                    (path, o["kind"], o["metadata"]["name"])
            if o["kind"] in ("Deployment", "StatefulSet"):
                assert found == {o["metadata"]["name"]}


def test_release_has_a_name_of_its_own():
    text, notes = chart.render(release="prod", namespace="inference")
    assert "name: prod-llmgw-gateway" in text
    assert "--join=prod-llmgw-gossip:7946" in text
    assert "http://prod-llmgw.inference:80/v1" in notes


def test_container_of_ours_may_do_little():
    for path in GIVEN:
        for o in chart.objects(chart.render(path)[0]):
            if o["kind"] not in ("Deployment", "StatefulSet"):
                continue
            spec = o["spec"]["template"]["spec"]
            assert spec["automountServiceAccountToken"] is False
            for c in spec.get("initContainers", []) + spec["containers"]:
                context = c.get("securityContext", {})
                assert c["name"] == "engine" or (
                    context["runAsUser"] == 65532
                    and context["readOnlyRootFilesystem"]
                    and context["capabilities"] == {"drop": ["ALL"]}), c


def test_grace_period_outlasts_what_a_pod_waits_for():
    gateway, = of_kind(named("placement"), "Deployment").values()
    spec = gateway["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] > 3600 + 5
    engine, = of_kind(named("placement"), "StatefulSet").values()
    spec = engine["spec"]["template"]["spec"]
    drain, = [a for a in spec["containers"][0]["args"] if "drain" in a]
    seconds = int(drain.removeprefix("--drain-timeout=").removesuffix("s"))
    assert spec["terminationGracePeriodSeconds"] > seconds


def test_scaled_pool_leaves_its_size_to_the_scaler():
    pool, = of_kind(named("from-zero"), "StatefulSet").values()
    assert "replicas" not in pool["spec"]
    scaler, = of_kind(named("from-zero"), "ScaledObject").values()
    assert scaler["spec"]["minReplicaCount"] == 0
    gateway, = of_kind(named("from-zero"), "Deployment").values()
    nginx, = gateway["spec"]["template"]["spec"]["containers"]
    # A gateway without engines takes requests, to hold them.
    assert nginx["readinessProbe"]["httpGet"]["path"] == "/alive"


def test_what_an_entry_turns_off_is_off():
    """Though it is on by default."""
    assert of_kind(named("open"), "PodDisruptionBudget") == {}
    assert len(of_kind(named("default"), "PodDisruptionBudget")) == 2


def test_certificates_name_each_pod():
    got = of_kind(named("tls"), "Certificate")
    assert got["llmgw-chat"]["spec"]["dnsNames"] == [
        "llmgw-chat-0", "llmgw-chat-1"]
    assert len(got["llmgw-burst"]["spec"]["dnsNames"]) == 5


def given(tmp_path, text):
    path = tmp_path / "values.yaml"
    path.write_text(text)
    return path


def test_pool_from_zero_needs_a_model(tmp_path):
    with pytest.raises(chart.Refused, match="needs a model"):
        chart.render(given(tmp_path, "engines: [{name: chat, image: x, "
                           "autoscaling: {enabled: true, minReplicas: 0}}]"))


def test_gossip_needs_a_keyring(tmp_path):
    with pytest.raises(chart.Refused, match="gossip needs a keyring"):
        chart.render(given(tmp_path, 'keyring: {existingSecret: ""}'))


@pytest.mark.parametrize("template, why", (
    ("{{ lookup }}", 'function "lookup" not defined'),
    ("{{ .Values.nothing }}", 'no entry for key "nothing"')))
def test_renderer_refuses_what_it_does_not_know(tmp_path, template, why):
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/a.yaml").write_text(template)
    (tmp_path / "templates/NOTES.txt").write_text("")
    (tmp_path / "Chart.yaml").write_text("{name: a, version: 1.0.0, "
                                         "appVersion: 1.0.0}")
    (tmp_path / "values.yaml").write_text("{}")
    with pytest.raises(chart.Refused, match=why):
        chart.render(chart=tmp_path)
