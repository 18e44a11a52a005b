"""How pictures of the page are taken, and written in few bytes: each version of them stays in the history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from .browser import DRAWN, PLAYER

_COLOURS = 256


def open_page(chromium: Any, address: str, width: int, height: int) -> Any:
    """A page whose run is there."""
    page = chromium.new_context(viewport={"width": width, "height": height}).new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.wait_for_function(f"globalThis.SpecscopeApp?.shown.viewer && {PLAYER}.record.last >= 0")
    return page


def settle(page: Any) -> None:
    """Wait until what is on the screen is drawn."""
    page.evaluate(f"{PLAYER}.cards.resized()")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
    page.wait_for_function(DRAWN)


def save(picture: Image.Image, file: Path) -> None:
    """Write a picture with as many colours as pages of ours have."""
    picture.convert("RGB").quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        file, optimize=True
    )
