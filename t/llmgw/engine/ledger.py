"""What a double has generated, in a file that outlives it: a line a token.

A line is written before the token is sent, `made WHOSE`, or `unseen WHOSE` if
the connection has ended by then.  WHOSE is what the prompt says by `by=NAME;`,
or `-`.  So after a kill the file has each token that anybody can have seen.
"""

import os
import re

_BY = re.compile(r"\bby=(\w+);")


def whose(prompt):
    found = _BY.search(prompt)
    return found[1] if found else "-"


class Ledger:
    """path: None, and nothing is written."""

    def __init__(self, path):
        self.file = path and os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def made(self, whose, is_seen=True):
        if self.file:
            word = "made" if is_seen else "unseen"
            os.write(self.file, f"{word} {whose}\n".encode())
