"""Clients.

  rpc.py       the messages of proto/, and gRPC calls on them
  rawh2.py     HTTP/2 by hand, for what a gRPC client would never send
  sse.py       a strict client of OpenAI's API over a raw socket
  clients.py   real clients of the APIs (t/openai), and curl
  callers.py   single requests, on connections of known workers
  askers.py, crowd.py, load.py, traffic.py   many at once
  generate.py  what a gateway asks a replica
  keyfile.py   keys, as clients show them; affinity.py: which keys are whose
"""
