"""The first evening: what README.md says to type, and what comes of it."""

import json
import re

from ..proc import place

MARK = "<!-- the first evening: t/evening runs these lines -->\n"
MODEL = "Qwen/Qwen3-8B"


def commands():
    """Install, start, ask: one line each.  One that ends in \\ goes on."""
    text = (place.ROOT / "README.md").read_text().split(MARK)[1]
    block = re.match(r"```\w*\n(.*?)^```$", text, re.M | re.S)[1]
    install, up, curl = re.sub(r"\\\n\s*", "", block).splitlines()
    return install, up, curl


def tokens(text):
    """Of an answer that curl shows as it streams, so far."""
    return [choice["delta"]["content"]
            for data in re.findall(r"^data: ({.*})$", text, re.M)
            for choice in json.loads(data)["choices"]
            if choice.get("delta", {}).get("content")]
