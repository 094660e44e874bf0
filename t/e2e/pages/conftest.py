"""The dashboard in a browser, over a gateway or a stage; files of keys."""

import hashlib
import re

import pytest

from llmgw.pages import scene as say
from llmgw.pages.browser import Browser


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.close()


@pytest.fixture
def open_page(browser):
    """open_page(nginx, ...): the dashboard, with a first status in it.

    At the end of the test it may have reported only the allowed errors, and
    may have sent requests only to its own server.
    """
    made = []

    def make(server, **how):
        page = browser.page(**how)
        page.allowed = []
        page.origin = server.origin
        made.append(page)
        page.open(page.origin + "/dashboard")
        page.wait_text("#pulse", "Live")
        return page
    yield make
    for page in made:
        wrong = [c for c in page.complaints()
                 if not any(re.search(a, c) for a in page.allowed)]
        asked = [u for u in page.requests()
                 if not u.startswith((page.origin + "/", "about:"))]
        page.close()
        assert not wrong and not asked


@pytest.fixture
def scene(ports):
    """scene(n, ...): a Scene, which stands in for a gateway."""
    made = []

    def make(*args, **more):
        made.append(say.Scene(ports, *args, **more))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture
def key_file(cluster):
    """key_file(name="what it may", ...): the file's path, and each key."""
    def make(**may):
        keys = {name: f"sk-llmgw-{name}" for name in may}
        path = cluster.dir / "keys"
        path.write_text("".join(
            f"{name} {hashlib.sha256(key.encode()).hexdigest()} {may[name]}\n"
            for name, key in keys.items()))
        return path, *keys.values()
    return make
