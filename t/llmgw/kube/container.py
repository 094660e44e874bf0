"""A container of a rendered pod, with the programs of build/ for an image.

It runs the manifest's own command, in namespaces: as PID 1, on a root file
system that cannot be written, as the user of its security context, with its
volumes and nothing else of this machine but /usr and /etc.
"""

import os
import pathlib
import re
import shlex
import shutil
import signal
import time

from ..proc import place

PROGRAMS = ("llmgw", "llmgw-agent", "llmgw-replica", "llmgw-simreplica",
            "llmgwctl", "llmgw-lock", "llmgw-weights")
DEVICES = ("null", "zero", "random", "urandom", "full")

ROOTFS = """\
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs {root}
cd {root}
mkdir -p usr etc proc dev/shm tmp run/llmgw .{repo}
for link in bin sbin lib lib64; do ln -s usr/$link $link; done
mount -t overlay -o ro,lowerdir={image}/usr:/usr overlay usr
mount -t overlay -o ro,lowerdir={image}/etc:/etc overlay etc
mount --bind {hosts} etc/hosts
mount -t proc proc proc
mount --bind {repo} .{repo}
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
for node in {devices}; do : >dev/$node; mount --bind /dev/$node dev/$node; done
{volumes}
mount -o remount,ro,bind .
exec env -i {env} /usr/sbin/chroot . /usr/bin/setpriv {user} --no-new-privs \\
    --bounding-set=-all --inh-caps=-all -- {command}
"""


class Image:
    """What an image has beyond Debian: directories that lie over /usr and
    /etc."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        modules = self.dir / "usr/lib/nginx/modules"
        modules.mkdir(parents=True)
        shutil.copy(place.MODULE, modules / "ngx_http_llmgw_module.so")
        programs = self.dir / "usr/bin"
        programs.mkdir()
        for name in PROGRAMS:
            (programs / name).symlink_to(place.binary(name))
        for name in ("gossip", "nginx", "tls", "keys", "engine"):
            (self.dir / "etc/llmgw" / name).mkdir(parents=True)


def expanded(words, env):
    """$(NAME), as a kubelet replaces it."""
    return [re.sub(r"\$\((\w+)\)", lambda m: env.get(m[1], m[0]), str(word))
            for word in words]


def main_pid(proc):
    """The first process in the namespaces of an unshare(1), as this machine
    counts; None: it has ended."""
    path = f"/proc/{proc.pid}/task/{proc.pid}/children"
    try:
        pids = pathlib.Path(path).read_text().split()
    except OSError:
        return None
    return int(pids[0]) if pids else None


class Container:
    def __init__(self, pod, spec):
        self.pod, self.spec, self.name = pod, spec, spec["name"]
        self.is_sidecar = spec.get("restartPolicy") == "Always"
        self.proc = None
        self.starts = 0
        self.is_ready = self.is_up = False
        self.failed = self.missed = 0   # liveness, readiness, in a row

    def argv(self):
        env = self.pod.env(self.spec.get("env", []))
        return expanded([*self.spec.get("command", []),
                         *self.spec.get("args", [])], env)

    def script(self):
        pod, context = self.pod, self.spec.get("securityContext", {})
        root = pod.dir / f"root-{self.name}"
        root.mkdir(exist_ok=True)
        uid, gid = (context.get(k, 0) for k in ("runAsUser", "runAsGroup"))
        group = pod.spec.get("securityContext", {}).get("fsGroup", gid)
        volumes = [f"mkdir -p .{m['mountPath']}; mount --bind"
                   f" {pod.volumes[m['name']]} .{m['mountPath']}"
                   for m in self.spec.get("volumeMounts", [])]
        return ROOTFS.format(
            root=root, image=pod.kube.image.dir, hosts=pod.kube.hosts,
            repo=place.ROOT, devices=" ".join(DEVICES),
            volumes="\n".join(volumes), env="PATH=/usr/sbin:/usr/bin",
            user=f"--reuid={uid} --regid={gid} --groups={group}",
            command=shlex.join(self.argv()))

    def start(self):
        self.starts += 1
        self.failed = self.missed = 0
        self.began = time.monotonic()
        file = self.pod.dir / f"{self.name}.sh"
        file.write_text(self.script())
        cluster = self.pod.kube.cluster
        name = f"{self.pod.name}-{self.name}.{self.starts}"
        log = cluster.dir / f"{name}.log"
        log.touch()
        log.chmod(0o666)        # the user opens its standard output, too
        self.proc = cluster.run(name, [
            "nsenter", f"--net=/run/netns/{self.pod.net}", "unshare",
            "--mount", "--pid", "--fork", "--kill-child", "/bin/sh",
            str(file)])

    def age(self):
        return time.monotonic() - self.began

    def alive(self):
        return self.proc is not None and self.proc.alive()

    def send(self, sig):
        self.proc.told_to_end = True
        pid = main_pid(self.proc)
        if pid is not None:
            try:
                os.kill(pid, sig)
            except ProcessLookupError:
                pass

    def kill(self):
        """All of its processes: they are in its PID namespace."""
        self.send(signal.SIGKILL)
        self.proc.popen.wait()
