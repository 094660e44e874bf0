"""A pool that is full, and callers in its queue."""

from ..proc.wait import wait_for

TWO_WORKERS = {"workers": 2}


def fleet(cluster, n, capacity, token_delay="1ms", pool="", **nginx):
    return cluster.fleet(n, nginx={"pool": pool, **nginx},
                         replica={"token_delay": token_delay,
                                  "max_capacity": capacity})


def line_up(nginx, callers, max_tokens, **fields):
    """Starts callers one by one; waits until each is in the queue."""
    before = nginx.waiting()
    for i, one in enumerate(callers):
        one.ask(f"waiter {i}", max_tokens, **fields)
        wait_for(lambda: nginx.waiting() == before + i + 1,
                 f"waiter {i} in the queue", interval=0.002)
    return callers


def busy(caller, nginx, n, max_tokens):
    """n callers with a token each, which fill the whole pool."""
    callers = [caller(nginx).ask(f"busy {i}", max_tokens) for i in range(n)]
    for one in callers:
        one.wait_first()
    return callers


def fill(cluster, nginx, callers, max_tokens):
    """Each of them takes a place, and has it until cluster.let_go()."""
    cluster.hold()
    before = nginx.in_flight()
    for i, one in enumerate(callers):
        one.ask(f"busy {i}", max_tokens)
    wait_for(lambda: nginx.in_flight() == before + len(callers),
             what="a place for each")
    return callers


def held(cluster, caller, nginx, n, max_tokens=20):
    """n callers that fill the whole pool until cluster.let_go()."""
    return fill(cluster, nginx, [caller(nginx) for _ in range(n)], max_tokens)


def check(callers, expect, prompts, n):
    for one, prompt in zip(callers, prompts):
        assert one.status == 0, (one.status, one.reason)
        assert one.tokens == expect(prompt, n)
