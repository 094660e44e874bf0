"""What a benchmark writes into a page of docs/: the part between its marks.

All else of the page is written by hand, and stays.
"""

import pathlib

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def replaced(text, name, part):
    """The page's text with that part in place of the one that it has."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if (text.count(begin), text.count(end)) != (1, 1) \
            or text.index(begin) > text.index(end):
        raise SystemExit(f"the page has not one {begin} ... {end}")
    before, rest = text.split(begin)
    return f"{before}{begin}\n{part}\n{end}{rest.split(end)[1]}"


def write(name, part, page="benchmarks.md"):
    path = DOCS / page
    path.write_text(replaced(path.read_text(), name, part))
