"""The seed of whatever a test draws: LLMGW_SEED, or always the same.

make soak draws it, and prints it; what it found comes again with that seed.
"""

import os
import random

SEED = int(os.environ.get("LLMGW_SEED", "1"))


def rng(salt=""):
    """A generator of a test's own; salt: of what it draws."""
    return random.Random(f"{SEED} {salt}")
