"""The page in a headless browser that renders in software: `make bench-page`.

A server runs on loopback, and a browser on the same cores; figures are medians unless noted. Watched runs are timed on
several servers, each between two runs from the command line, and again with the browser kept off the engine's cores,
which shows the page's share of their loss; the middle half of the rounds is in brackets.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from decoding import load
from decoding.trace.file import write_trace
from decoding.types import Trace
from tools.browser import DRAWN, PLAYER, browser, served
from tools.page import Page
from viz.stream.play import Play

from .measure import command, conditions, table
from .page_live import LIVE, first_steps, live
from .page_tools import OPENED, SHOWN, STAGE, TOOLS, open_page

VISITS, SEEKS = 5, 1000
STEPS, TOKENS = 200, 512
PROMPT = "What is the dish of Ablow?"
VIEWS = ("mask", "window", "pool", "tree")


def long_run() -> Trace:
    """Decode with Lookahead (15, 5, 15), for longer than the page is measured."""
    run = load("pocket", device="cpu").decode(
        PROMPT, "lookahead", max_new_tokens=TOKENS, end_tokens=(), record="full"
    )  # after the end of its answer a model is unsure, and few guesses are accepted
    for _ in run:
        pass
    assert len(run.trace.steps) >= STEPS, "the run is too short to be measured"
    return run.trace


def stream_bytes(trace: Trace) -> int:
    """Count the bytes sent to the page for the first steps, and separately for the details that it requests."""
    play = Play(trace.header)
    lines = [play.begin(trace.texts), *(play.step(step) for step in trace.steps[:STEPS]), play.end(trace.summary)]
    return sum(len(line.encode()) for line in lines)


def first_views(chromium: Any, server: Page) -> list[tuple[float, float]]:
    """Return the seconds from a visitor's arrival to the opening race's text, and to the stage if they step at once."""
    seconds = []
    for _ in range(VISITS):
        page = open_page(chromium, server, height=800)
        text = page.wait_for_function(f"() => ({OPENED}) && performance.now()").json_value()
        page.evaluate("document.querySelector('.app-first').click()")
        page.wait_for_function(SHOWN)
        stage = page.wait_for_function(f"() => ({STAGE}) && performance.now()").json_value()
        seconds.append((text / 1000, stage / 1000))
        page.context.close()
    return seconds


def replayed(chromium: Any, server: Page, trace: Path, views: Sequence[str]) -> dict[str, float]:
    """Show a long run with text, stage and `views`: play it, scrub it, and seek random steps."""
    page = open_page(chromium, server, height=2400 if views else 720)
    page.wait_for_function(SHOWN)
    page.set_input_files(".app-bar input[type=file]", trace)
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.title === 'Your file'")
    page.evaluate(f"(views) => views.forEach((view) => {PLAYER}.cards.toggle(view, true))", views)
    page.wait_for_function(f"{STAGE} && {DRAWN} && {PLAYER}.cards.cards.size === {len(views)}")
    page.evaluate(TOOLS)
    page.evaluate("bench.settled()")
    page.evaluate(f"bench.scrub([...Array({STEPS // 4}).keys()])")
    scrubs = page.evaluate(f"bench.scrub([...Array({STEPS}).keys()].map((k) => (k * 37) % {STEPS}))")
    rate = page.evaluate("bench.play(10)")
    frames, longest = page.evaluate("bench.frames(10)")
    devtools = page.context.new_cdp_session(page)
    page.evaluate("bench.scrub([100])")
    before = usage(devtools)
    page.evaluate(f"bench.scrub([...Array({SEEKS}).keys()].map((k) => (k * 67) % {STEPS}))")
    page.evaluate("bench.scrub([100])")
    after = usage(devtools)
    page.context.close()
    return {
        "steps per second": rate,
        "frames per second": frames,
        "longest frame": longest,
        "scrub": statistics.median(scrubs),
        "slow scrub": sorted(scrubs)[int(0.9 * len(scrubs))],
        "heap": (after["JSHeapUsedSize"] - before["JSHeapUsedSize"]) / 2**20,
        "nodes": 100 * (after["Nodes"] / before["Nodes"] - 1),
    }


def usage(devtools: Any) -> dict[str, float]:
    """Measure the page's memory after a garbage collection."""
    devtools.send("Performance.enable")
    for _ in range(3):
        devtools.send("HeapProfiler.collectGarbage")
    return {metric["name"]: metric["value"] for metric in devtools.send("Performance.getMetrics")["metrics"]}


def report() -> str:
    """Measure everything."""
    trace = long_run()
    with tempfile.TemporaryDirectory() as folder, browser() as chromium, served("--model", "pocket") as server:
        path = Path(folder) / "long.jsonl.gz"
        write_trace(trace, path)
        views = first_views(chromium, server)
        shown = replayed(chromium, server, path, VIEWS)
        staged = replayed(chromium, server, path, ())
        version = chromium.version
        english = {method: first_steps(chromium, method) for method in LIVE}
    together = live()
    apart = live(apart=True) if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > 1 else {}
    text, stage = (statistics.median(seconds) for seconds in zip(*views, strict=True))
    rows = [
        ["", "measured", "bar"],
        ["`python -m app` until the page is served, s", f"{server.seconds:.1f}", "12"],
        ["first view, text of the opening race, s", f"{text:.2f}", "2.0"],
        ["stepped through at once, stage too, s", f"{stage:.2f}", "2.0"],
        ["text and stage played by phases at 1x, frames/s", f"{staged['frames per second']:.0f}", "24"],
        ["its longest frame, ms", f"{staged['longest frame']:.0f}", ""],
        ["a scrub with text and stage, ms (median of 200)", f"{staged['scrub']:.0f}", "60"],
        ["a scrub with text and stage, ms (90th percentile)", f"{staged['slow scrub']:.0f}", ""],
        [f"heap after {SEEKS} seeks with text and stage, MB", f"{staged['heap']:+.1f}", "+5"],
        [f"nodes of the page after {SEEKS} seeks with text and stage", f"{staged['nodes']:+.1f}%", "+2%"],
        ["played with mask, window, pool and tree, steps/s", f"{shown['steps per second']:.1f}", "12"],
        ["a scrub, ms (median of 200)", f"{shown['scrub']:.0f}", "90"],
        ["a scrub, ms (90th percentile)", f"{shown['slow scrub']:.0f}", ""],
        [f"heap after {SEEKS} seeks, MB", f"{shown['heap']:+.1f}", "+5"],
        [f"nodes of the page after {SEEKS} seeks", f"{shown['nodes']:+.1f}%", "+2%"],
        [f"stream of {STEPS} steps, MB", f"{stream_bytes(trace) / 1e6:.2f}", "1"],
    ]
    for method, (first, ratio) in together.items():
        rows.append([f"Run pressed, first step of {method} seen, s", f"{first / 1000:.2f}", "1.0"])
        label = f"tokens/s of {method} watched, against the command line"
        rows.append([label, ratio, "95%"])
        if method in apart:
            rows.append([f"{label}, browser on other cores", apart[method][1], ""])
    for method, first in english.items():
        rows.append([f"Run pressed, first step of {method} on SmolLM2 seen, s", f"{first / 1000:.2f}", "1.5"])
    where = conditions(f"{os.cpu_count()} cores", f"Chromium {version}", packages=("gradio", "plotly", "torch"))
    return f"{where}.\n\n{table(rows)}"


if __name__ == "__main__":
    command("page", __doc__, report)
