"""Models of a few kilobytes, and their weights.

  gguf.py, gguf_read.py   writes a random model; reads a file's head
  llama.py                talks to a replica of the engine `llama`
  weights.py              llmgw-weights, and a client of it
  weights_writer.py       an engine that loads, and is killed by the test
"""
