"""The key file: what nginx refuses to start with, and how it takes changes."""

import json
import os
import subprocess
import time

import pytest

from llmgw.fleet.ways_in import held
from llmgw.proc import place
from llmgw.proc.wait import PATIENCE, never, wait_for
from llmgw.speak import sse
from llmgw.speak.keyfile import TAKEN, ask, bearer, line

# A change is looked at after a second, and taken when it stood still for one.
UNTOUCHED = 2.5


def status(nginx, key):
    return ask(nginx.api, "/v1/models", headers=bearer(key)).status


def wait_status(nginx, key, status_, what):
    wait_for(lambda: status(nginx, key) == status_, what, TAKEN)


def place_of(keyfile, line):
    """As messages name it."""
    return f'"{keyfile.path}", line {line}:' if line else str(keyfile.path)


def told(nginx, path):
    """Errors about the file."""
    return [x for x in nginx.error_log.read_text().splitlines()
            if "[error]" in x and str(path) in x]


# --- at the start

WRONG = {
    "a word that is none": ("alice - rpm=5\nbob - color=red\n", 2),
    "a key in place of its hash": ("\nalice sk-llmgw-secret\n", 2),
    "one hash twice": (line("k", "a") + "\n" + line("k", "b") + "\n", 2),
    "two values": (line("k", "a", "rpm=5") + "\na - rpm=6\n", 2),
    "no key": ("# nothing\n", None),
    "an empty file": ("", None),
}


@pytest.mark.parametrize("what", WRONG)
def test_nginx_does_not_start_with_a_wrong_file(cluster, keyfile, what):
    cluster.allowed.append(r"\[emerg\]")
    text, at = WRONG[what]
    keyfile.write(text)
    nginx = cluster.nginx("llmgw_hash; server 127.0.0.1:1;", start=False,
                          http=keyfile.directive())
    out = nginx.command("-t")
    errors = [x for x in out.stderr.splitlines() if "[emerg]" in x]
    assert out.returncode != 0 and len(errors) == 1, out.stderr
    assert place_of(keyfile, at) in errors[0]
    assert "secret" not in out.stderr


def test_nginx_does_not_start_without_the_file(cluster, keyfile):
    cluster.allowed.append(r"\[emerg\]")
    nginx = cluster.nginx("llmgw_hash; server 127.0.0.1:1;", start=False,
                          http=keyfile.directive())
    out = nginx.command("-t")
    assert out.returncode != 0 and str(keyfile.path) in out.stderr
    keyfile.add("alice")
    assert nginx.command("-t").returncode == 0
    keyfile.path.unlink()
    keyfile.path.mkdir()
    out = nginx.command("-t")
    assert out.returncode != 0 and str(keyfile.path) in out.stderr


# --- later

@pytest.fixture
def nginx(gateway, keyfile):
    keyfile.add("first", key="sk-first")
    return gateway()


@pytest.mark.parametrize("what", [
    "an empty file", "a word that is none",
    *(pytest.param(x, marks=pytest.mark.soak) for x in WRONG
      if x not in ("an empty file", "a word that is none"))])
def test_wrong_file_leaves_the_old_keys(nginx, keyfile, what):
    text, at = WRONG[what]
    keyfile.write(text)
    error, = wait_for(lambda: told(nginx, keyfile.path), "an error", TAKEN)
    assert place_of(keyfile, at) in error
    assert status(nginx, "sk-first") == 200
    never(lambda: len(told(nginx, keyfile.path)) > 1, UNTOUCHED, "a second")
    key = keyfile.add("second")
    wait_status(nginx, key, 200, "the file to be right")
    assert status(nginx, "sk-first") == 200
    assert len(told(nginx, keyfile.path)) == 1


@pytest.mark.parametrize("how", ["gone", pytest.param(
    "a directory", marks=pytest.mark.soak), pytest.param(
    "a dead link", marks=pytest.mark.soak), "too large"])
def test_file_that_cannot_be_read_leaves_the_old_keys(nginx, keyfile, how):
    path = keyfile.path
    if how == "too large":
        with open(path, "a") as f:
            f.truncate(17 << 20)
    else:
        path.unlink()
    if how == "a directory":
        path.mkdir()
    elif how == "a dead link":
        path.symlink_to("nowhere")
    wait_for(lambda: told(nginx, path), "an error", TAKEN)
    assert status(nginx, "sk-first") == 200
    if how == "a directory":
        path.rmdir()
    keyfile.drop("first")
    key = keyfile.add("second")
    wait_status(nginx, key, 200, "the file to be back")
    assert status(nginx, "sk-first") == 401
    assert len(told(nginx, path)) == 1


def test_file_that_workers_may_not_read(cluster, gateway, keyfile):
    """The master reads it at the start, a worker later."""
    keyfile.add("first", key="sk-first")
    nginx = gateway(nginx={"user": "nobody nogroup"})
    keyfile.lines.append(line("sk-second", "second"))
    made = keyfile.path.with_name("closed")
    made.write_text("\n".join(keyfile.lines) + "\n")
    made.chmod(0o600)
    os.rename(made, keyfile.path)
    wait_for(lambda: told(nginx, keyfile.path), "an error", TAKEN)
    assert status(nginx, "sk-first") == 200
    keyfile.path.chmod(0o644)
    wait_status(nginx, "sk-second", 200, "the file to be readable")


