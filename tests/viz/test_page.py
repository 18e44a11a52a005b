"""The offline replay, in a real browser, from a file and without a network."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from decoding.types import Trace
from tests.tiers import choose
from viz import page as pages
from viz import write_html

from .records import hostile, record


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    return chromium


class Opened:
    """A page, and all that it said and asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said, self.asked = list[str](), list[str]()
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))


def opened(browser: Browser, trace: Trace, path: Path, step: int) -> Opened:
    write_html(trace, path, step=step)
    seen = Opened(browser.new_page())
    seen.page.goto(path.as_uri())
    at(seen.page, step)
    return seen


def at(page: Page, step: int) -> None:
    """Wait until a step is shown; a locator does it without evaluating code, which the page's policy forbids."""
    page.locator(f'[data-at^="{step}/"]').wait_for(state="attached")


def quiet(seen: Opened) -> bool:
    outside = [url for url in seen.asked if not url.startswith(("file:", "data:", "blob:"))]
    return not outside and not seen.said


@pytest.mark.parametrize("method", choose(["lookahead", "medusa"], ["lookahead"]))
def test_a_file_replays_without_a_network(browser: Browser, tmp_path: Path, method: str) -> None:
    """Opened from a disk, under a policy that loads nothing and runs nothing but the file's own scripts."""
    seen = opened(browser, record(method), tmp_path / "run.html", 2)
    seen.page.keyboard.press("ArrowRight")
    at(seen.page, 3)
    seen.page.keyboard.press("End")
    last = len(record(method).steps) - 1
    at(seen.page, last)
    assert "tokens from one pass" in seen.page.content() or "1 token from one pass" in seen.page.content()
    assert quiet(seen), (seen.said, seen.asked)
    seen.page.close()


def test_a_file_brings_its_tables_along(browser: Browser, tmp_path: Path) -> None:
    """Packed, since they say much again and again: a file that can ask nobody has them all the same."""
    seen = opened(browser, record("lookahead"), tmp_path / "run.html", 6)
    seen.page.keyboard.press("3")
    seen.page.get_by_role("button", name="N-gram pool as a table").click()
    table = seen.page.locator("dialog[open] table")
    table.get_by_text("held for the key").first.wait_for()
    entries = record("lookahead").steps[6].panel["pool"]["entries"]
    assert f"N-grams in the pool: {entries}." in seen.page.locator("dialog[open]").inner_text()
    assert quiet(seen), (seen.said, seen.asked)
    seen.page.close()


def test_hostile_texts_are_inert(browser: Browser, tmp_path: Path) -> None:
    """Tags, templates, script ends and direction overrides are texts like any other."""
    seen = opened(browser, hostile(record("lookahead")), tmp_path / "run.html", 6)
    seen.page.keyboard.press("End")
    last = len(record("lookahead").steps) - 1
    at(seen.page, last)
    assert seen.page.locator("#specscope img, #specscope script, #specscope a").count() == 0
    assert "bold" not in seen.page.locator("#specscope b").all_inner_texts()
    assert quiet(seen), (seen.said, seen.asked)
    assert "<img src=x" in seen.page.locator("#specscope").inner_text()
    seen.page.close()


def test_the_policy_forbids_everything_else(browser: Browser, tmp_path: Path) -> None:
    """The control of the tests above: what a token must not do, the page does not let it do."""
    seen = opened(browser, record("jacobi"), tmp_path / "run.html", 1)
    seen.page.evaluate(
        "() => { const script = document.createElement('script'); script.textContent = 'window.ran = true';"
        " document.body.append(script); const image = new Image(); image.src = 'https://example.org/x.png';"
        " return new Promise((done) => { image.onerror = done; }).then(() => null); }"
    )
    assert seen.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in text for text in seen.said)
    seen.page.close()


def test_nothing_in_the_data_ends_its_element() -> None:
    """An end tag in a token's text would begin a script of its author."""
    text = pages.page(hostile(record("lookahead")))
    data = re.findall(r'<script type="application/json" id="lines">(.*?)</script>', text, flags=re.DOTALL)
    assert len(data) == 1
    kinds = [json.loads(line)["kind"] for line in data[0].splitlines()]
    assert kinds[0] == "play"
    assert kinds.count("step") == len(record("lookahead").steps)
    assert text.count("</script>") == 5  # three of data, plotly, the player
    assert "http" not in text.split("</title>")[0].replace("http-equiv", "")
