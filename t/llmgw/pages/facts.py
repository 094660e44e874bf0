"""Facts of a scene that a script plays: each is a line, PASSED or FAILED."""


class Facts:
    def __init__(self):
        self.all = []

    def __call__(self, true, what):
        """Whether it is true."""
        self.all.append(bool(true))
        print("PASSED" if true else "FAILED", what, flush=True)
        return self.all[-1]

    def end(self):
        """The exit status."""
        failed = self.all.count(False)
        print(f"{len(self.all) - failed} passed, {failed} failed", flush=True)
        return 0 if self.all and not failed else 1
