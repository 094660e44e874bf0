"""Ids, text, and which id comes next.

The next id is a function of all ids before it, or, with reads="text", of all
bytes before it.  So whoever goes on behind the right ids says exactly what an
undisturbed engine would have said, and whoever loses or doubles one, or makes
other ids of the same text, says something else.  Some characters are spread
over up to four ids.  Some words come as two ids where the tokenizer makes one.

A prompt may end with wishes: `len=N;` for an answer of N tokens, `think=N;` for
N tokens of reasoning before it, `call=NAME;` for a call of that tool,
`plain=1;` for ids that are whole words.  Without `len` the end depends on the
ids as well.
"""

import re

END, BOS, SYSTEM, USER, ASSISTANT, TOOL, THINK, THOUGHT, CALL = range(256, 265)
SPECIAL = {END: "<|end|>", BOS: "<|bos|>", SYSTEM: "<|system|>",
           USER: "<|user|>", ASSISTANT: "<|assistant|>", TOOL: "<|tool|>",
           THINK: "<think>", THOUGHT: "</think>", CALL: "<tool_call>"}
ROLE = {"system": SYSTEM, "developer": SYSTEM, "user": USER,
        "assistant": ASSISTANT, "tool": TOOL, "function": TOOL}
TEMPLATE = {END, BOS, SYSTEM, USER, ASSISTANT, TOOL}

WORDS = [" " + w for w in """
    river stone light under seven paper window orange quiet market follow copper
    garden winter silver bridge letter morning thunder pocket feather captain
    yellow engine harbour candle "quoted" back\\slash naïve data: [DONE]
    {"k":1} </s> & 100% it's ,""".split()] + ["\n\n", "\t|", " \u2028",
                                                       "    "]
HALVES = [(" mo", "untain"), (" ki", "tchen"), (" sp", "arrow")]
CHARACTERS = ["é", "漢", "🙂", "Ж"]     # each begins with another byte
LONGEST = 4

PIECE = {i: bytes([i]) for i in range(256)}
PIECE.update({i: text.encode() for i, text in SPECIAL.items()})
_first = 300
WORD = {}
for _word in WORDS + [a + b for a, b in HALVES]:
    WORD[_word.encode()] = _first
    PIECE[_first] = _word.encode()
    _first += 1
SECOND = {}     # the id that must follow
for _a, _b in HALVES:
    PIECE[_first], PIECE[_first + 1] = _a.encode(), _b.encode()
    SECOND[_first] = _first + 1
    _first += 2
VOCABULARY = _first

_LEAD = {c.encode()[0]: c.encode() for c in CHARACTERS}
_TEXT_MENU = ([WORD[w.encode()] for w in WORDS]
              + [c.encode()[0] for c in CHARACTERS for _ in range(3)])
_IDS_MENU = _TEXT_MENU + list(SECOND) * 2
_SPLIT = re.compile(b"|".join(
    re.escape(w) for w in sorted(WORD, key=len, reverse=True)) + b"|.", re.S)
_SPECIAL_SPLIT = re.compile(
    "(" + "|".join(map(re.escape, SPECIAL.values())) + ")")
_SPECIAL_ID = {text: i for i, text in SPECIAL.items()}
_WISH = re.compile(rb"\b(len|think|call|plain)=(\w+);")
_MASK = (1 << 64) - 1


def encode(text, special=False):
    """text -> ids; special: the names of special ids count as those."""
    if special:
        return [i for part in _SPECIAL_SPLIT.split(text) if part
                for i in ([_SPECIAL_ID[part]] if part in _SPECIAL_ID
                          else encode(part))]
    raw = text.encode("utf-8", "surrogatepass")
    return [WORD.get(p, p[0]) for p in _SPLIT.findall(raw)]


def decode(ids, special=False):
    return b"".join(PIECE[i] for i in ids
                    if special or i not in SPECIAL).decode(errors="replace")


