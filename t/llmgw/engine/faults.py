"""What goes wrong when a test wants it to.

POST /mock/faults sets some of them for all requests from then on, running ones
included where that makes sense; null sets one back.
"""

import dataclasses


@dataclasses.dataclass
class Faults:
    token_delay: float = 0.0    # seconds before each token but the first
    first_delay: float = 0.0    # seconds of prefill
    hang: bool = False          # no token comes, /health says 200
    loads: str = None           # it has this model in place of its own
    lists: str = None           # it says that it has this one
    lose: str = None            # a prompt with this text gets no token, and is
                                # counted nowhere
    hang_steps: bool = False    # /tokenize and /detokenize get no answer
    pad_metrics: int = 0        # bytes of comments behind vLLM's figures
    deaf: bool = False          # it takes no connection, and keeps those that
                                # it has; SIGUSR1 lets its streams go
    gate: int = -1              # no further token of a stream than these
    hang_metrics: bool = False  # /metrics and /health get no answer either
    health: int = 200           # what /health says
    health_delay: float = 0.0   # seconds before that, of vLLM's and SGLang's
    status: int = 0             # generation is answered with this status
    times: int = -1             # that many times; -1: always
    retry_after: int = 0        # seconds, with that status
    die_at: int = -1            # SIGKILL behind that many tokens of a stream
    die_at_finish: bool = False     # SIGKILL behind a finish_reason
    plain_health: bool = False  # SGLang's generates nothing
    error_at: int = -1          # an error chunk in place of that token
    close_at: int = -1          # a clean close of TCP there, no last chunk
    reset_at: int = -1          # TCP RST there
    end_at: int = -1            # a clean end of HTTP there, no finish_reason
    finish: str = None          # this finish_reason in place of the right one
    no_done: bool = False       # the stream ends without [DONE]
    shape: str = None           # of the stream; see wire.py

    def set(self, **values):
        for name, value in values.items():
            if name not in FIELDS:
                raise ValueError(f"no fault is called {name}")
            setattr(self, name, FIELDS[name] if value is None else value)

    def takes(self):
        """Whether this request gets `status`."""
        if not self.status or self.times == 0:
            return False
        self.times -= self.times > 0
        return True


FIELDS = {f.name: f.default for f in dataclasses.fields(Faults)}
