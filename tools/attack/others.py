"""Visit during an attack: one visitor times the page, the other runs a prompt repeatedly."""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import threading
import time
from typing import Any

from tools.page import Page, Visitor


class Others:
    """Two visitors in a separate process, so that the attacker's work does not slow their measurements."""

    def __init__(self, page: Page) -> None:
        self._end = multiprocessing.Event()
        self._results: multiprocessing.Queue[tuple[list[float], int, int]] = multiprocessing.Queue()
        self._process = multiprocessing.Process(target=_watch, args=(page.port, self._end, self._results), daemon=True)
        self._process.start()
        self.p95_ms, self.finished = 0.0, ""
        time.sleep(0.5)  # until both have started

    def stop(self) -> None:
        """Let the current run end, and collect the results."""
        self._end.set()
        times, done, begun = self._results.get(timeout=180)
        self._process.join()
        self.p95_ms = 1000 * (statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0])
        self.finished = f"{done} of {begun}"


def _watch(port: int, end: Any, results: Any) -> None:
    times, done, begun = list[float](), 0, 0

    def look() -> None:
        while not end.is_set():
            start = time.monotonic()
            answer = Visitor(port).ask("GET", "/")
            times.append(time.monotonic() - start if answer.status == 200 else 60.0)
            time.sleep(0.05)

    looking = threading.Thread(target=look)
    looking.start()
    while True:
        begun += 1
        try:
            done += '"kind":"check"' in Visitor(port).run(170, run_length=64)
        except (OSError, AssertionError) as error:
            sys.stderr.write(f"a visitor's run failed: {error!r}\n")
        if end.is_set():
            break
        time.sleep(0.3)
    looking.join()
    results.put((times, done, begun))
