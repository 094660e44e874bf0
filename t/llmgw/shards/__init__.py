"""Shards: processes that compute some of a model's layers.

  replica.py  slices of a model, shards, and the replica whose layers they are
  session.py  a session of Shard.Forward, message by message
  bad.py      a shard that lies
  told.py     a shard whose words a test tells
"""
