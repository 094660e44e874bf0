"""An OCI image layout, and a container of it, as a runtime would start it:
namespaces of its own, its user, a root file system that cannot be written, and
a network that is loopback alone."""

import hashlib
import json
import pathlib
import shlex
import subprocess

from .container import DEVICES, main_pid

ROOTFS = """\
set -e
mount --make-rprivate /
ip link set lo up
cd {root}
mount --bind . .
cd {root}
mount -t proc proc proc
mount -t tmpfs -o mode=1777 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
mkdir -m 1777 dev/shm
ln -s /proc/self/fd dev/fd
for node in {devices}; do : >dev/$node; mount --bind /dev/$node dev/$node; done
mount -o remount,ro,bind .
exec env -i {env} /usr/bin/setpriv --no-new-privs \\
    /usr/sbin/chroot --userspec={user} --groups={groups} . {command}
"""


class Layout:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        index = json.loads((self.path / "index.json").read_text())
        [described] = index["manifests"]
        self.digest = described["digest"]
        self.manifest = json.loads(self.blob(self.digest))
        self.config = json.loads(self.blob(self.manifest["config"]["digest"]))

    def blob(self, digest):
        kind, _, name = digest.partition(":")
        data = (self.path / "blobs" / kind / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == name, digest
        return data

    def bytes(self):
        """What is fetched: layers as they are compressed."""
        return sum(layer["size"] for layer in self.manifest["layers"])

    def unpack(self, directory):
        for layer in self.manifest["layers"]:
            subprocess.run(["tar", "-xzpf", "-", "-C", directory],
                           input=self.blob(layer["digest"]), check=True)

    def command(self, words):
        """What `docker run IMAGE WORDS` starts."""
        return [*self.config["config"].get("Entrypoint", []), *words]


class Run:
    """A container."""

    def __init__(self, cluster, name, layout, root, command):
        self.uid, self.gid = layout.config["config"]["User"].split(":")
        file = cluster.dir / f"{name}.sh"
        file.write_text(ROOTFS.format(
            root=root, devices=" ".join(DEVICES),
            env=shlex.join(layout.config["config"]["Env"]),
            user=f"{self.uid}:{self.gid}", groups=self.gid,
            command=shlex.join(command)))
        self.proc = cluster.run(name, [
            "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
            "/bin/sh", str(file)])

    def main_pid(self):
        return main_pid(self.proc)

    def beside(self, *argv):
        """A command of this machine, in the container's network."""
        return ["nsenter", f"--net=/proc/{self.main_pid()}/ns/net", *argv]

    def enter(self, *argv):
        """A command of the image in the container, as of `docker exec`."""
        return subprocess.run(
            ["nsenter", f"--target={self.main_pid()}", "--mount", "--pid",
             "--net", "--root", "--wd", f"--setuid={self.uid}",
             f"--setgid={self.gid}", *argv],
            capture_output=True, text=True, timeout=20)
