"""What bench/run.py is made of.

machine.py   processors, processes, their CPU, memory, sockets, system calls
peers.py     the proxies that are compared, each with its configuration
stand.py     replicas and proxies of one scenario, and one run of the client
paired.py    rows that compare: rounds in turns, ratios within a round
alone.py     rows that look at llmgw, or at what becomes of streams
instructions.py   what a request and a token take, by callgrind
micro.py     bench/micro/*.c
goals.py     what each row should be, and the tables
plots.py     pictures of the figures that have an axis
"""
