"""What a kubelet does with rendered pods, by Kubernetes' documents: in which
order containers start and end, probes, preStop, TERM, grace period, KILL.

Pods have a network of their own (node.py), and containers run their own
commands (container.py).  Probes come more often than the manifests say, since a
test waits for them.  What controllers do, a test does: it starts and ends pods.
"""

import base64
import os
import signal
import threading
import time
import urllib.request

from ..proc.wait import wait_for, within
from ..speak import rpc, sse
from .container import Container, Image
from .node import Node

EVERY_S = 0.1               # a probe
PROBE_S = 5                 # what its answer may take on a busy machine
LIVE_S = 10                 # from a start, no liveness probe
LEAST_S = 2                 # what a sidecar gets beyond the grace period
GROUP = 65532


def _answers(probe, pod, container):
    """Whether a probe, or a handler, succeeds."""
    if "tcpSocket" in probe:
        return pod.connects(pod.port(container, probe["tcpSocket"]["port"]))
    if "grpc" in probe:
        try:
            with rpc.Client(f"{pod.ip}:{probe['grpc']['port']}") as client:
                return client.check() == "SERVING"
        except Exception:
            return False
    what = probe["httpGet"]
    url = f"http://{pod.ip}:{pod.port(container, what['port'])}{what['path']}"
    try:
        with urllib.request.urlopen(url, timeout=PROBE_S) as answer:
            return answer.status < 400
    except OSError:
        return False


class Pod:
    def __init__(self, kube, name, spec, labels):
        self.kube, self.name, self.spec = kube, name, spec
        self.labels = labels
        self.net, self.ip = kube.node.pod()
        self.dir = kube.cluster.dir / f"{name}-{self.ip.rpartition('.')[2]}"
        self.dir.mkdir()
        self.volumes = {v["name"]: self._volume(v) for v in spec["volumes"]}
        self.inits = [Container(self, c)
                      for c in spec.get("initContainers", [])]
        self.mains = [Container(self, c) for c in spec["containers"]]
        self.containers = self.inits + self.mains
        self.log = []               # (what, container), as it happened
        self.is_ending = False
        self.thread = threading.Thread(target=self._run, daemon=True)

    # what it has

    def env(self, given):
        fields = {"metadata.name": self.name, "status.podIP": self.ip}
        return {e["name"]: e.get("value") or fields[
            e["valueFrom"]["fieldRef"]["fieldPath"]] for e in given}

    def port(self, container, port):
        if isinstance(port, int):
            return port
        return next(p["containerPort"] for p in container.spec["ports"]
                    if p["name"] == port)

    def connects(self, port):
        from socket import create_connection
        try:
            create_connection((self.ip, port), PROBE_S).close()
        except OSError:
            return False
        return True

    def _volume(self, volume):
        """Its directory.  fsGroup may read what root owns."""
        path = self.dir / volume["name"]
        path.mkdir()
        files, mode = {}, 0o440
        if "secret" in volume:
            files = self.kube.secrets[volume["secret"]["secretName"]]
            mode = volume["secret"]["defaultMode"] | 0o040
        elif "configMap" in volume:
            name = volume["configMap"]["name"]
            files = self.kube.find("ConfigMap", name)["data"]
        for name, text in files.items():
            (path / name).write_text(text)
            os.chown(path / name, 0, GROUP)
            (path / name).chmod(mode)
        os.chown(path, 0, GROUP)
        path.chmod(0o2775)
        return path

    # its life

    def start(self):
        self.thread.start()
        return self

    def _run(self):
        try:
            for container in self.inits:
                self._begin(container)
                probe = container.spec.get("startupProbe")
                while probe and not self.is_ending \
                        and not _answers(probe, self, container):
                    self._restart(container)
                    time.sleep(EVERY_S)
                if not self.is_ending:
                    self.log.append(("started", container.name))
            for container in self.mains:
                self._begin(container)
            while not self.is_ending:
                for container in self.containers:
                    self._look(container)
                time.sleep(EVERY_S)
        except Exception as e:      # told by the test that waits for the pod
            self.log.append((repr(e), "kubelet"))

    def _begin(self, container):
        with self.kube.lock:
            if not self.is_ending:
                self.log.append(("start", container.name))
                container.start()

    def _restart(self, container):
        """Whether it had ended, and is started again."""
        if container.alive() or self.is_ending:
            return False
        container.is_ready = False
        container.proc.told_to_end = True       # it is known
        self.log.append((f"ended {container.proc.popen.returncode}",
                         container.name))
        self._begin(container)
        return True

    def _look(self, container):
        if self.is_ending or self._restart(container):
            return
        probe = container.spec.get("readinessProbe")
        if not probe or _answers(probe, self, container):
            container.is_ready, container.missed = True, 0
        else:
            container.missed += 1
            container.is_ready &= container.missed < probe["failureThreshold"]
        live = container.spec.get("livenessProbe")
        if live and container.age() > LIVE_S \
                and not _answers(live, self, container):
            container.failed += 1
            if container.failed >= live["failureThreshold"]:
                self.log.append(("unhealthy", container.name))
                container.kill()
        elif live:
            container.failed = 0

    def is_ready(self):
        return not self.is_ending and len(self.log) > 0 and all(
            c.alive() and c.is_ready for c in self.containers)

    # its end

    def end(self):
        """Deletion, to the last container.  Not ready from now on."""
        with self.kube.lock:
            self.is_ending = True
        self.log.append(("end", "pod"))
        deadline = time.monotonic() + \
            self.spec["terminationGracePeriodSeconds"]
        stops = [threading.Thread(target=self._stop, args=(c, deadline))
                 for c in self.mains]
        for thread in stops:
            thread.start()
        for thread in stops:
            thread.join()
        for container in reversed(self.inits):
            self._stop(container, deadline)
        self.thread.join()
        self.kube.forget(self)

    def _stop(self, container, deadline):
        if not container.alive():
            return
        hook = container.spec.get("lifecycle", {}).get("preStop")
        if hook:
            time.sleep(hook["sleep"]["seconds"])
        self.log.append(("TERM", container.name))
        container.send(signal.SIGTERM)
        left = max(deadline - time.monotonic(), LEAST_S)
        try:
            within(left, lambda: not container.alive(), container.name)
            self.log.append((f"ended {container.proc.popen.returncode}",
                             container.name))
        except AssertionError:
            self.log.append(("KILL", container.name))
            container.kill()

    def end_soon(self):
        """end(), meanwhile; returns the thread."""
        with self.kube.lock:
            self.is_ending = True
        thread = threading.Thread(target=self.end)
        thread.start()
        return thread

    def die(self, with_node=False):
        """KILL, all at once.  with_node: and no packet says so."""
        with self.kube.lock:
            self.is_ending = True
        if with_node:
            self.kube.node.cut(self.net)
        for container in self.containers:
            if container.alive():
                container.kill()
        self.thread.join()
        self.kube.forget(self)


