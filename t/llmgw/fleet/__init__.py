"""Nginx, agents and replicas of one test.

  cluster.py     all of them together; the checks at a test's end
  nginx.py       a configuration file and the nginx that runs it
  supervised.py  an agent that runs its replica; launched.py: an adapter that
                 starts its engine; launcher.py: `llmgw up`
  updates.py     fleets whose version can be changed
  policies.py    the policies under which a test runs
  segment.py     a members segment as it lies in its file
  waiters.py     a pool that is full, and callers in its queue
  books.py       what was billed, generated and read
  native.py, ways_in.py   locations: native passes; one of each way in
  certs.py, relay.py      certificates; a relay that can go silent
  words.py       sentences of the product that several tests compare
"""
