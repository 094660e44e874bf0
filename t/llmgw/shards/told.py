"""A shard whose words a test tells.

Its agent is real, and hears of it from a Reporter; so gossip, the segment,
llmgwctl and nginx are what they are in production. Nobody computes anything.
"""

from ..engine.report_connection import Reporter

WEIGHTS = "0123456789abcdef" * 4
OTHER_WEIGHTS = "fedcba9876543210" * 4


class ToldShard:
    """One member; what it computes are layers first .. last.  fields: of the
    report beside `shard`, as active_requests; agent: options of its agent."""

    def __init__(self, cluster, id, first, last, layers=16, model="toy",
                 weights=WEIGHTS, numerics="n1", memory=1 << 30, loaded=True,
                 zone=None, agent=None, **fields):
        self.id = id
        self.shard = {"model": model, "weights": weights,
                      "numerics": numerics, "first": first, "last": last,
                      "layers": layers, "memory": memory, "loaded": loaded}
        if zone is not None:
            self.shard["zone"] = zone
        self.name = f"{model}:{first}-{last}@{id}"
        self.agent = cluster.agent(
            id, "shard", grpc=f"127.0.0.1:{cluster.ports.take()}",
            **(agent or {}))
        self.reporter = Reporter(cluster, self.agent, shard=self.shard,
                                 **{"max_capacity": 64, **fields})

    def say(self, shard=None, **fields):
        """More or other words; shard: of what it computes."""
        if shard is not None:
            self.shard = {**self.shard, **shard}
            fields["shard"] = self.shard
        self.reporter.say(**fields)
        return self

    def hang(self):
        """It stands still, and its agent lives."""
        self.reporter.silence()

    def die(self):
        """Its process ends without a goodbye."""
        self.reporter.close()
