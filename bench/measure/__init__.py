"""The parts of bench/run.py.

bench.py     what every part gets
machine.py   processors, processes, their CPU, memory, sockets, system calls
peers.py     the proxies that are compared, each with its configuration
stand.py     replicas and proxies of one scenario, and one run of the client
paired.py    rows that compare: proxies alternate, ratios within a round
alone.py     rows about llmgw only, or about what happens to streams
instructions.py   instructions of a request and a token, by callgrind
micro.py     bench/micro/*.c
goals.py     the goal of each row
doors.py     TLS and keys beside none of them: bench/doors.py
tables.py    the tables of docs/benchmarks.md
plots.py     plots, where a figure has an axis

policies.py, policy_page.py   the parts of bench/policies.py: one run, its page
"""
