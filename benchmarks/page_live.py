"""Runs watched on the page, each between two equal runs from the command line."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from app.examples import EXAMPLES
from app.models.catalog import SMOLLM2
from tools import ROOT
from tools.browser import browser, served
from tools.page import Page

from .page_tools import SHOWN, TOOLS, open_page

SERVERS, ROUNDS = 3, 16  # one process is some percent faster than the next
SUM = EXAMPLES["sum"].prompt
PRIME = "Write a Python function that says whether a number is prime."
LIVE = ("lookahead", "autoregressive")


def lived(chromium: Any, server: Page, method: str, rounds: int) -> list[tuple[float, float]]:
    """Return for each round the milliseconds from Run to the first step, and tokens/s relative to the command line's.

    A machine's speed drifts, so a watched run is compared with the mean of the runs before and after it.
    """
    page = run_page(chromium, server, method=method, length=200, prompt=SUM)
    measured, before = [], alone(method)
    for _ in range(rounds):
        first, watched = page.evaluate("bench.live()")
        after = alone(method)
        measured.append((first, 2 * watched / (before + after)))
        before = after
    page.context.close()
    return measured


def run_page(chromium: Any, server: Page, **settings: str | int) -> Any:
    """Open the page with a run's settings in the form, and run it once, so that the model is loaded."""
    page = open_page(chromium, server, height=1000)
    page.goto(f"{server.address}?{urlencode(settings)}")
    page.wait_for_function(SHOWN)
    page.wait_for_function(f"document.querySelector('#run-length input')?.value === '{settings['length']}'")
    page.evaluate(TOOLS)
    page.evaluate("bench.live()")
    return page


def first_steps(chromium: Any, method: str) -> float:
    """Return the median milliseconds from pressing Run to the first step of SmolLM2, which is already loaded."""
    with served("--model", SMOLLM2.name) as server:
        page = run_page(chromium, server, model=SMOLLM2.name, method=method, length=48, prompt=PRIME)
        firsts = [float(page.evaluate("bench.live()")[0]) for _ in range(ROUNDS)]
        page.context.close()
    return statistics.median(firsts)


def live(*, apart: bool = False) -> dict[str, tuple[float, str]]:
    """Measure `lived` over some servers: by method, the median of the first steps and the `shares` of speed.

    `apart` keeps the browser off the engine's cores, with half as many rounds.
    """
    cores = sorted(os.sched_getaffinity(0)) if apart else []
    engines, visitors = cores[: len(cores) // 2], cores[len(cores) // 2 :]
    measured: dict[str, list[tuple[float, float]]] = {method: [] for method in LIVE}
    for _ in range(SERVERS):
        with contextlib.ExitStack() as opened:
            with limited_to(visitors):
                chromium = opened.enter_context(browser())
            with limited_to(engines):
                server = opened.enter_context(served("--model", "pocket"))
            for method, rounds in measured.items():
                rounds += lived(chromium, server, method, ROUNDS // (1 + apart))
    columns = {method: [*zip(*rounds, strict=True)] for method, rounds in measured.items()}
    return {method: (statistics.median(firsts), shares(ratios)) for method, (firsts, ratios) in columns.items()}


def shares(ratios: Sequence[float]) -> str:
    """Write the median, and the interval of the middle half of the rounds."""
    low, middle, high = (f"{100 * ratio:.0f}" for ratio in statistics.quantiles(ratios, n=4))
    return f"{middle}% ({low} to {high})"


@contextlib.contextmanager
def limited_to(cores: list[int]) -> Iterator[None]:
    """Limit processes that are started in the block to these cores, if any are named."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def alone(method: str) -> float:
    """Measure tokens/s of the same run from the command line, with as many threads as the page uses."""
    threads = str(max(1, (os.cpu_count() or 1) - 1))
    command = ["run", "--method", method, "--prompt", SUM, "--max-new-tokens", "200", "--record", "full", "--json"]
    printed = subprocess.run(
        [sys.executable, "-m", "decoding", *command, "--threads", threads],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return float(json.loads(printed)["tokens_per_second"])
