#!/usr/bin/env python3
"""Makes one page of the files beside this one, and C of the page.

usage: embed.py DIRECTORY: writes dashboard.html and dashboard.h there.

What index.html links stands within the page afterwards: the style, and its
scripts as one.  In the C the page is cut where the status's url belongs, and
the policy names the two by their hashes (Content Security Policy level 2).
"""

import base64
import hashlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
STYLE = re.compile(r'<link rel="stylesheet" href="([\w.]+)">\n')
SCRIPTS = re.compile(r'(?:<script src="[\w.]+"></script>\n)+')
CUT = re.compile(r'(?<=<meta name="llmgw-status" content=")[^"]*')
POLICY = ("default-src 'none'; style-src {style}; script-src {script};"
          " connect-src 'self'; img-src 'self'; base-uri 'none';"
          " form-action 'none'; frame-ancestors 'self'")


def source(text):
    """As a policy names an inline element's text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def assemble():
    """The page, its style's text, its script's text."""
    page = (HERE / "index.html").read_text()
    style = "\n" + (HERE / STYLE.search(page).group(1)).read_text()
    links = SCRIPTS.search(page).group()
    script = "\n'use strict';\n" + "\n".join(
        (HERE / name).read_text().replace("'use strict';\n", "", 1)
        for name in re.findall(r'src="([\w.]+)"', links))
    for text in (style, script):
        if "</" in text:
            raise SystemExit("embed.py: \"</\" would end the element")
    page = STYLE.sub(lambda _: f"<style>{style}</style>\n", page)
    page = SCRIPTS.sub(lambda _: f"<script>{script}</script>\n", page)
    return page, style, script


def array(name, text):
    data = text.encode()
    lines = [", ".join(map(str, data[i:i + 16]))
             for i in range(0, len(data), 16)]
    return (f"static const unsigned char {name}[] = {{\n    "
            + ",\n    ".join(lines) + "\n};\n")


def main():
    out = pathlib.Path(sys.argv[1])
    page, style, script = assemble()
    head, tail = CUT.split(page)
    policy = POLICY.format(style=source(style), script=source(script))
    version = hashlib.sha256(page.encode()).hexdigest()[:16]
    (out / "dashboard.html").write_text(page)
    (out / "dashboard.h").write_text(
        "/* Made by dashboard/embed.py. */\n\n"
        f'#define LLMGW_DASHBOARD_HASH "{version}"\n'
        f'#define LLMGW_DASHBOARD_POLICY \\\n    "{policy}"\n\n'
        + array("llmgw_dashboard_head", head) + "\n"
        + array("llmgw_dashboard_tail", tail))


if __name__ == "__main__":
    main()
