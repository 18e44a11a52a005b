"""Start a headless browser, and the page for it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .page import Page, serving

PLAYER = "SpecscopeApp.shown.viewer.player"
DRAWN = (  # every chart that is not below the fold
    f"globalThis.Plotly && !{PLAYER}.cards.waiting && [...{PLAYER}.cards.cards.values()].every("
    "(card) => !card.onScreen || card.view.kind !== 'plot' || card.content.drawn)"
)
# If a script throws and catches, the driver's debugger parses it again for source positions unless they are kept: for
# plotly that takes a third of its loading time, which no visitor waits for.
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc --no-enable-lazy-source-positions"]


def find_chromium() -> str | None:
    """Find this machine's browser; the headless one comes first, as it takes a quarter less processor time."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Start headless Chromium, rendering in software."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        running = started.chromium.launch(executable_path=find_chromium(), args=_ARGUMENTS)
        yield running
        running.close()


@contextlib.contextmanager
def served(*flags: str) -> Iterator[Page]:
    """Run `python -m app` with these flags, on a free port, until the block ends."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "log", *flags) as page:
        yield page
