"""Take pictures of the page, and write them in few bytes: every version stays in the history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from PIL import Image

from .browser import DRAWN, PLAYER
from .page import Page

_COLOURS = 256


@contextmanager
def opened(chromium: Any, server: Page, width: int, height: int, **query: Any) -> Iterator[Any]:
    """Open the page at an address, on a screen of this size, and wait until its run is drawn."""
    context = chromium.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{server.address}?{urlencode({name: value for name, value in query.items() if value is not None})}")
    page.wait_for_function(f"globalThis.SpecscopeApp?.shown.viewer && {PLAYER}.record.last >= 0")
    settle(page)
    yield page
    context.close()


def settle(page: Any) -> None:
    """Wait until the screen is drawn."""
    page.evaluate(f"{PLAYER}.cards.resized()")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
    page.wait_for_function(DRAWN)


def save(picture: Image.Image, file: Path) -> None:
    """Write a picture with as many colours as our pages have."""
    picture.convert("RGB").quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        file, optimize=True
    )