class Kubernetes:
    """objects: rendered.  secrets: {name: {entry: text}}"""

    def __init__(self, cluster, objects, secrets):
        self.cluster, self.objects, self.secrets = cluster, objects, secrets
        self.lock = threading.RLock()
        self.node = Node()
        self.hosts = cluster.dir / "hosts"
        self.hosts.write_text("")
        self.image = Image(cluster.dir / "image")
        self.pods = []

    def find(self, kind, name):
        return next(o for o in self.objects if o["kind"] == kind
                    and o["metadata"]["name"] == name)

    def pod(self, kind, owner, name):
        """A new one of a Deployment or a StatefulSet; its containers start."""
        template = self.find(kind, owner)["spec"]["template"]
        pod = Pod(self, name, template["spec"], template["metadata"]["labels"])
        with self.lock:
            self.pods.append(pod)
            self._resolve()
        return pod.start()

    def forget(self, pod):
        with self.lock:
            self.pods.remove(pod)
            self._resolve()

    def _resolve(self):
        """The names of headless services, which have pods that are not ready,
        too."""
        lines = ["127.0.0.1 localhost"]
        for o in self.objects:
            spec = o.get("spec", {})
            if o["kind"] == "Service" and spec.get("clusterIP") == "None":
                lines += [f"{pod.ip} {o['metadata']['name']}"
                          for pod in self.pods
                          if spec["selector"].items() <= pod.labels.items()]
        self.hosts.write_text("\n".join(lines) + "\n")

    def endpoints(self, service):
        """Where its ready pods listen."""
        spec = self.find("Service", service)["spec"]
        port = spec["ports"][0]["targetPort"]
        with self.lock:
            return [f"{pod.ip}:{pod.port(pod.mains[0], port)}"
                    for pod in self.pods if pod.is_ready()
                    and spec["selector"].items() <= pod.labels.items()]

    def connect(self, service, n):
        """To one of its ready pods, by turns.  One that begins to end meanwhile
        still accepts until its preStop is over."""
        targets = self.endpoints(service)
        assert targets, f"no pod of {service} is ready"
        return sse.Connection(targets[n % len(targets)], takes=20)

    def wait_ready(self, *pods, takes=6):
        wait_for(lambda: all(pod.is_ready() for pod in pods),
                 f"{[p.name for p in pods]} to be ready", takes=takes)

    def close(self):
        for pod in list(self.pods):
            pod.die()
        self.node.close()


def keyring():
    return f"* {base64.b64encode(os.urandom(32)).decode()}\n"
