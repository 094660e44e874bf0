"""docs/simulator.md: its commands print what stands under them.

LLMGW_DOCS=write puts what they print there."""

import os
import re

import pytest

from llmgw.pages.document import runs
from llmgw.proc import place

PAGE = place.ROOT / "docs/simulator.md"


@pytest.mark.soak
def test_commands_print_what_the_page_shows(tmp_path):
    text = PAGE.read_text()
    found = list(runs(text, tmp_path))
    assert len(found) == 5
    if os.environ.get("LLMGW_DOCS") == "write":
        for block, out in reversed(found):
            text = text[:block.start(2)] + out + text[block.end(2):]
        PAGE.write_text(text)
        return
    for block, out in found:
        assert block[2] == out, block[1]


def test_figures_in_words_are_those_of_the_tables():
    """What the text says of the tables, in words."""
    text = PAGE.read_text()
    death = text[text.index("### What does losing"):]
    rows = re.findall(r"^(all well|two die) +(\d+) .* ([\d.]+)$", death, re.M)
    assert [row[:2] for row in rows] == [("all well", "1500"),
                                         ("two die", "1500")]
    assert float(rows[0][2]) > float(rows[1][2])
    policies = text[text.index("### Which policy"):]
    good = {name: float(share) for name, share in re.findall(
        r"^(round-robin|least-loaded|default|blis) +\d+ .* ([\d.]+)$",
        policies, re.M)}
    assert good["default"] == good["round-robin"] == good["least-loaded"]
    assert good["default"] > good["blis"]
