"""The page in a headless browser that draws in software: `make bench-page`.

A server of its own on loopback, a browser beside it on the same cores; medians where nothing else is said. Watched
runs are timed on several servers, each between two runs from the command line, and once more with the browser kept off
the engine's cores, which gives the page's share of what they lose; in brackets what the middle half of their rounds
lies between.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from app.examples import EXAMPLES
from app.models.catalog import SMOLLM2
from decoding import load
from decoding.trace.file import write_trace
from decoding.types import Trace
from tools import ROOT
from tools.browser import DRAWN, PLAYER, browser, served
from tools.page import Page
from viz.stream.play import Play

from .measure import command, conditions, table

VISITS, SEEKS = 5, 1000
SERVERS, ROUNDS = 3, 16  # of watched runs: one process is some percent faster than the next
STEPS, TOKENS = 200, 512
PROMPT = "What is the dish of Ablow?"
SUM = EXAMPLES["sum"].prompt
PRIME = "Write a Python function that says whether a number is prime."
LIVE = ("lookahead", "autoregressive")
VIEWS = ("mask", "window", "pool", "tree")
STAGE = "document.querySelector('.ss-stage .ss-piece')?.offsetParent"  # drawn, and seen
SHOWN = "globalThis.SpecscopeApp?.shown.viewer?.player.root.dataset.at && document.querySelector('.ss-token')"
OPENED = "document.querySelector('.ss-opening .ss-token')"
TOOLS = f"""() => {{
  const player = {PLAYER};
  const frame = () => new Promise(requestAnimationFrame);
  const moment = (ms) => new Promise((done) => setTimeout(done, ms)); // no frame, which would be drawn for nothing
  const painted = async () => {{ await frame(); await new Promise((done) => setTimeout(done, 0)); }};
  const settled = async () => {{ do await painted(); while (player.cards.waiting); }};
  globalThis.bench = {{
    settled,
    seek: async (step) => {{
      const begin = performance.now();
      player.seek(step);
      await painted();
      return performance.now() - begin;
    }},
    scrub: async (steps) => {{
      const took = [];
      for (const step of steps) took.push(await bench.seek(step));
      return took;
    }},
    play: async (seconds) => {{
      player.seek(0);
      await settled();
      const seen = new Set();
      player.change({{ speed: "8", substeps: false, playing: true }});
      const begin = performance.now();
      while (performance.now() - begin < 1000 * seconds && player.state.playing) {{
        await frame();
        seen.add(player.root.dataset.at);
      }}
      player.change({{ playing: false }});
      return (seen.size - 1) / ((performance.now() - begin) / 1000);
    }},
    frames: async (seconds) => {{
      player.seek(0);
      player.change({{ speed: "1", substeps: true, playing: true }});
      const begin = performance.now();
      let drawn = 0, before = begin, longest = 0;
      while (performance.now() - begin < 1000 * seconds && player.state.playing) {{
        await frame();
        const now = performance.now();
        [drawn, longest, before] = [drawn + 1, Math.max(longest, now - before), now];
      }}
      player.change({{ playing: false }});
      return [drawn / ((performance.now() - begin) / 1000), longest];
    }},
    live: async () => {{
      const before = player.record.version;
      const begin = performance.now();
      document.querySelector("#run-go").click();
      const waiting = () => player.record.version === before || player.root.dataset.at.startsWith("-");
      while (waiting() || player.record.last < 0) await moment(5);
      const first = performance.now() - begin;
      const runs = () => SpecscopeApp.shown.viewer.facts.title || !player.record.check;
      while (runs()) await moment(100); // in here: a question from outside would wake processes while the run goes on
      return [first, player.record.end.summary.tokens_per_second];
    }},
  }};
}}"""


def long_run() -> Trace:
    """Decode with Lookahead (15, 5, 15), longer than what is looked at of it."""
    run = load("pocket", device="cpu").decode(
        PROMPT, "lookahead", max_new_tokens=TOKENS, end_tokens=(), record="full"
    )  # after the end of its answer a model knows little, and few guesses hold
    for _ in run:
        pass
    assert len(run.trace.steps) >= STEPS, "the run is too short to be measured"
    return run.trace


def stream_bytes(trace: Trace) -> int:
    """Count what the page is sent for the first steps, the details that it asks for apart."""
    play = Play(trace.header)
    lines = [play.begin(trace.texts), *(play.step(step) for step in trace.steps[:STEPS]), play.end(trace.summary)]
    return sum(len(line.encode()) for line in lines)


def first_views(chromium: Any, server: Page) -> list[tuple[float, float]]:
    """Return seconds from a visitor's arrival to the opening race's text, and to the stage if they step on at once."""
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


def open_page(chromium: Any, server: Page, *, height: int) -> Any:
    """Open the page as a visitor with an empty cache."""
    page = chromium.new_context(viewport={"width": 1280, "height": height}).new_page()
    page.set_default_timeout(120_000)
    page.goto(server.address, wait_until="commit")
    return page


def replayed(chromium: Any, server: Page, trace: Path, views: Sequence[str]) -> dict[str, float]:
    """Show a long run with text, stage and these views: play it, scrub it, and seek steps at random."""
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
    """Measure what the page holds after everything that can go has gone."""
    devtools.send("Performance.enable")
    for _ in range(3):
        devtools.send("HeapProfiler.collectGarbage")
    return {metric["name"]: metric["value"] for metric in devtools.send("Performance.getMetrics")["metrics"]}


def lived(chromium: Any, server: Page, method: str, rounds: int) -> list[tuple[float, float]]:
    """Return for each round the milliseconds from Run to the first step, and tokens/s in the command line's.

    A machine's speed drifts: a watched run is compared with the mean of the runs before and after it.
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
    """Return the median milliseconds from the press of Run to the first step of SmolLM2, which is loaded."""
    with served("--model", SMOLLM2.name) as server:
        page = run_page(chromium, server, model=SMOLLM2.name, method=method, length=48, prompt=PRIME)
        firsts = [float(page.evaluate("bench.live()")[0]) for _ in range(ROUNDS)]
        page.context.close()
    return statistics.median(firsts)


def live(*, apart: bool = False) -> dict[str, tuple[float, str]]:
    """Measure `lived` over some servers: by method the median of the first steps, and the `shares` of speed.

    `apart` keeps the browser off the engine's cores; half as many rounds are enough for that.
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
    """Write the median, and what half of the rounds lie between."""
    low, middle, high = (f"{100 * ratio:.0f}" for ratio in statistics.quantiles(ratios, n=4))
    return f"{middle}% ({low} to {high})"


@contextlib.contextmanager
def limited_to(cores: list[int]) -> Iterator[None]:
    """Keep what is started in the block on these cores, if any are named."""
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
    """Measure tokens/s of the same run from the command line, on as many threads as the page decodes with."""
    threads = str(max(1, (os.cpu_count() or 1) - 1))
    command = ["run", "--method", method, "--prompt", SUM, "--max-new-tokens", "200", "--record", "full", "--json"]
    printed = subprocess.run(
        [sys.executable, "-m", "decoding", *command, "--threads", threads],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return float(json.loads(printed)["tokens_per_second"])


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
