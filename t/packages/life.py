#!/usr/bin/python3
"""The packages from their installation to their purge: life.py ROOT.

In the namespaces and the root directory that fresh.sh has prepared, where no
service manager runs.  Says PASSED or FAILED of each fact.
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from llmgw.pages.facts import Facts  # noqa: E402
from llmgw.proc import wait  # noqa: E402

LIMIT_S = 30
ROOT = pathlib.Path(sys.argv[1])
OURS = ROOT / "home/somebody/llmgw"
MODULE = "libnginx-mod-http-llmgw"
SITE = """\
upstream llm { llmgw_members /run/llmgw/members; }
server {
    listen 127.0.0.1:8080;
    include snippets/llmgw.conf;
    location /held { proxy_pass http://127.0.0.1:8081; }
}
"""
fact = Facts()


def sh(command):
    return subprocess.run(
        ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
         "DEBIAN_FRONTEND=noninteractive", "chroot", str(ROOT), "sh", "-c",
         command], text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def soon(predicate, what):
    return wait.within(LIMIT_S, predicate, what, interval=0.1)


def works(command, what):
    done = sh(command)
    if not fact(done.returncode == 0, what):
        print(done.stdout)
    return done.stdout


def another(deb, version, **fields):
    """A package like that file's but for its version and other fields; the
    path of it within ROOT."""
    tree = ROOT / "tmp" / f"tree-{version}"
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    control = tree / "DEBIAN/control"
    lines = control.read_text().splitlines()
    for name, value in {"Version": version, **fields}.items():
        lines = [line for line in lines if not line.startswith(f"{name}:")]
        lines.insert(1, f"{name}: {value}")
    control.write_text("\n".join(lines) + "\n")
    made = ROOT / "home/somebody" / f"{deb.name.split('_')[0]}_{version}.deb"
    subprocess.run(["dpkg-deb", "-b", tree, made], check=True,
                   stdout=subprocess.DEVNULL)
    sh(f"rm -r /tmp/{tree.name}")
    return f"/{made.relative_to(ROOT)}"


def version(deb):
    return subprocess.run(["dpkg-deb", "-f", deb, "Version"], check=True,
                          text=True, stdout=subprocess.PIPE).stdout.strip()


def newer(deb, n):
    return another(deb, f"{version(deb)}+{n}")


def our_deb(name):
    return next(OURS.glob(f"{name}_*.deb"))


def nginx_deb():
    return next((ROOT / "mirror").glob("nginx_*.deb"))


def master():
    return int((ROOT / "run/nginx.pid").read_text() or 0)


def is_there(pid):
    """And no zombie: nobody waits for orphans here."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


def is_outdated(pid):
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    return "ngx_http_llmgw_module.so (deleted)" in maps


# --- what happens

def foreign_nginx():
    """Before ours are there: an nginx whose modules are built otherwise."""
    deb = another(nginx_deb(), "9.99", Provides="nginx-abi-9.99-1")
    said = sh("apt-get install --simulate -y"
              f" {deb} /{our_deb(MODULE).relative_to(ROOT)}")
    fact(said.returncode != 0 and "nginx-abi-" in said.stdout,
         "apt refuses the module beside an nginx with another ABI")


def install():
    works(f"apt-get install -y /{OURS.relative_to(ROOT)}/*.deb",
          "apt installs all packages")
    works("for p in agent replica lock weights; do"
          " /usr/sbin/llmgw-$p --version || exit 1; done", "daemons are there")
    works("id llmgw && test -d /run/llmgw", "a user and a folder are made")
    (ROOT / "etc/nginx/conf.d/llm.conf").write_text(SITE)
    works("nginx -t", "nginx takes the snippet")
    works("/etc/init.d/nginx start", "nginx is started")
    soon(master, "its pid")
    fact("llmgw_module.so" in
         pathlib.Path(f"/proc/{master()}/maps").read_text(),
         "it has the module without a line of its own")
    with urllib.request.urlopen("http://127.0.0.1:8080/status") as got:
        fact(json.load(got)["version"] == version(our_deb(MODULE)),
             "which is the package's version")


def replaced(debs, what):
    """Installs them; the output, and whether a new master has the module."""
    old = master()
    said = works(f"apt-get install -y {' '.join(debs)}", what)
    soon(lambda: master() not in (0, old) or "goes on" in said, "a master")
    return said, master() != old and not is_outdated(master())


def upgrade():
    old = master()
    _, is_new = replaced([newer(our_deb(MODULE), "n1")], "the module alone")
    fact(is_new, "a new master has loaded it")
    soon(lambda: not is_there(old), "the old master to end")

    old = master()
    _, is_new = replaced([newer(our_deb(MODULE), "n2"),
                          newer(nginx_deb(), "n2")], "nginx and module at once")
    fact(is_new, "a new master has loaded both")
    soon(lambda: not is_there(old), "the old master to end")


def upgrade_with_a_broken_configuration():
    old = master()
    site = ROOT / "etc/nginx/conf.d/llm.conf"
    site.write_text(SITE.replace("listen", "nonsense"))
    said = works(f"apt-get install -y {newer(our_deb(MODULE), 'n3')}",
                 "the module, and a configuration that is not valid")
    fact(master() == old and "refuses the configuration" in said,
         "nginx goes on, and a line says so")
    site.write_text(SITE)
    works("invoke-rc.d nginx upgrade", "it is told when that is mended")
    fact(not is_outdated(master()), "and has the new one")
    soon(lambda: not is_there(old), "the old master to end")


class Held(http.server.BaseHTTPRequestHandler):
    asked, go = threading.Event(), threading.Event()

    def do_GET(self):
        self.asked.set()
        self.go.wait(LIMIT_S)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def upgrade_twice_while_a_stream_runs():
    server = http.server.HTTPServer(("127.0.0.1", 8081), Held)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    got = []
    client = threading.Thread(target=lambda: got.append(urllib.request.urlopen(
        "http://127.0.0.1:8080/held").status))
    client.start()
    Held.asked.wait(LIMIT_S)
    first = master()
    _, is_new = replaced([newer(our_deb(MODULE), "n4")],
                         "the module, while a stream runs")
    fact(is_new and is_there(first), "both masters are there")
    said = works(f"apt-get install -y {newer(our_deb(MODULE), 'n5')}",
                 "and the next version, while it still runs")
    fact("no new master has started" in said and is_outdated(master()),
         "nginx goes on, and a line says so")
    Held.go.set()
    client.join()
    fact(got == [204], "the stream ends well")
    soon(lambda: not is_there(first), "the old master to end")
    works("invoke-rc.d nginx upgrade", "then it is told")
    fact(not is_outdated(master()), "and has the newest")


def remove():
    own = ROOT / "etc/llmgw/agent.conf"
    own.write_text("id gw1\n")
    for path in ("var/lib/llmgw/state", "run/llmgw/members"):
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text("x")
    sh("rm /etc/nginx/conf.d/llm.conf")
    names = " ".join(d.name.split("_")[0] for d in OURS.glob("*.deb"))
    works(f"apt-get remove -y {names}", "apt removes all packages")
    fact(own.exists() and (ROOT / "var/lib/llmgw/state").exists()
         and not (ROOT / "usr/sbin/llmgw-agent").exists(),
         "programs are gone, options and state remain")
    works(f"dpkg --purge {names}", "dpkg purges them")
    left = [str(p.relative_to(ROOT)) for top in ("etc", "run", "usr", "var")
            for p in (ROOT / top).rglob("*llmgw*") if "/apt/" not in str(p)]
    fact(left == ["etc/llmgw"] and [*own.parent.iterdir()] == [own],
         "nothing is left but what an administrator has made")
    if not fact.all[-1]:
        print(left, os.listdir(ROOT / "etc/llmgw"))


for part in (foreign_nginx, install, upgrade,
             upgrade_with_a_broken_configuration,
             upgrade_twice_while_a_stream_runs, remove):
    part()
sys.exit(fact.end())
