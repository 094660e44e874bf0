"""Pages answer clients of this host, unless the location says access=any."""

import base64
import http.client
import re
import socket

import pytest

from llmgw.proc.ports import outer_address
from llmgw.speak import rawh2

PAGES = ("status", "metrics", "dashboard")
PATHS = tuple("/" + page for page in PAGES)

# The peer's address is that of X-Test-Peer, as with realip.
REALIP = ("set_real_ip_from 127.0.0.1; set_real_ip_from unix:;"
          " real_ip_header X-Test-Peer;")
ELSEWHERE = {"X-Test-Peer": "192.0.2.7"}


def locations(lines="", param=""):
    return "".join(f"location = /{page} {{ llmgw_{page}{param}; {lines} }}\n"
                   for page in PAGES[1:])


@pytest.fixture
def gateway(cluster):
    def make(server, **options):
        return cluster.static([], hash="prefix=64;\n server 127.0.0.1:1",
                              http=REALIP, server=server, **options)
    return make


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host)


def ask(nginx, path, method="GET", connection=None, **headers):
    """The status of the answer, and its body."""
    headers = {name.replace("_", "-"): value
               for name, value in {"Host": "x", **headers}.items()}
    c = connection or http.client.HTTPConnection("127.0.0.1",
                                                 nginx.status_port, timeout=10)
    c.request(method, path, headers=headers)
    answer = c.getresponse()
    body = answer.read()
    c.close()
    return answer.status, body


def code(*args, **headers):
    return ask(*args, **headers)[0]


def told(nginx):
    return re.findall(r'llmgw: "(llmgw_\w+)" answers 403 to ([^;]+);',
                      nginx.error_log.read_text())


def test_only_clients_of_this_host_see_a_page(gateway):
    nginx = gateway(locations())
    for peer, answer in (
            ("127.0.0.1", 200), ("127.8.9.10", 200), ("::1", 200),
            ("::ffff:127.0.0.1", 200), ("192.0.2.7", 403), ("128.0.0.1", 403),
            ("::2", 403), ("2001:db8::1", 403), ("::ffff:192.0.2.7", 403)):
        for path in PATHS:
            assert code(nginx, path, X_Test_Peer=peer) == answer, peer
        with rawh2.RawH2(nginx.target) as h:
            sid = h.request("/status", method="GET", content_type=None,
                            headers=[("x-test-peer", peer)])
            assert h.wait(sid).headers[":status"] == str(answer), peer


@pytest.mark.skipif(not outer_address(), reason="only loopback addresses")
def test_another_address_of_this_host_is_not_local(gateway, cluster):
    port = cluster.ports.take()
    nginx = gateway(f"listen {outer_address()}:{port};" + locations())
    for path in PATHS:
        outer = http.client.HTTPConnection(outer_address(), port, timeout=10)
        assert code(nginx, path, connection=outer) == 403


def test_a_unix_socket_is_of_this_host(gateway):
    nginx = gateway("listen unix:@dir@/pages.sock;" + locations())
    path = str(nginx.dir / "pages.sock")
    for page in PATHS:
        assert code(nginx, page, connection=Unix(path)) == 200
        assert code(nginx, page, connection=Unix(path), **ELSEWHERE) == 403


def test_what_came_through_a_proxy_is_not(gateway):
    nginx = gateway(locations())
    for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        for path in PATHS:
            assert code(nginx, path, **{header: "127.0.0.1"}) == 403
    assert told(nginx)[0][1].startswith("a request that came through a proxy")


def test_the_proxy_protocol_is_a_proxy(gateway, cluster):
    port = cluster.ports.take()
    nginx = gateway(f"listen 127.0.0.1:{port} proxy_protocol;" + locations())
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b"PROXY TCP4 127.0.0.1 127.0.0.1 5 6\r\n"
                     b"GET /metrics HTTP/1.0\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 403")
    assert told(nginx) == [("llmgw_metrics",
                            "a connection with the PROXY protocol")]


def test_access_any_answers_everybody(gateway):
    nginx = gateway(locations(param=" access=any"))
    for path in PATHS[1:]:
        assert code(nginx, path, **ELSEWHERE) == 200
        assert code(nginx, path, X_Forwarded_For="192.0.2.7") == 200
    assert code(nginx, "/status", **ELSEWHERE) == 403
    nginx.configure(server=locations(param=" access=local"))
    nginx.reload()
    assert code(nginx, "/metrics", **ELSEWHERE) == 403
    assert code(nginx, "/metrics") == 200


def test_of_the_dashboard_beside_its_path(gateway):
    nginx = gateway("location = /dashboard { llmgw_dashboard /s access=any; }")
    status, body = ask(nginx, "/dashboard", **ELSEWHERE)
    assert (status, b'content="/s"' in body) == (200, True)
    nginx.configure(
        server="location = /dashboard { llmgw_dashboard access=any; }")
    nginx.reload()
    status, body = ask(nginx, "/dashboard", **ELSEWHERE)
    assert (status, b'content="status"' in body) == (200, True)


