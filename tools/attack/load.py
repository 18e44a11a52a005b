"""Load the page with honest visitors: fifty open it at the same moment while eight watch runs of their own."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import statistics
import threading
import time
from typing import Any

from tools.page import Page, Visitor

PAGES, RUNS, ROUNDS = 50, 8, 12


def fifty_pages(page: Page) -> float:
    """Return the p95 of the page's time in ms, from the moment that all ask."""
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
        # Each from an address of its own; packed, as browsers ask for it.
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
