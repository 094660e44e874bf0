"""One process of a test, and the machine that it runs on.

  place.py       where the products are and how they were built
  process.py     a process: its log, its end, and that nothing is left of it
  daemon.py      a process that can be started again
  reaper.py      ends the processes of a harness that was killed
  ports.py       ports below 32768 that no other process takes
  wait.py        waiting for facts; contention.py: time that the machine took
  limit.py       no test may hang; share.py: several runs share the tests
  seed.py        the seed of what a test draws
  logs.py        what no log may hold; memory.py, shm.py: what processes share
  preload.py     libraries that come before the C library's functions
  late.py        programs and tests that are slow, on request
  machine.py     a machine that can die: a network namespace
  fresh.py       a fresh Debian; booted.py: one with its systemd; packaged.py:
                 what runs in one from packages
"""
