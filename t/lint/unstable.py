"""The gate's own files: an unstable test is a defect with a date.

t/unstable.tsv is red when a test stands there twice, or for over UNSTABLE_DAYS;
its cause, once known, is written into its last field, and the line goes with
the commit that mends it.
"""

import datetime
import re

UNSTABLE = "t/unstable.tsv"
UNSTABLE_DAYS = 14
FIELDS = ["test", "commit", "seed", "first seen", "cause"]

SOAK = "t/soak.tsv"
SOAK_FIELDS = ["slice", "commit", "date", "minutes", "passed", "seed"]


def today():
    return datetime.date.today()


def check(tree):
    seen = set()
    for i, fields in _rows(tree, UNSTABLE, FIELDS):
        test, first = fields[0], fields[3]
        if test in seen:
            tree.say(UNSTABLE, i, f"{test} is unstable for the second time")
        seen.add(test)
        try:
            age = (today() - datetime.date.fromisoformat(first)).days
        except ValueError:
            tree.say(UNSTABLE, i, f"{first!r} is no date")
            continue
        if age > UNSTABLE_DAYS:
            tree.say(UNSTABLE, i, f"unstable for {age} days, the limit is"
                                  f" {UNSTABLE_DAYS}")
    for i, fields in _rows(tree, SOAK, SOAK_FIELDS):
        if not re.fullmatch(r"[0-9a-f]{7,40}", fields[1]):
            tree.say(SOAK, i, f"{fields[1]!r} is no commit")


def _rows(tree, path, names):
    for i, line in tree.lines(path):
        fields = line.split("\t")
        if i == 1 and fields != names:
            tree.say(path, i, f"the fields are {', '.join(names)}")
        elif i > 1 and len(fields) != len(names):
            tree.say(path, i, f"{len(fields)} fields, not {len(names)}")
        elif i > 1:
            yield i, fields
