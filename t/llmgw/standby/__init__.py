"""Standby groups: of the engines of a group one is active, others wait warm.

  group.py        a lock service, and engines with agents
  fleet.py        fleets with groups, whose version can be changed
  told.py         members whose states a test tells; no lock service
  reporter.py     a member that says what it is told, and is no engine
  takeover.py     how long each part of a takeover took
  lock.py         the lock service, and a client of it
  lock_engine.py  a process that holds a group, and is no engine
  schedule.py     kills and stops in random order, and what they led to
"""
