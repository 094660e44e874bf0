"""What the product says and tests compare: one name for each fact, so that a
sentence is changed here, and not in thirty tests.

A word stands here if tests of two files look for it; what a single test is
about stands in that test.
"""

# Why a request was refused or ended: the trailer REASON, the label `reason`
# of metrics, and the code of an error of OpenAI's API.
REASON = "llmgw-reason"
QUEUE_FULL = "queue_full"
QUEUE_TIMEOUT = "queue_timeout"
QUEUE_TTL = "queue_ttl"
QUEUE_SHED = "queue_shed"
NO_REPLICAS = "no_replicas"
CIRCUITS_OPEN = "circuits_open"
TRIES_EXHAUSTED = "tries_exhausted"
NOT_RESUMABLE = "not_resumable"
CLIENT_GONE = "client_gone"
MODEL_NOT_FOUND = "model_not_found"
DEADLINE_EXCEEDED = "deadline_exceeded"

# Log lines of nginx.
AGENT_SILENT = "the agent is silent"
OPENED = "opened its circuit"
CLOSED = "closed its circuit"
STREAM_LOST = "stream lost"

# Log lines of replicas and agents.
SERVING = "serving"
CONTINUE_HERE = "continue here"
WAITING_FOR_SOCKET = "waiting for socket"
IS_DOWN = "is DOWN, was READY"
