"""Engines with their adapters in one, in this process: each has a model, and
reports it or another one.  Many of them cost little."""

import json

import grpc

from ..speak import rpc
from .report_connection import Reporter
from .scripted import Target, scripted

DENIED = '{"error":{"message":"no such model","type":"NotFoundError",' \
         '"param":"model","code":"model_not_found"}}'


class Engine:
    """asked: the models of its requests that it had."""

    def __init__(self, cluster, id, model):
        self.cluster, self.id = cluster, id
        self.model, self.asked, self.denied = model, [], 0
        self.port = cluster.ports.take()
        self.target = Target(self.port).target
        self.server = scripted(self.port, self.generate, 16)
        self.server.__enter__()
        cluster.closers.append(lambda: self.server.__exit__(*[None] * 3))
        self.agent = cluster.agent(id, grpc=self.target,
                                   join=[cluster.gateway.gossip])
        self.up()

    def up(self):
        self.told = Reporter(self.cluster, self.agent, models=[self.model],
                             max_capacity=0)

    def down(self):
        self.told.close()

    def load(self, model):
        """It has another model, and says so."""
        self.model = model
        self.told.say(models=[model])

    def claim(self, model):
        """It says that it has that one."""
        self.told.say(models=[model])

    def generate(self, request, context):
        asked = request.openai
        name = asked.engine_model or json.loads(asked.body)["model"]
        if name != self.model:
            self.denied += 1
            yield rpc.pb.GenerateResponse(failure=rpc.pb.Failure(
                status=404, body=DENIED.encode(), denies_model=True))
            context.abort(grpc.StatusCode.NOT_FOUND, "no such model")
        self.asked.append(name)
        for i in range(request.max_tokens):
            yield rpc.pb.GenerateResponse(token=f"{name} ",
                                          is_final=i + 1 == request.max_tokens)
