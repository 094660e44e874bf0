"""A process that speaks to clients as vLLM, SGLang, llama.cpp's server or any
OpenAI server does, without a model: for adapters, fronts and clients.

  model.py    ids, text, and which id comes next
  answer.py   what one choice of an answer says, token by token
  run.py      one generation: its place, its pace, its faults
  ledger.py   what it has generated, in a file that outlives it
  faults.py   what goes wrong when a test wants it to
  wire.py     uvicorn, the log, and events as bytes
  openai.py   the API, as an unnamed server has it; the others differ from it
  vllm.py, sglang.py, llamacpp.py   what they do otherwise
  other.py    embeddings, /v1/responses, /v1/messages
  more.py     what is neither: rerankers, tokens, images, sound

Beside these, engines of other kinds, and what tests know of them:
  pyreplica.py, pyhttp.py, scripted.py   a foreign LLMReplica; HTTP/1.1; answers
                that a test writes itself
  liars.py      many engines in one process, which report another's model
  real.py       real engines in place of the mock
  report_connection.py   a replica's half of the report connection
  endpoints.py  what is no chat; budget.py: a device's memory, as a directory
"""
