"""The chart's pods, as a kubelet starts and ends them: no client notices."""

import contextlib
import json
import threading
import urllib.request

import pytest

from llmgw.kube import chart, kubelet, node
from llmgw.proc import place
from llmgw.proc.wait import PATIENCE, wait_for
from llmgw.speak import sse

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


def faults(pod, **values):
    request = urllib.request.Request(
        f"http://{pod.ip}:8000/mock/faults", json.dumps(values).encode())
    urllib.request.urlopen(request, timeout=PATIENCE).close()


def ask(connection, prompt):
    return connection.request(sse.CHAT, sse.chat(
        f"{prompt} len={LENGTH};", stream=True, model="mock-model"))


def said(response):
    """The text of a stream that ended well; otherwise how it ended."""
    got = sse.result_of(response)
    response.connection.close()
    well = not got.error and got.done == 1 and got.finish_reason == ["stop"]
    return got.text[0] if well else got


class Streams:
    """That have begun, at these gateways, and are held by their engines."""

    def __init__(self, targets, engines, n):
        self.engines, self.asked = engines, []
        for pod in engines:
            faults(pod, gate=10)
        for i in range(n):
            for target in targets:
                connection = sse.Connection(target, takes=20)
                stream = ask(connection, f"hi {i}")
                assert len(stream.wait_events(2)) >= 2, stream.body
                self.asked.append((f"hi {i}", stream))

    def end_well(self, target):
        """Each token once: as at a gateway to which nothing happens."""
        for pod in self.engines:
            if not pod.is_ending:
                faults(pod, gate=-1)
        got = [said(stream) for _, stream in self.asked]
        assert got == [said(ask(sse.Connection(target, takes=20), prompt))
                       for prompt, _ in self.asked]


class Clients:
    """Some that ask all the time, each time a gateway that is ready."""

    def __init__(self, kube, n=3):
        self.kube, self.wrong, self.texts, self.answers = kube, [], {}, 0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._ask, args=(i,))
                        for i in range(n)]
        for thread in self.threads:
            thread.start()

    def _ask(self, n):
        turn = 0
        while not self.over.is_set() and not self.wrong:
            turn += 1
            prompt = f"{n} {turn % 8}"
            try:
                got = said(ask(self.kube.connect("llmgw", turn), prompt))
            except Exception as e:
                got = e
            if got != self.texts.setdefault(prompt, got) \
                    or not isinstance(got, str):
                self.wrong.append((prompt, got))
            self.answers += 1

    def more(self):
        """Until each has had answers since this moment."""
        had = self.answers
        wait_for(lambda: self.wrong or self.answers > had + 6,
                 "answers", takes=6)

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        assert not self.wrong, self.wrong


@contextlib.contextmanager
def asking(kube):
    clients = Clients(kube)
    try:
        clients.more()
        yield clients
        clients.more()
    finally:
        clients.end()


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
    held = ask(sse.Connection(f"{pod.ip}:8080", takes=20), "hi")
    wait_for(lambda: metric(pod, "llmgw_held") == 1, "a held request")
    engines = [engine(kube, i) for i in range(3)]
    assert isinstance(said(held), str)
    kube.wait_ready(pod, *engines, takes=12)
    wait_routable([pod], 3)


@pytest.mark.first
def test_node_is_drained(kube):
    gateways, engines = ready(kube, gateways=2)
    streams = Streams(kube.endpoints("llmgw"), engines, 4)
    ends = [gateways[0].end_soon(), engines[0].end_soon()]
    target, = kube.endpoints("llmgw")
    wait_for(lambda: ("TERM", "nginx") in gateways[0].log
             and ("TERM", "adapter") in engines[0].log, "their end", takes=6)
    # Those of the engine that ends stay held, until they go on at the other.
    streams.end_well(target)
    for thread in ends:
        thread.join()
    for pod, order in ((gateways[0], ["nginx", "agent"]),
                       (engines[0], ["adapter", "engine", "agent"])):
        assert [who for what, who in pod.log if what == "TERM"] == order
        assert not [who for what, who in pod.log if what == "KILL"]
    wait_for(lambda: metric(gateways[1], "llmgw_in_flight") == 0,
             "counts of 0")


@pytest.mark.first
def test_rolling_update(kube):
    gateways, engines = ready(kube, gateways=1)
    with asking(kube) as clients:
        for ordinal in (1, 0):          # as a StatefulSet does
            engines[ordinal].end()
            engines[ordinal] = engine(kube, ordinal)
            kube.wait_ready(engines[ordinal], takes=12)
            clients.more()
        new = gateway(kube, "llmgw-gateway-new")    # as a Deployment does
        kube.wait_ready(new, takes=12)
        gateways[0].end()
        assert kube.endpoints("llmgw") == [f"{new.ip}:8080"]
    wait_for(lambda: metric(new, "llmgw_in_flight") == 0, "counts of 0")


@pytest.mark.parametrize("with_node", (False, True), ids=("pod", "node"))
def test_engine_dies(kube, with_node):
    (pod,), engines = ready(kube)
    target, = kube.endpoints("llmgw")
    streams = Streams([target], engines, 8)
    engines[0].die(with_node)
    streams.end_well(target)
    again = engine(kube, 0)             # the same name, another address
    kube.wait_ready(again, takes=12)
    wait_routable([pod], 2)


def test_container_that_is_killed_comes_again(kube):
    (pod, second), (one, other) = ready(kube, gateways=2)
    with asking(kube):
        for container in (one.mains[0], one.inits[0], pod.inits[0]):
            container.kill()
            wait_for(lambda: container.starts == 2 and container.alive(),
                     f"{container.name} again")
        kube.wait_ready(pod, second, one, other, takes=12)
        wait_routable([pod, second], 2)
