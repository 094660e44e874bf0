"""The chart's pods, as a kubelet starts them."""

import urllib.request

import pytest

from llmgw import chart, kubelet, node, place, sse
from llmgw.wait import wait_for

pytestmark = [
    pytest.mark.soak,           # ten seconds each, beside others
    pytest.mark.skipif(node.unavailable() is not None,
                       reason=f"{node.unavailable()}"),
    pytest.mark.skipif(place.FLAVOUR == "asan",
                       reason="nginx would need a library preloaded")]

LENGTH = 20


@pytest.fixture
def kube(cluster, tmp_path):
    values = (chart.HERE / "pods.yaml").read_text().replace(
        "ENGINE", str(place.ROOT / "t/llmgw/engine_mock.py"))
    (tmp_path / "values.yaml").write_text(values)
    made = kubelet.Kubernetes(
        cluster, chart.objects(chart.render(tmp_path / "values.yaml")[0]),
        {"llmgw-keyring": {"gossip.keys": kubelet.keyring()}})
    yield made
    made.close()


def gateway(kube, name="llmgw-gateway-1"):
    return kube.pod("Deployment", "llmgw-gateway", name)


def engine(kube, ordinal=0):
    return kube.pod("StatefulSet", "llmgw-chat", f"llmgw-chat-{ordinal}")


def ready(kube, gateways=1, engines=2):
    """That many of each, ready, and each engine routable everywhere."""
    pods = [gateway(kube, f"llmgw-gateway-{i + 1}") for i in range(gateways)]
    pools = [engine(kube, i) for i in range(engines)]
    kube.wait_ready(*pods, *pools, takes=12)
    wait_routable(pods, engines)
    return pods, pools


def metric(pod, name):
    """The sum of a metric's series; None: it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{pod.ip}:8081/metrics",
                                    timeout=5) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return None
    return sum(float(line.rpartition(" ")[2]) for line in lines
               if line.startswith(name + "{"))


def wait_routable(gateways, n):
    wait_for(lambda: all(metric(g, "llmgw_replica_routable") == n
                         for g in gateways), f"{n} routable engines", takes=6)


def whole(response):
    got = sse.result_of(response)
    response.connection.close()
    return (not got.error and got.done == 1
            and got.finish_reason == ["stop"]) or got


def position(pod, what, name):
    return pod.log.index((what, name))


@pytest.mark.first
def test_pods_start_in_order_and_serve(kube):
    (pod,), _ = ready(kube, engines=1)
    assert position(pod, "started", "agent") < position(pod, "start", "nginx")
    target, = kube.endpoints("llmgw")
    assert sse.call(target, sse.CHAT, sse.chat(
        f"hi len={LENGTH};", model="mock-model")).status == 200


def test_gateway_is_ready_when_an_engine_is(kube):
    pod = gateway(kube)
    wait_for(lambda: metric(pod, "llmgw_queue_size") is not None, "nginx",
             takes=6)
    assert not pod.is_ready() and kube.endpoints("llmgw") == []
    engine(kube)
    kube.wait_ready(pod, takes=12)


@pytest.mark.first
def test_scale_from_0_to_3(kube):
    pod = gateway(kube)
    wait_for(lambda: metric(pod, "llmgw_queue_size") is not None, "nginx",
             takes=6)
    held = sse.Connection(f"{pod.ip}:8080", takes=20).request(
        sse.CHAT, sse.chat(f"hi len={LENGTH};", stream=True,
                           model="mock-model"))
    wait_for(lambda: metric(pod, "llmgw_held") == 1, "a held request")
    engines = [engine(kube, i) for i in range(3)]
    assert whole(held) is True
    kube.wait_ready(pod, *engines, takes=12)
    wait_routable([pod], 3)
