"""The end-to-end harness: real processes on free ports, one temp dir a test.

  proc/     one process: ports, logs, waiting, its end, what the machine takes
  fleet/    nginx, agents and replicas together, and the checks at a test's end
  speak/    clients: gRPC, OpenAI's API, HTTP/2 by hand, one or many
  engine/   engines without a model; engine_mock.py and engine_tree.py run them
  model/    small random models, and weights in a service
  shards/   a model whose layers other processes compute
  standby/  groups of engines of which one is active
  sim/      the simulator beside BLIS and beside real processes
  pages/    the dashboard, documents and what tools print
  kube/     pods of the chart, run as a kubelet does
"""
