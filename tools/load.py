"""Load the page with honest visitors: `make load`, or `python -m tools.load`.

Fifty open the page at the same moment while eight watch their runs. Then fifty run a prompt, eight at a time and all at
once, every other one by the API; visitors and server both count how many were served and how many refused.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import re
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tools.page import Page, Visitor, serving

PAGES, RUNS, ROUNDS = 50, 8, 12
SERVED, REFUSED = "served", "refused"
_FULL = "waiting already"
_RUNS = re.compile(r'specscope_runs_total\{.*outcome="(?:length|end_of_text|stop)".*\} (\S+)')
_REFUSALS = re.compile(r'specscope_refusals_total\{reason="queue"\} (\S+)')
FLAGS = ("--model", "pocket", "--api", "--metrics")


def run_many(page: Page, visitors: int, at_once: int, tokens: int = 64) -> Counter[str]:
    """Let `visitors` visitors run a prompt, each from its own address; RuntimeError for an unexpected answer."""

    def one(number: int) -> str:
        visitor = Visitor(page.port, f"127.0.3.{number + 1}")
        if number % 2:
            lines = visitor.run(170, run_length=tokens)
            outcome = SERVED if '"kind":"check"' in lines else REFUSED if _FULL in lines else lines[-300:]
        else:
            reply = visitor.program("/v1/decode", {"prompt": "The tide", "max_new_tokens": tokens}, 170)
            full = reply.status == 429 and _FULL in reply.text
            outcome = SERVED if reply.status == 200 else REFUSED if full else f"{reply.status} {reply.text[:300]}"
        if outcome not in (SERVED, REFUSED):
            raise RuntimeError(outcome)
        return outcome

    page.visitor().read()
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return Counter(pool.map(one, range(visitors)))


def counted(page: Page) -> Counter[str]:
    """Read the server's counts: runs that ended by themselves, and jobs that the full queue refused."""
    text = page.visitor().ask("GET", "/metrics").text
    kinds = {SERVED: _RUNS, REFUSED: _REFUSALS}
    return Counter({kind: int(sum(map(float, pattern.findall(text)))) for kind, pattern in kinds.items()})


def fifty_pages(page: Page) -> float:
    """Return the p95 of the page's time in ms, from the moment of all requests."""
    results: multiprocessing.Queue[list[float]] = multiprocessing.Queue()
    end = multiprocessing.Event()
    watching = multiprocessing.Process(target=_watch, args=(page.port, end), daemon=True)
    opening = multiprocessing.Process(target=_open, args=(page.port, results), daemon=True)
    watching.start()
    time.sleep(1.5)  # until the first run writes
    opening.start()
    times = results.get(timeout=120)
    end.set()
    opening.join()
    watching.join(120)
    return 1000 * statistics.quantiles(times, n=20)[-1]


def _open(port: int, results: Any) -> None:
    times = list[float]()

    def one(number: int) -> None:
        together.wait()
        begin = time.monotonic()
        # Each from its own address; compressed, as browsers request it.
        answer = Visitor(port, f"127.0.1.{number + 1}").ask("GET", "/", Accept_Encoding="gzip")
        times.append(time.monotonic() - begin if answer.status == 200 else 60.0)

    for _ in range(ROUNDS):
        together = threading.Barrier(PAGES)
        with concurrent.futures.ThreadPoolExecutor(PAGES) as pool:
            list(pool.map(one, range(PAGES)))
        time.sleep(0.3)
    results.put(times)


def _watch(port: int, end: Any) -> None:
    def run(number: int) -> None:
        while not end.is_set():
            Visitor(port, f"127.0.2.{number + 1}").run(170, run_length=128)

    threads = [threading.Thread(target=run, args=[number]) for number in range(RUNS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> int:
    """Load a server and print the results."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "log", *FLAGS) as page:
        page.visitor().run(60, run_length=8)
        sys.stdout.write(f"{PAGES} pages at once beside {RUNS} live runs: p95 {fifty_pages(page):.0f} ms.\n")
        page.visitor().run(170, run_length=8)
        for at_once in (RUNS, PAGES):
            before = counted(page)
            theirs = run_many(page, PAGES, at_once)
            ours = counted(page)
            ours.subtract(before)
            sys.stdout.write(f"{PAGES} visitors, {at_once} at once: {dict(theirs)}; by the server: {dict(ours)}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
