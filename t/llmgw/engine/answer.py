"""What one choice of an answer says, token by token.

A step is what an engine's server gets from its model at once: one id, and the
text that is whole by now.  Text waits for the rest of a character, and, if the
request has stop strings, until it cannot be the begin of one.
"""

import codecs
import dataclasses
import json
import math

from . import model


@dataclasses.dataclass
class Step:
    ids: list
    text: str = ""          # of the content
    reasoning: str = ""
    call: dict = None       # {"name"} first, then {"arguments": a piece}
    logprobs: list = None   # of the ids: (id, logprob, [(id, logprob)])
    finish: str = None
    stop: str = None        # the stop string that ended it
    begins: int = 0         # ids that are out, before this step


class Choice:
    def __init__(self, prompt, want, reads, index=0):
        """want: a Want."""
        self.sequence = model.Sequence(prompt, reads, index, want.script,
                                       want.calls)
        self.want, self.index = want, index
        self.utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self.held = ""
        self.ids = []
        self.thoughts = 0       # of the ids, those that were told apart
        self.mode = "text"
        self.called = None      # the text of a tool call so far
        self.finish = None
        self.sent_name = False

    def step(self):
        begins = len(self.ids)
        i = self.sequence.next(not self.want.ignore_end
                               and begins >= self.want.min_tokens)
        step = Step([i], begins=begins)
        self.ids.append(i)
        if self.want.logprobs is not None:
            step.logprobs = [self._logprob(i)]
        if i in model.SPECIAL:
            self._turn(i)
        else:
            self._say(step, self.utf8.decode(model.PIECE[i]))
        if i == model.END:
            self.finish = "tool_calls" if self.called is not None else "stop"
        elif len(self.ids) >= self.want.max_tokens and not self.finish:
            self.finish = "length"
        if self.finish and not step.stop and self.held:
            step.text += self.held
            self.held = ""
        step.finish = self.finish
        return step

    def _turn(self, i):
        self.mode = {model.THINK: "reasoning", model.THOUGHT: "text",
                     model.CALL: "call"}.get(i, self.mode)
        if i == model.CALL:
            self.called = ""

    def _say(self, step, text):
        if self.mode == "reasoning" and self.want.thoughts:
            step.reasoning = text
            self.thoughts += 1
        elif self.mode == "call":
            self.called += text
            self._call(step, text)
        else:
            self.held += text
            self._stop_or_send(step)

    def _call(self, step, text):
        """The name goes out when it is whole, arguments as they come; the
        closing brace of the call itself belongs to neither."""
        mark = '"arguments": '
        if not self.sent_name:
            if mark in self.called:
                name = json.loads(self.called.split(",")[0] + "}")["name"]
                step.call = {"name": name}
                self.sent_name = True
        else:
            said = self.called.split(mark, 1)[1]
            if said.count("{") >= said.count("}"):
                step.call = {"arguments": text}

    def _stop_or_send(self, step):
        stops = self.want.stop
        at = min((p for p in map(self.held.find, stops) if p >= 0),
                 default=None)
        if at is not None:
            step.stop = next(s for s in stops if self.held.startswith(s, at))
            step.text, self.held, self.finish = self.held[:at], "", "stop"
            return
        keep = self.want.hold(self.held) if stops else 0
        cut = len(self.held) - keep
        if cut > 0:
            step.text, self.held = self.held[:cut], self.held[cut:]

    def _logprob(self, i):
        value = -((self.sequence.hash >> 8) % 3000) / 1000
        others = [(n, value - 0.5 - n % 7) for n in
                  range(i + 1, i + self.want.logprobs)]
        tops = [(i, value), *others] if self.want.logprobs else []
        return i, value, tops


def lag(stops):
    """vLLM holds back as many characters as the longest stop string has, but
    one.  vllm/v1/engine/detokenizer.py (0.11), BaseIncrementalDetokenizer"""
    longest = max(map(len, stops), default=1)
    return lambda held: min(longest - 1, len(held))


def begin_of_stop(stops):
    """llama.cpp holds back what may be the begin of a stop string.
    tools/server/server-context.cpp (b6900), find_stopping_strings()"""
    def keep(held):
        return max((n for s in stops for n in range(1, len(s))
                    if held.endswith(s[:n])), default=0)
    return keep


@dataclasses.dataclass
class Want:
    """What a request asks of each choice."""
    max_tokens: float = math.inf
    min_tokens: int = 0
    ignore_end: bool = False
    stop: list = dataclasses.field(default_factory=list)
    logprobs: int = None        # how many tops; None: no logprobs
    script: str = None          # the text that it must say
    calls: bool = False         # it may call a tool
    thoughts: bool = False      # reasoning is told apart from the text
    hold: callable = None       # held text -> characters to keep back


def chat_logprobs(step):
    """As OpenAI's chat API has them, or None."""
    if step.logprobs is None:
        return None

    def one(i, value):
        raw = model.PIECE.get(i, b"?")
        return {"token": raw.decode(errors="replace"), "logprob": value,
                "bytes": list(raw)}
    return {"content": [
        {**one(i, value), "top_logprobs": [one(*top) for top in tops]}
        for i, value, tops in step.logprobs]}


def text_logprobs(step, offset):
    """As the completions API has them, or None."""
    if step.logprobs is None:
        return None

    def name(i):
        return model.PIECE.get(i, b"?").decode(errors="replace")
    return {"text_offset": [offset] * len(step.logprobs),
            "token_logprobs": [v for _, v, _ in step.logprobs],
            "tokens": [name(i) for i, _, _ in step.logprobs],
            "top_logprobs": [{name(i): v for i, v in tops}
                             for _, _, tops in step.logprobs]}