def content_text(content):
    """A message's content: a string, or parts of which some are text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] if part["type"] == "text"
                   else f"[{part['type']}]" for part in content)


def render(messages, tools=None, go_on=False, generation=True):
    """The chat template: ids.  go_on: the last message stays open."""
    ids = [BOS]
    if tools:
        names = ",".join(t["function"]["name"] for t in tools)
        ids += [SYSTEM, *encode(f"tools {names}"), END]
    for n, m in enumerate(messages):
        ids += [ROLE[m["role"]], *encode(content_text(m.get("content")))]
        for call in m.get("tool_calls") or ():
            f = call["function"]
            ids += [CALL, *encode(f["name"] + f["arguments"])]
        if not (go_on and n == len(messages) - 1):
            ids.append(END)
    return ids if go_on or not generation else ids + [ASSISTANT]


class Wishes:
    """What the prompt asks of the answer, and how much of it is there."""

    def __init__(self, ids):
        users = [n for n, i in enumerate(ids) if i == USER]
        first = users[-1] if users else 0
        ends, raw = [], bytearray()
        for i in ids[first:]:
            raw += PIECE[i]
            ends.append(len(raw))
        found = list(_WISH.finditer(bytes(raw)))
        wish = {m[1]: m[2].decode() for m in found}
        self.length = int(wish[b"len"]) if b"len" in wish else None
        self.think = int(wish.get(b"think", 0))
        self.call = wish.get(b"call")
        self.plain = b"plain" in wish
        self.position = 0
        if found:
            behind = first + next(n for n, end in enumerate(ends)
                                  if end >= found[-1].end()) + 1
            self.position = sum(i not in TEMPLATE for i in ids[behind:])


class Sequence:
    """ids that grow.  choice: another one is another answer.  script: what it
    must say.  calls: whether a wish for a call is granted."""

    def __init__(self, ids, reads="ids", choice=0, script=None, calls=False):
        self.reads = reads
        self.hash = 0x243F6A8885A308D3 ^ choice
        self.last, self.open = None, b""
        for i in ids:
            self._fold(i)
        self.wishes = Wishes(ids)
        self.script = encode(script) if script else None
        if calls and self.wishes.call:
            self.script = [CALL, *encode(
                f'{{"name": "{self.wishes.call}", "arguments":'
                ' {"city": "Orléans", "days": 3}}')]

    def next(self, may_end=True):
        """The next id; it is part of the sequence then."""
        i = self._choose()
        if i == END and not may_end:
            i = self._any()
        self._fold(i)
        self.wishes.position += 1
        return i

    def _choose(self):
        if self.open:
            return _LEAD[self.open[0]][len(self.open)]
        if self.last in SECOND:
            return SECOND[self.last]
        at = self.wishes.position
        think = self.wishes.think
        if think and at <= think + 1:
            return {0: THINK, think + 1: THOUGHT}.get(at) or self._any()
        at -= think + 2 if think else 0
        if self.script:
            at -= 3 if self.script[0] == CALL else 0
            return (self._any() if at < 0 else
                    self.script[at] if at < len(self.script) else END)
        if self.wishes.length is None:
            return END if self.hash >> 20 & 63 == 0 else self._any()
        left = self.wishes.length - at
        return END if left <= 0 else self._any(left >= LONGEST)

    def _any(self, fits=True):
        """fits: something of several ids may begin."""
        menu = _IDS_MENU if self.reads == "ids" else _TEXT_MENU
        wishes = self.wishes
        if wishes.think or wishes.plain or self.script or not fits:
            menu = menu[:len(WORDS)]
        return menu[(self.hash >> 32) % len(menu)]

    def _fold(self, i):
        for part in (i,) if self.reads == "ids" else PIECE[i]:
            h = (self.hash ^ part + 1) * 0x9E3779B97F4A7C15 & _MASK
            self.hash = h ^ h >> 29
        self.last = i
        if i < 256:
            self.open += PIECE[i]
            lead = _LEAD.get(self.open[0])
            if not lead or not lead.startswith(self.open) \
                    or lead == self.open:
                self.open = b""
        else:
            self.open = b""


def said(prompt, reads="ids", choice=0):
    """The ids that an undisturbed engine says behind a rendered prompt, END
    among them."""
    sequence, ids = Sequence(prompt, reads, choice), []
    while not ids or ids[-1] != END:
        ids.append(sequence.next())
    return ids


def vector(text, size=8):
    """An embedding."""
    h = Sequence(encode(text)).hash
    return [((h >> 7 * n & 0xFFF) - 2048) / 2048 for n in range(size)]