def test_a_key_with_admin_opens_pages_and_no_other_does(gateway, key_file):
    path, admin, client = key_file(ops="admin", alice="")
    nginx = gateway(
        f"llmgw_keys {path} zone=keys:1m;" + locations()
        + "location = /any { llmgw_metrics access=any; }"
        + "location = /denied { llmgw_metrics; deny all; }"
        + "location = /off { llmgw_metrics; llmgw_keys off; }")

    def basic(key):
        return base64.b64encode(f"me:{key}".encode()).decode()

    for given, answer in (
            ({}, 401), ({"Authorization": "Bearer nobodys"}, 401),
            ({"Authorization": "Digest x"}, 401), ({"x_api_key": ""}, 401),
            ({"Authorization": f"Bearer {client}"}, 403),
            ({"Authorization": f"Bearer {admin}", "x_api_key": client}, 401),
            ({"Authorization": f"Bearer {admin}"}, 200),
            ({"Authorization": f"Basic {basic(admin)}"}, 200),
            ({"Authorization": f"Basic {basic(client)}"}, 403),
            ({"x_api_key": admin}, 200)):
        for page in PATHS:
            assert code(nginx, page, **ELSEWHERE, **given) == answer, given
    assert code(nginx, "/any", **ELSEWHERE) == 200
    for page in ("/denied", "/off"):
        assert code(nginx, page, **ELSEWHERE, x_api_key=admin) == 403

    # A client of this host needs none, and a browser is asked for one.
    assert code(nginx, "/status") == 200
    c = http.client.HTTPConnection("127.0.0.1", nginx.status_port, timeout=10)
    c.request("GET", "/metrics", headers=ELSEWHERE)
    answer = c.getresponse()
    assert answer.headers["WWW-Authenticate"] == 'Basic realm="llmgw"'
    c.close()

    log = nginx.error_log.read_text()
    assert log.count('add "admin" to that key\'s line') == len(PATHS)
    assert admin not in log and client not in log
    _, metrics = ask(nginx, "/metrics")
    assert dict(re.findall(
        rb'llmgw_auth_failures_total{zone="keys",reason="(\w+)"} (\d+)',
        metrics)) == {b"missing": b"4", b"malformed": b"6", b"unknown": b"3",
                      b"expired": b"0", b"conflict": b"3"}


def test_nginxs_rules_restrict_and_do_not_open(gateway, cluster):
    """They are asked before the page is: whatever lets a request pass, it is
    still one of another host."""
    (cluster.dir / "users").write_text("ops:{PLAIN}secret\n")
    basic = {"Authorization": "Basic b3BzOnNlY3JldA=="}
    auth = f"auth_basic x; auth_basic_user_file {cluster.dir}/users;"
    server = ""
    for name, param, lines in (
            ("allowed", "", "allow all;"),
            ("satisfied", "", "satisfy any; allow all; " + auth),
            ("denied", "access=any", "deny all;"),
            ("denied-here", "", "deny all;"),
            ("some", "access=any", "allow 192.0.2.7; deny all;"),
            ("either", "access=any", "satisfy any; deny all; " + auth),
            ("both", "access=any", "allow 192.0.2.7; deny all; " + auth)):
        server += f"location = /{name} {{ llmgw_metrics {param}; {lines} }}\n"
    nginx = gateway(server)
    for path, remote, known, here in (
            ("/allowed", 403, 403, 200), ("/satisfied", 403, 403, 200),
            ("/denied", 403, 403, 403), ("/denied-here", 403, 403, 403),
            ("/some", 200, 200, 403), ("/either", 401, 200, 401),
            ("/both", 401, 200, 403)):
        assert (code(nginx, path, **ELSEWHERE),
                code(nginx, path, **ELSEWHERE, **basic),
                code(nginx, path)) == (remote, known, here), path


def test_each_location_says_once_in_a_worker_what_to_write(gateway):
    nginx = gateway(locations() + "location = /again { llmgw_metrics; }")
    for _ in range(5):
        for path in (*PATHS, "/again"):
            assert code(nginx, path, **ELSEWHERE) == 403
    assert sorted(told(nginx)) == sorted(
        (f"llmgw_{page}", "a client on another host")
        for page in (*PAGES, "metrics"))
    assert 'add "access=any" to it' in nginx.error_log.read_text()
    nginx.reload()
    assert code(nginx, "/again", **ELSEWHERE) == 403
    assert len(told(nginx)) == 5


def test_a_page_within_another_answer_is_for_the_same_clients(gateway):
    nginx = gateway("""
        location = /around {
            ssi on;
            ssi_types *;
            return 200 '<!--#include virtual="/status" -->behind it';
        }""")
    assert ask(nginx, "/around")[1].startswith(b'{"schema":1')
    status, body = ask(nginx, "/around", **ELSEWHERE)
    assert status == 200 and b"schema" not in body and b"403" in body


def test_blocks_within_the_location_are_the_same_page(gateway):
    nginx = gateway("""
        location = /metrics {
            llmgw_metrics access=any;
            if ($http_x_test_peer) { set $seen 1; }
            limit_except GET { deny 192.0.2.7; allow all; }
        }
        location = /dashboard {
            llmgw_dashboard /elsewhere;
            if ($arg_x) { set $seen 1; }
        }""")
    assert code(nginx, "/metrics", **ELSEWHERE) == 200
    assert code(nginx, "/metrics", "POST", **ELSEWHERE) == 403
    assert code(nginx, "/metrics", "POST") == 405
    status, body = ask(nginx, "/dashboard?x=1")
    assert status == 200 and b'content="/elsewhere"' in body
    assert code(nginx, "/dashboard?x=1", **ELSEWHERE) == 403


def test_a_refused_body_does_not_disturb_the_connection(gateway):
    nginx = gateway(locations())
    c = http.client.HTTPConnection("127.0.0.1", nginx.status_port, timeout=10)
    for _ in range(2):
        c.request("POST", "/metrics", body=b"x" * 100000, headers=ELSEWHERE)
        answer = c.getresponse()
        assert (answer.status, b"403" in answer.read()) == (403, True)
    c.request("GET", "/metrics")
    assert c.getresponse().status == 200
    c.close()
