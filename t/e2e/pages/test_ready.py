"""llmgw_ready: whether a load balancer should send requests to this nginx."""

import http.client

from llmgw.proc.wait import wait_for
from llmgw.speak import rawh2

READY = "location = /ready { llmgw_ready; }"


def ask(nginx, path="/ready", method="GET", **headers):
    c = http.client.HTTPConnection("127.0.0.1", nginx.status_port, timeout=10)
    c.request(method, path, headers={name.replace("_", "-"): value
                                     for name, value in headers.items()})
    answer = c.getresponse()
    answer.body = answer.read()
    c.close()
    return answer


def code(*args, **headers):
    return ask(*args, **headers).status


def test_ready_is_what_grpc_health_says(cluster, client):
    nginx = cluster.fleet(2, nginx={"server": READY})
    c = client(nginx)

    def ready():
        said = code(nginx)
        assert (c.check() == "SERVING") == (said == 200)
        return said == 200
    assert ready()
    cluster.replicas["r1"].kill()
    wait_for(lambda: nginx.routable() == ["r2"], "r1 to be out")
    assert ready()
    cluster.replicas["r2"].kill()
    wait_for(lambda: nginx.routable() == [], "r2 to be out")
    assert not ready()
    cluster.replicas["r1"].start()
    wait_for(lambda: nginx.routable() == ["r1"], "r1 to be back")
    assert ready()


def test_one_ready_upstream_is_enough_or_the_one_that_is_named(cluster):
    nginx = cluster.nginx(
        "llmgw_members @dir@/no-members;", http="""
        upstream one { llmgw_hash; server 127.0.0.1:1; }
        upstream off { llmgw_hash; server 127.0.0.1:1 down; }
        upstream other { server 127.0.0.1:1; }""",
        server=READY + "".join(f"location = /ready/{name} "
                               f"{{ llmgw_ready {name}; }}"
                               for name in ("llm", "one", "off")))
    assert code(nginx) == 200
    assert [code(nginx, f"/ready/{name}")
            for name in ("llm", "one", "off")] == [503, 200, 503]


def test_none_is_ready(cluster):
    nginx = cluster.nginx("llmgw_members @dir@/no-members;", server=READY,
                          http="upstream other { server 127.0.0.1:1; }")
    assert code(nginx) == 503


def test_the_answer_has_no_content_and_is_for_all(cluster):
    nginx = cluster.static(
        [], hash="prefix=64;\n server 127.0.0.1:1", http="""
        set_real_ip_from 127.0.0.1;
        real_ip_header X-Test-Peer;
        upstream off { llmgw_hash; server 127.0.0.1:1 down; }""",
        server=READY + """
        error_page 503 /page;
        location = /off { llmgw_ready off; }
        location = /closed { llmgw_ready; deny 192.0.2.7; }""")
    elsewhere = {"X-Test-Peer": "192.0.2.7"}
    for path, status in (("/ready", 200), ("/off", 503)):
        for method in ("GET", "HEAD"):
            for more in ({}, elsewhere, {"X-Forwarded-For": "192.0.2.7"}):
                answer = ask(nginx, path, method, **more)
                assert (answer.status, answer.body) == (status, b"")
                assert answer.headers["content-length"] == "0"
                assert answer.headers["cache-control"] == "no-store"
    with rawh2.RawH2(nginx.target) as h:
        answer = h.wait(h.request("/off", method="GET", content_type=None))
        assert (answer.headers[":status"], answer.data) == ("503", b"")
    assert code(nginx, "/ready", "POST") == 405
    assert code(nginx, "/closed", **elsewhere) == 403
    assert code(nginx, "/closed") == 200
