"""The Debug page at size: `python -m benchmarks.debug`.

It opens many copies of the shipped run folder as one, in the page's server and a headless browser on the same cores.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from analysis.store.folder import read_folder, renumbered, write_folder
from app.store.run_folders import SHIPPED
from tools.browser import browser, served

from .measure import command, conditions, table

COPIES = 28  # 103,040 steps
# Filters over the steps of all methods, as in an address: by steps, and by their guesses.
FILTERS = tuple(
    f"f.method=*&{each}"
    for each in ("f.accepted=2", "f.rejected_at=3", "f.p_to=0.1", "f.depth=2&f.p_from=0.5", "f.text=the", "f.wanted=is")
)
COUNT = "document.querySelector('.app-debug-count').textContent"
OPEN = """async (query) => {
  const before = SpecscopeApp.shown.debug.opened, begin = performance.now();
  await SpecscopeApp.shown.debug.load(query, true);
  while (SpecscopeApp.shown.debug.opened === before) await new Promise(requestAnimationFrame);
  return (performance.now() - begin) / 1000;
}"""


def larger(folder: Path, out: Path) -> tuple[int, int]:
    """Write several copies of the folder as one, and count its steps and nodes."""
    stored = read_folder(folder)
    tables = {"runs": stored.runs, "steps": stored.steps, "nodes": stored.nodes}
    copies = [renumbered(tables, copy * len(stored.runs)) for copy in range(COPIES)]
    runs, steps, nodes = (pa.concat_tables([copy[name] for copy in copies]) for name in tables)
    write_folder(out, runs, steps, nodes, {"source": "specscope", "name": "The suite"})
    return len(steps), len(nodes)


def watched(chromium: Any, folder: Path) -> tuple[float, list[float], float]:
    """Return the seconds to open the folder, the seconds of filters, and the server's megabytes after them."""
    with served("--replay-only", "--runs", str(folder)) as server:
        page = chromium.new_page()
        page.goto(f"{server.address}?screen=debug")
        page.wait_for_function("globalThis.SpecscopeApp?.shown.debug?.opened.facts")
        listed: list[dict[str, str]] = page.evaluate("SpecscopeApp.shown.debug.opened.folders")
        folder_id = next(each["id"] for each in listed if each["id"].startswith("own-"))
        address = f"screen=debug&folder={folder_id}"
        opened = ask(page, address)
        filtered = [ask(page, f"{address}&{each}") for each in FILTERS]
        page.wait_for_function("!SpecscopeApp.shown.debug.cards.asking")  # its charts too
        return opened, filtered, server.megabytes


def ask(page: Any, query: str) -> float:
    """Return the seconds until the page shows how many rows a query selects."""
    taken: float = page.evaluate(OPEN, query)
    assert "steps chosen" in page.evaluate(COUNT), page.evaluate(COUNT)
    return taken


def report() -> str:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as place, browser() as chromium:
        large = Path(place) / "large"
        steps, nodes = larger(SHIPPED / "pocket", large)
        opened, filtered, memory = watched(chromium, large)
    rows: Sequence[Sequence[str]] = [
        ["", "measured", "bar"],
        [f"opening a folder of {steps:,} steps and {nodes:,} nodes, s", f"{opened:.2f}", "3"],
        ["a filter over them, s (median)", f"{statistics.median(filtered):.2f}", "0.5"],
        ["the slowest filter, s", f"{max(filtered):.2f}", ""],
        ["memory of the page's server, MB", f"{memory:.0f}", "1500"],
    ]
    where = conditions(f"{os.cpu_count()} cores", "Chromium", packages=("duckdb", "pyarrow"))
    return f"{where}.\n\n{table(rows)}"


if __name__ == "__main__":
    command("debug", __doc__, report)
