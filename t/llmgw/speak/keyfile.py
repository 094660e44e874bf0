"""A key file, how clients show a key, and what they are told about limits."""

import base64
import contextlib
import dataclasses
import hashlib
import http.client
import json
import os
import re
import secrets
import time

from . import sse
from ..fleet import words
from ..proc.wait import PATIENCE

# A gateway looks for a change each second, and takes one that stood still for
# another.
TAKEN = 4


def line(key, name, *may):
    """The line of a key; of an identity with key=None."""
    hash = hashlib.sha256(key.encode()).hexdigest() if key else "-"
    return " ".join((name, hash, *may))


class KeyFile:
    def __init__(self, directory, name="keys"):
        self.path = directory / name
        self.lines = []

    def add(self, name, *may, key=None):
        """The key of a new line."""
        key = key or "sk-llmgw-" + secrets.token_urlsafe(32)
        self.lines.append(line(key, name, *may))
        self.write()
        return key

    def identity(self, name, *may):
        self.lines.append(line(None, name, *may))
        self.write()

    def drop(self, name):
        self.lines = [x for x in self.lines if x.split()[0] != name]
        self.write()

    def write(self, text=None):
        """The whole file, as llmgwctl does it."""
        made = self.path.with_name(self.path.name + ".new")
        made.write_text("\n".join(self.lines) + "\n" if text is None else text)
        made.chmod(0o644)       # nginx's workers may be another user
        os.rename(made, self.path)

    def directive(self, zone="keys:1m", more=""):
        return f"llmgw_keys {self.path} zone={zone} {more};"


def bearer(key):
    return [("authorization", f"Bearer {key}")]


def basic(key, user="any"):
    pair = base64.b64encode(f"{user}:{key}".encode()).decode()
    return [("authorization", f"Basic {pair}")]


@dataclasses.dataclass
class Told:
    """An answer in HTTP."""
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    @property
    def reason(self):
        return self.headers.get(words.REASON)

    @property
    def retry_ms(self):
        return int(self.headers["retry-after-ms"])

    def is_refused(self, status, code, type=None):
        """In OpenAI's form, which has these four members."""
        assert (self.status, self.error["code"]) == (status, code), self
        assert self.error.keys() == {"message", "type", "param", "code"}
        assert self.error["message"] and self.error["type"] == (
            type or self.error["type"]), self
        assert self.headers["content-type"].startswith("application/json")
        return self

    def is_anthropics(self, status, type):
        """In that of Anthropic, which has no code."""
        assert self.status == status, self
        assert self.json["type"] == "error" and self.error["type"] == type
        assert self.error["message"]
        return self


def ask(target, path=sse.CHAT, body=None, headers=(), method=None):
    """One request; headers: pairs, of which some may have one name."""
    host, _, port = target.rpartition(":")
    with contextlib.closing(http.client.HTTPConnection(
            host, int(port), timeout=PATIENCE)) as c:
        raw = body if isinstance(body, (bytes, type(None))) \
            else json.dumps(body).encode()
        c.putrequest(method or ("GET" if body is None else "POST"), path)
        for name, value in headers:
            c.putheader(name, value)
        if raw is not None:
            c.putheader("content-type", "application/json")
            c.putheader("content-length", str(len(raw)))
        c.endheaders(raw)
        answer = c.getresponse()
        names = {k.lower(): v for k, v in answer.getheaders()}
        return Told(answer.status, names, answer.read())


_RESET = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)(ms|s))?")


def reset_seconds(text):
    """6m0s, 1s, 20ms"""
    found = _RESET.fullmatch(text)
    assert text and found, text
    hours, minutes, value, unit = found.groups()
    return (int(hours or 0) * 3600 + int(minutes or 0) * 60
            + float(value or 0) / (1000 if unit == "ms" else 1))


def rates(headers, kind):
    """(limit, remaining, seconds until all of it remains) by OpenAI's headers;
    kind: requests or tokens.  None: there are none."""
    got = [headers.get(f"x-ratelimit-{what}-{kind}")
           for what in ("limit", "remaining", "reset")]
    if got == [None] * 3:
        return None
    return int(got[0]), int(got[1]), reset_seconds(got[2])


def anthropic_rates(headers, kind):
    """The same by Anthropic's; the third is a time (RFC 3339)."""
    got = [headers.get(f"anthropic-ratelimit-{kind}-{what}")
           for what in ("limit", "remaining", "reset")]
    if got == [None] * 3:
        return None
    return (int(got[0]), int(got[1]),
            time.strptime(got[2], "%Y-%m-%dT%H:%M:%SZ"))
