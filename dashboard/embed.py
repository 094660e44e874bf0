#!/usr/bin/env python3
"""Makes one page of a folder's files, and C of the page.

usage: embed.py PAGE DIRECTORY: writes PAGE.html and PAGE.h there.

What index.html links stands within the page afterwards: the style, and its
scripts as one.  In the C the page is cut where its server or its writer puts
in something.  The policy names the two by their hashes (Content Security
Policy level 2): the C has one for a header, a page may have its own in a meta
element, with {style} and {script} in their places.
"""

import base64
import hashlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STYLE = re.compile(r'<link rel="stylesheet" href="([\w.]+)">\n')
SCRIPTS = re.compile(r'(?:<script src="[\w./]+"></script>\n)+')

# page: its folder, and where it is cut.
PAGES = {
    "dashboard": ("dashboard", re.compile(
        r'(?<=<meta name="llmgw-status" content=")[^"]*')),
    "comparison": ("sim/page", re.compile(
        r'(?<=<script type="application/json" id="data">)')),
}
POLICY = ("default-src 'none'; style-src {style}; script-src {script};"
          " connect-src 'self'; img-src 'self'; base-uri 'none';"
          " form-action 'none'; frame-ancestors 'self'")


def source(text):
    """As a policy names an inline element's text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def assemble(folder):
    """The page, its style's text, its script's text."""
    page = (folder / "index.html").read_text()
    style = "\n" + (folder / STYLE.search(page).group(1)).read_text()
    links = SCRIPTS.search(page).group()
    script = "\n'use strict';\n" + "\n".join(
        (folder / name).read_text().replace("'use strict';\n", "", 1)
        for name in re.findall(r'src="([\w./]+)"', links))
    for text in (style, script):
        if "</" in text:
            raise SystemExit("embed.py: \"</\" would end the element")
    page = page.replace("{style}", source(style))
    page = page.replace("{script}", source(script))
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
    name, out = sys.argv[1], pathlib.Path(sys.argv[2])
    folder, cut = PAGES[name]
    page, style, script = assemble(ROOT / folder)
    head, tail = cut.split(page)
    policy = POLICY.format(style=source(style), script=source(script))
    version = hashlib.sha256(page.encode()).hexdigest()[:16]
    (out / f"{name}.html").write_text(page)
    (out / f"{name}.h").write_text(
        "/* Made by dashboard/embed.py. */\n\n"
        f'#define LLMGW_{name.upper()}_HASH "{version}"\n'
        f'#define LLMGW_{name.upper()}_POLICY \\\n    "{policy}"\n\n'
        + array(f"llmgw_{name}_head", head) + "\n"
        + array(f"llmgw_{name}_tail", tail))


if __name__ == "__main__":
    main()
