"""A network of pods: a bridge in a network namespace, and a namespace for each
pod.  A cable leads from the bridge to this machine, so that a test reaches all
pods; nothing is routed, so this machine stays as it is."""

import os
import random
import subprocess


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Node:
    def __init__(self):
        n = random.SystemRandom().randrange(512)
        self.name = f"llmgw-{os.getpid()}-{n}"
        self.cable = f"llmgwb{n}"
        self.net = f"198.{18 + (n >> 8)}.{n & 255}."     # for tests (RFC 2544)
        self.pods = []
        self.made = 0
        _ip("netns", "add", self.name)
        try:
            self._lay()
        except BaseException:
            self.close()
            raise

    def _lay(self):
        _ip("-n", self.name, "link", "add", "br0", "type", "bridge")
        _ip("-n", self.name, "link", "set", "br0", "up")
        _ip("link", "add", self.cable, "type", "veth", "peer", "name", "up0",
            "netns", self.name)
        _ip("-n", self.name, "link", "set", "up0", "master", "br0", "up")
        _ip("addr", "add", f"{self.net}254/24", "dev", self.cable)
        _ip("link", "set", self.cable, "up")

    def pod(self):
        """(namespace, address) of a new one; an address comes once."""
        self.made += 1
        name, address = f"{self.name}-{self.made}", f"{self.net}{self.made}"
        _ip("netns", "add", name)
        self.pods.append(name)
        _ip("link", "add", "eth0", "netns", name, "type", "veth", "peer",
            "name", f"pod{self.made}", "netns", self.name)
        _ip("-n", self.name, "link", "set", f"pod{self.made}", "master", "br0",
            "up")
        _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", name, "link", "set", device, "up")
        return name, address

    def cut(self, name):
        """A pod's network: nothing comes or goes any more, no end of a
        connection either."""
        _ip("-n", name, "link", "set", "eth0", "down")

    def close(self):
        """When its processes have ended."""
        subprocess.run(["ip", "link", "del", self.cable], capture_output=True)
        for name in (*self.pods, self.name):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def unavailable():
    """Why there can be none here; None: there can."""
    try:
        node = Node()
        node.pod()
        node.close()
    except FileNotFoundError:
        return "there is no program ip"
    except subprocess.CalledProcessError as e:
        return f"no network namespaces: {e.stderr.strip()}"
    return None
