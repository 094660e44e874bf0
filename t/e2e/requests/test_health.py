"""grpc.health.v1 at the gateway reports the state of the pool."""

import pytest

from llmgw.proc.wait import wait_for
from llmgw.speak import rawh2, rpc


def test_serving_with_one_replica_of_two(cluster, client):
    nginx = cluster.fleet(2)
    c = client(nginx)
    assert c.check() == "SERVING"
    cluster.replicas["r1"].kill()
    wait_for(lambda: nginx.routable() == ["r2"], "r1 to be out")
    assert c.check() == "SERVING"
    cluster.replicas["r2"].kill()
    wait_for(lambda: nginx.routable() == [], "r2 to be out")
    assert c.check() == "NOT_SERVING"
    cluster.replicas["r1"].start()
    wait_for(lambda: c.check() == "SERVING", "SERVING again")


def test_not_serving_without_members(cluster, client):
    cluster.agent("gw", "gateway")
    nginx = cluster.nginx()
    assert client(nginx).check() == "NOT_SERVING"


@pytest.mark.soak
def test_serving_over_static_lines(cluster, client):
    nginx = cluster.static([cluster.replica("a")])
    assert client(nginx).check() == "SERVING"


def test_garbage_as_a_health_check(cluster, client):
    nginx = cluster.fleet(1)
    with rawh2.RawH2(nginx.target) as h:
        for body in (b"", b"\x00\x00", rawh2.frame(b"\xff\xff")):
            answer = h.wait(h.request(rpc.CHECK, body))
            assert answer.grpc_status == 3, vars(answer)
    assert client(nginx).check() == "SERVING"


@pytest.mark.soak
def test_replica_serves_its_health_itself(cluster, client):
    replica = cluster.replica("a")
    assert client(replica).check() == "SERVING"
    replica.faults(reject_all=True)
    assert client(replica).check() == "SERVING"
