"""llmgw-weights under many engines that come, go and break off at random."""

import os

import pytest

from llmgw.model.weights import SEALS, WeightsService, id_of, memfd
from llmgw.proc.seed import rng
from llmgw.proc.wait import wait_for

ENGINES = 5
RIGHT, WRONG = b"r" * 8192, b"w" * 8192


class Engine:
    """A connection, and the messages that it got."""

    def __init__(self, storm, name):
        self.storm = storm
        self.link = storm.service.client(name)
        self.writes = False

    def ask(self):
        self.link.hello(self.storm.draw(["ro", "rw_or_ro", "rw_or_ro"]),
                        self.storm.draw([0, 1, 20, 60000]))

    def put(self):
        self._with(RIGHT, self.link.put)

    def put_badly(self):
        self._with(RIGHT, lambda fd: self.link.put(fd, self.storm.draw(
            [0, 1, len(RIGHT) + 1])))

    def commit(self):
        self.link.commit()

    def abort(self):
        self.link.send(cmd="abort")
        self.writes = False

    def get(self):
        self.link.send(cmd="get")

    def adopt(self):
        self._with(RIGHT, lambda fd: self.link.adopt(fd, id_of(RIGHT)), SEALS)

    def adopt_badly(self):
        data, seals = self.storm.draw([(WRONG, SEALS), (RIGHT, 0)])
        self._with(data, lambda fd: self.link.adopt(fd, id_of(RIGHT)), seals)

    def leave(self):
        self.storm.gone(self)

    def break_off(self):
        """Within a line that has a descriptor."""
        self._with(RIGHT, lambda fd: self.link.send_bytes(b'{"cmd":"pu', [fd]))
        self.storm.gone(self)

    def _with(self, data, send, seals=0):
        fd = memfd(data, seals=seals)
        send(fd)
        os.close(fd)

    def listen(self):
        """All that the service has said until now."""
        self.link.send(cmd="state")
        while "ok" not in (got := self.link.line()):
            self._heard(got)

    def _heard(self, got):
        kind = got["type"]
        if kind == "granted" and got["mode"] == "rw":
            self.writes = True
            self.storm.nwriters += 1
        elif kind in ("granted", "committed", "adopted"):
            self.writes = False
            assert got["id"] == id_of(RIGHT)
        elif kind == "slot":
            os.close(self.link.fds.pop(0))
        elif kind == "aborted" or got.get("reason") == "hash_failed":
            self.writes = False


class Storm:
    """Five engines and one service."""

    def __init__(self, service, commits):
        self.service, self.random = service, rng("weights")
        self.engines, self.names, self.nwriters = [], 0, 0
        self.deeds = [Engine.ask] * 6 + [Engine.put] * 4 + [
            Engine.put_badly, Engine.abort, Engine.get, Engine.adopt_badly,
            Engine.leave, Engine.leave, Engine.break_off]
        if commits:
            self.deeds += [Engine.commit] * 2 + [Engine.adopt]

    def draw(self, choices):
        return self.random.choice(choices)

    def gone(self, engine):
        self.engines.remove(engine)
        engine.link.close()

    def step(self):
        while len(self.engines) < ENGINES:
            self.names += 1
            self.engines.append(Engine(self, f"e{self.names}"))
        engine = self.draw(self.engines)
        self.draw(self.deeds)(engine)
        wait_for(self._has_one_writer, "one writer at most")

    def _has_one_writer(self):
        """Of two, one may not have heard yet that it is none any more."""
        for one in self.engines:
            one.listen()
        return sum(one.writes for one in self.engines) <= 1

    def end(self):
        for engine in list(self.engines):
            self.gone(engine)


def descriptors(service):
    return len(os.listdir(f"/proc/{service.proc.pid}/fd"))


@pytest.mark.parametrize("commits", [
    pytest.param(False, marks=pytest.mark.soak), True])
def test_engines_that_come_and_go_leave_nothing_behind(cluster, commits):
    service = WeightsService(cluster)
    before = descriptors(service)
    storm = Storm(service, commits)
    for _ in range(600):
        storm.step()
    assert commits or storm.nwriters > 3
    storm.end()
    service.wait_roles()

    # It serves like a fresh service.
    with service.client("last") as last:
        if last.hello("rw_or_ro").granted() == "rw":
            assert service.memfds() == 0
            last.write(RIGHT)
        assert last.get()[0]["id"] == id_of(RIGHT)
    service.wait_roles()
    wait_for(lambda: descriptors(service) == before + 1,
             "the weights and no other descriptor")
    assert service.memfds() == 1
