"""Where keys go.

A `server` line stands on the ring by its address, and its port is another one
in each run.  So nobody knows beforehand which keys are whose, nor whether some
keys are at each of some replicas: six keys are all at one of two in three runs
of a hundred.  A test that needs keys of each asks until it has them.
"""


def homes(ask, n, limit=1000):
    """Asks for the keys 0, 1, ... until they went to n places.

    ask(key) says where it went.  Returns {place: its keys}.
    """
    found = {}
    for key in range(limit):
        found.setdefault(ask(key), []).append(key)
        if len(found) == n:
            return found
    raise AssertionError(f"{limit} keys went to {list(found)}, not to {n}")
