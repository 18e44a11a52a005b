"""A headless browser, and the page as a process of its own on loopback."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PLAYER = "SpecscopeApp.viewers.player"
DRAWN = (  # every chart that is not below the fold
    f"globalThis.Plotly && !{PLAYER}.cards.waiting && [...{PLAYER}.cards.cards.values()].every("
    "(card) => !card.onScreen || card.view.kind !== 'plot' || card.content.drawn)"
)
# Where a script throws and catches, the driver's debugger has it parsed anew for its places unless they are kept: of
# plotly that is a third of its loading, which no visitor waits for.
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc --no-enable-lazy-source-positions"]
_PATIENCE = 120.0  # seconds for a server to come up


def find_chromium() -> str | None:
    """The browser of this machine."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a screen, drawing in software."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        running = started.chromium.launch(executable_path=find_chromium(), args=_ARGUMENTS)
        yield running
        running.close()


@dataclass(frozen=True)
class Server:
    """A running page: where, and how long it took to answer."""

    address: str
    seconds: float


@contextlib.contextmanager
def served(*flags: str) -> Iterator[Server]:
    """`python -m app` with these flags, on a free port, until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "app", "--port", str(port), *flags], cwd=ROOT)
    address = f"http://127.0.0.1:{port}/"
    try:
        while not _answers(address):
            if process.poll() is not None or time.perf_counter() - begin > _PATIENCE:
                raise RuntimeError("the page did not start: `python -m app` tells why")
            time.sleep(0.02)
        yield Server(address, time.perf_counter() - begin)
    finally:
        process.terminate()
        process.wait()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