@pytest.mark.soak
@pytest.mark.timed
def test_half_of_a_file_is_not_taken(nginx, keyfile):
    """Whoever writes it in place writes longer than a look, and pauses for
    less than that."""
    text = "".join(line(f"sk-{i}", f"n{i}", "rpm=1000") + "\n"
                   for i in range(30)) + line("sk-first", "first") + "\n"
    with open(keyfile.path, "r+", buffering=1) as f:
        f.truncate()
        for i in range(0, len(text), len(text) // 8):
            f.write(text[i:i + len(text) // 8])
            f.flush()
            time.sleep(.3)
            assert status(nginx, "sk-first") == 200
    wait_status(nginx, "sk-29", 200, "the whole file")
    assert not told(nginx, keyfile.path)


def test_links_are_followed_as_kubernetes_swaps_them(cluster, keyfile,
                                                     gateway):
    for name in ("one", "two"):
        (cluster.dir / name).mkdir()
        keyfile.path = cluster.dir / name / "keys"
        keyfile.lines = []
        keyfile.add(name, key=f"sk-{name}")
    keyfile.path = cluster.dir / "keys"
    (cluster.dir / "..data").symlink_to("one")
    keyfile.path.symlink_to("..data/keys")
    nginx = gateway()
    assert [status(nginx, f"sk-{n}") for n in ("one", "two")] == [200, 401]
    (cluster.dir / "..new").symlink_to("two")
    os.rename(cluster.dir / "..new", cluster.dir / "..data")
    wait_status(nginx, "sk-two", 200, "the other directory")
    assert status(nginx, "sk-one") == 401


def test_all_workers_take_it(gateway, keyfile):
    keyfile.add("first")
    nginx = gateway(nginx={"workers": 4})
    key = keyfile.add("second")

    def served():
        return sum(status(nginx, key) == 200 for _ in range(40))
    wait_for(lambda: served() == 40, "each connection to know it", TAKEN)
    keyfile.drop("second")
    wait_for(lambda: served() == 0, "none to know it", TAKEN)
    keyfile.write("nobody\n")
    wait_for(lambda: told(nginx, keyfile.path), "an error", TAKEN)
    never(lambda: len(told(nginx, keyfile.path)) > 1, UNTOUCHED, "a second")


def test_reload_takes_it_at_once_and_not_if_it_is_wrong(nginx, keyfile,
                                                        cluster):
    cluster.allowed.append(r"\[emerg\]")
    key = keyfile.add("second")
    nginx.reload()
    assert status(nginx, key) == 200
    keyfile.write("nobody\n")
    nginx.proc.popen.send_signal(1)
    wait_for(lambda: place_of(keyfile, 1) in nginx.log(), "the refusal")
    assert status(nginx, key) == 200


# --- the time of a key

def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ",
                         time.gmtime(time.time() + seconds))


def test_key_ends_by_the_clock_and_its_stream_goes_on(gateway, keyfile,
                                                      cluster):
    key = keyfile.add("alice", f"expires={at(4)}")
    nginx = gateway()
    with held(cluster, nginx, 4), sse.Connection(nginx.api) as c:
        r = c.request(sse.CHAT, sse.chat("long len=9;", stream=True),
                      headers=bearer(key))
        r.wait_events(1)
        assert r.status == 200
        wait_status(nginx, key, 401, "the key to expire")
        cluster.let_go()
        assert sse.result_of(r).finish_reason == ["stop"]
    assert nginx.error_log.read_text().count("expired") <= TAKEN


def keys(keyfile, *words, json_=False):
    out = subprocess.run(
        [place.binary("llmgwctl"), *["--json"] * json_, "keys", *words,
         "--file", str(keyfile.path)],
        capture_output=True, text=True, timeout=PATIENCE)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout) if json_ else out.stdout.strip()


def test_llmgwctl_adds_rotates_and_revokes(nginx, keyfile):
    one = keys(keyfile, "add", "carol", "models=mock*", "rpm=600")
    wait_status(nginx, one, 200, "the new key")
    two = keys(keyfile, "rotate", "carol", "--grace", "24h")
    wait_status(nginx, two, 200, "the rotated key")
    assert status(nginx, one) == 200
    rows = [r for r in keys(keyfile, "list", json_=True)
            if r["name"] == "carol"]
    assert len(rows) == 2
    keys(keyfile, "revoke", "carol")
    wait_status(nginx, two, 401, "the keys to be revoked")
    assert status(nginx, one) == 401
    assert status(nginx, "sk-first") == 200
    assert not told(nginx, keyfile.path)
    assert one not in keyfile.path.read_text()


# --- many

@pytest.mark.soak
def test_100000_keys_hold_nothing_up(nginx, keyfile):
    """They are taken, and each answer comes meanwhile."""
    many = [line(f"sk-{i}", f"n{i}") for i in range(100_000)]
    keyfile.write("\n".join(keyfile.lines + many) + "\n")
    wait_for(lambda: status(nginx, "sk-99999") == 200, "the last one", 10)
    assert status(nginx, "sk-0") == status(nginx, "sk-first") == 200
    assert not told(nginx, keyfile.path)
