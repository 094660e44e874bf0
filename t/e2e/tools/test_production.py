"""What docs/production.md shows works as it stands there: two engines' hosts
less one, and a gateway, with keyring, certificates and keys."""

import json
import os
import re
import resource
import shlex
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest

from llmgw.fleet.nginx import TOKEN_TIMEOUT, sanitizer_env
from llmgw.proc import place
from llmgw.proc.wait import PATIENCE, wait_for

PAGE = (place.ROOT / "docs" / "production.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)
SNIPPET = place.ROOT / "packaging" / "nginx" / "llmgw.conf"


def shown(has):
    """The one block of the page that has this."""
    [code] = [code for _, code in BLOCKS if has in code]
    return code


class Host:
    """Paths and addresses of the page, as they are here."""

    def __init__(self, cluster):
        self.cluster, self.dir, self.ports = cluster, cluster.dir, {}
        for name in ("etc/tls", "etc/ssl", "run", "lib", "log", "usage"):
            (self.dir / name).mkdir(parents=True)
        os.chmod(self.dir / "usage", 0o777)
        os.chmod(self.dir / "log", 0o777)

    def here(self, text):
        for path, name in (("/etc/llmgw", "etc"), ("/etc/ssl", "etc/ssl"),
                           ("/run/llmgw", "run"), ("/var/log/llmgw", "log"),
                           ("/var/lib/llmgw-usage", "usage"),
                           ("/var/lib/llmgw", "lib")):
            text = text.replace(path, str(self.dir / name))
        text = text.replace("snippets/llmgw.conf", str(SNIPPET))
        text = text.replace("/usr/sbin/llmgw", f"{place.BUILD}/llmgw")
        return re.sub(r"\b10\.0\.0\.\d+:\d+", lambda m: self.address(m[0]),
                      text)

    def address(self, shown):
        if shown not in self.ports:
            self.ports[shown] = self.cluster.ports.take()
        return f"127.0.0.1:{self.ports[shown]}"

    def write(self, name, text):
        path = self.dir / "etc" / name
        path.write_text(self.here(text))
        return path

    def shell(self, text, where):
        done = subprocess.run(
            ["/bin/sh", "-ec", self.here(text)], cwd=self.dir / where,
            env={**os.environ, "PATH": f"{place.BUILD}:{os.environ['PATH']}"},
            text=True, capture_output=True, timeout=30)
        assert done.returncode == 0, (text, done.stderr)
        return done.stdout


@pytest.fixture
def host(cluster):
    return Host(cluster)


def pki(host):
    host.shell(shown("certs init"), "etc")
    made = host.dir / "etc" / "pki"
    for path in made.glob("*.*"):
        if path.name != "ca.key":
            path.rename(host.dir / "etc" / "tls" / path.name)
    for end in ("crt", "key"):      # of clients' TLS: any will do
        (host.dir / "etc" / "ssl" / f"llm.{end}").write_bytes(
            (host.dir / "etc" / "tls" / f"gw2.{end}").read_bytes())


def gateway(host):
    agent = shown("role       gateway")
    host.cluster.run("gw1", [place.binary("llmgw-agent"), "-c",
                             host.write("gateway.conf", agent)])


def replica(host):
    """r1, before a double of vLLM."""
    engine = host.cluster.engine("e1", "vllm")
    tls = host.dir / "etc" / "tls"
    host.write("r1.tls", f"tls-cert {tls}/r1.crt\ntls-key {tls}/r1.key\n"
                         f"tls-client-ca {tls}/ca.crt\n")
    command = shown("LLMGW_COMMAND").strip().partition("=")[2].replace(
        "http://127.0.0.1:8000", engine.url)
    conf = host.write("r1.conf", shown("role       replica"))
    host.cluster.run("r1", [place.binary("llmgw-agent"), "-c", conf,
                            *shlex.split(host.here(command))])


def configuration(host, *blocks):
    """A file for nginx, with blocks of the page: those of http, and that of the
    top of the file, if it is among them."""
    top = [b for b in blocks if "events" in b] or ["events {}\n"]
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    main = top[0].replace("65536", str(min(files, 65536)))
    http = host.here("\n".join(b for b in blocks if b not in top))
    host.port = host.cluster.ports.take()
    http = re.sub(r"listen (443|8080)", f"listen 127.0.0.1:{host.port}", http)
    paths = "".join(f"{kind}_temp_path {host.dir}/{kind};\n" for kind in (
        "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf = host.dir / "nginx.conf"
    conf.write_text(
        f"load_module {place.MODULE};\nuser root;\ndaemon off;\n{main}"
        f"pid {host.dir}/nginx.pid;\nerror_log {host.dir}/error.log;\n"
        f"http {{\naccess_log off;\n{TOKEN_TIMEOUT}\n{paths}{http}}}\n")
    return [place.NGINX, "-p", str(host.dir), "-c", str(conf), "-e",
            str(host.dir / "error.log")]


def test_pool_and_snippet(host):
    argv = configuration(host, shown("members; }\nserver"))
    done = subprocess.run([*argv, "-t"], capture_output=True, text=True,
                          env={**os.environ, **sanitizer_env()})
    assert done.returncode == 0 and "[warn]" not in done.stderr, done.stderr


class Client:
    def __init__(self, host):
        self.base = f"https://127.0.0.1:{host.port}"
        self.tls = ssl.create_default_context()
        self.tls.check_hostname = False
        self.tls.verify_mode = ssl.CERT_NONE

    def ask(self, path, body=None, **headers):
        """Status and answer; (None, None) for a port without a listener."""
        request = urllib.request.Request(self.base + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE,
                                        context=self.tls) as got:
                return got.status, got.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return None, None


def test_a_fleet_with_keyring_certificates_and_keys(host):
    pki(host)
    add = shown("llmgwctl keys add").replace(
        "keys add", f"keys add --file {host.dir}/etc/keys")
    key = host.shell(add, "etc").strip()
    gateway(host)
    replica(host)
    host.cluster.run("nginx", configuration(
        host, shown("llmgw_ssl on"), shown("llmgw_keys /etc"),
        shown("worker_processes")), env=sanitizer_env())
    client = Client(host)
    wait_for(lambda: client.ask("/ready")[0] == 200, "r1 to be ready", takes=6)

    body = json.dumps({"model": "mock-model", "max_tokens": 3, "messages": [
        {"role": "user", "content": "Hello"}]}).encode()
    path = "/v1/chat/completions"
    assert client.ask(path, body)[0] == 401
    status, answer = client.ask(path, body, **{
        "Authorization": f"Bearer {key}", "Content-Type": "application/json"})
    assert status == 200, answer
    assert json.loads(answer)["usage"]["completion_tokens"] == 3
    usage = host.dir / "log" / "usage.log"
    wait_for(lambda: usage.exists() and '"alice"' in usage.read_text(),
             "a record of what alice used")
