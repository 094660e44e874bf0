"""The dashboard as it stands in a browser's page."""

from ..proc.wait import QUICK

# What a fact may take that the page learns when it asks again, in a second.
POLLED = QUICK + 1


def row(page, id):
    """A replica's row in the table, {column: text}."""
    return page.js(f"""(() => {{
        const text = (x) => x.innerText.replace(/\\s+/g, ' ').trim();
        const head = [...document.querySelectorAll('#columns th')].map(text);
        const row = [...document.querySelectorAll('#rows tr')]
            .find((x) => x.firstChild.textContent === {id!r});
        return row && Object.fromEntries(
            [...row.children].map((x, i) => [head[i], text(x)]));
    }})()""")


def refresh(page):
    """Fetches and draws now instead of at the next second."""
    page.js("poller.ask().then((said) => page.take(said),"
            " (e) => page.fail(e.message))")


def forget(page):
    """Its last answer is as old as silence has to be."""
    page.js("page.answered -= 3000; poller.since -= 3000; page.tell()")
