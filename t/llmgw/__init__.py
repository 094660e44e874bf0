"""The end-to-end harness: real processes on free ports, one temp dir a test.

  place.py    where the products are and how they were built
  ports.py    ports below 32768 that nobody else takes
  proc.py     one process: its log, its end, and that nothing is left of it
  nginx.py    a configuration file and the nginx that runs it
  cluster.py  replicas, agents and nginx together; the checks at a test's end
  rpc.py      the messages, and gRPC calls on them
  callers.py  single requests, on connections of known workers
  load.py     many streams at once, in a separate process
  homes.py    which keys are whose, by asking
  pyreplica.py  a foreign engine: grpcio serving LLMReplica
  clients.py  real clients of the API: t/openai/, curl
  daemon.py   one that can be started again
  real.py     real engines in place of the mock
  certs.py    certificates, and who signs them
  pyhttp.py   an engine that speaks HTTP/1.1
  engine_mock.py, engine/  vLLM, SGLang, llama.cpp's server, without a model
  shards/     a model whose layers other processes compute
  standby/    groups of engines of which one is active
  sse.py      a strict client of OpenAI's API, over a raw socket
  rawh2.py    HTTP/2 by hand, for what a gRPC client would never send
  wait.py     waiting for facts
"""
