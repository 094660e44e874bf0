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
"""
