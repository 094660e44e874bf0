"""A machine that can die: a network namespace with one cable to this one.

When the cable is cut, nothing that was sent arrives, and nothing that is sent
later; nobody gets a reset, or an ICMP message that the machine is not there.
To kill the processes there before would tell its peers that they ended.
"""

import os
import random
import subprocess


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Machine:
    """.address: its own; .near: this machine's, seen from there."""

    def __init__(self):
        n = random.SystemRandom().randrange(1 << 15)
        self.name = f"llmgw-{os.getpid()}-{n}"
        self.cable = f"llmgw{n}"
        net = f"198.{18 + (n >> 14)}.{n >> 6 & 255}."   # for tests (RFC 2544)
        first = n % 64 * 4
        self.near, self.address = (f"{net}{first + i}" for i in (1, 2))
        _ip("netns", "add", self.name)
        try:
            self._lay()
        except BaseException:
            self.close()
            raise

    def _lay(self):
        _ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0",
            "netns", self.name)
        _ip("-n", self.name, "addr", "add", f"{self.address}/30", "dev",
            "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", self.name, "link", "set", device, "up")
        _ip("addr", "add", f"{self.near}/30", "dev", self.cable)
        _ip("link", "set", self.cable, "up")

        # A neighbour that does not answer would be reported as unreachable.
        mac = subprocess.run(
            ["ip", "-n", self.name, "-br", "link", "show", "eth0"], check=True,
            capture_output=True, text=True).stdout.split()[2]
        _ip("neigh", "replace", self.address, "lladdr", mac, "dev", self.cable,
            "nud", "permanent")

    def inside(self, argv):
        """The command that runs this one there, in the same process."""
        return ["nsenter", f"--net=/run/netns/{self.name}", *argv]

    def cut(self):
        _ip("-n", self.name, "link", "set", "eth0", "down")

    def lose(self, *what, answer="blackhole"):
        """What comes from this machine and fits these words of `ip rule` is
        lost there, with no answer, or with another one of ip-rule(8)."""
        _ip("-n", self.name, "rule", "add", "priority", "9", "table", "local")
        _ip("-n", self.name, "rule", "del", "priority", "0")
        _ip("-n", self.name, "rule", "add", "priority", "1", "from",
            self.near, *what, answer)

    def close(self):
        """When its processes have ended."""
        subprocess.run(["ip", "link", "del", self.cable], capture_output=True)
        _ip("netns", "del", self.name)


def unavailable():
    """Why there can be no machine here; None: there can."""
    try:
        Machine().close()
    except FileNotFoundError:
        return "there is no program ip"
    except subprocess.CalledProcessError as e:
        return f"no network namespaces: {e.stderr.strip()}"
    return None
