"""A pool that is full, and callers in its queue."""

from .wait import wait_for

TWO_WORKERS = {"workers": 2}


def fleet(cluster, n, capacity, token_delay="20ms", pool="", **nginx):
    return cluster.fleet(n, nginx={"pool": pool, **nginx},
                         replica={"token_delay": token_delay,
                                  "max_capacity": capacity})


def line_up(nginx, callers, max_tokens, **fields):
    """Starts callers one by one; waits until each is in the queue."""
    before = nginx.waiting()
    for i, one in enumerate(callers):
        one.ask(f"waiter {i}", max_tokens, **fields)
        wait_for(lambda: nginx.waiting() == before + i + 1, 5,
                 f"waiter {i} in the queue", interval=0.002)
    return callers


def busy(caller, nginx, n, max_tokens):
    """n callers with a token each, which fill the whole pool."""
    callers = [caller(nginx).ask(f"busy {i}", max_tokens) for i in range(n)]
    for one in callers:
        one.wait_first()
    return callers


def held(cluster, caller, nginx, n, max_tokens=20):
    """The same, held until cluster.let_go()."""
    callers = busy(caller, nginx, n, max_tokens)
    cluster.hold()
    return callers


def check(callers, expect, prompts, n):
    for one, prompt in zip(callers, prompts):
        assert one.status == 0, (one.status, one.reason)
        assert one.tokens == expect(prompt, n)
