"""A one-line progress bar on stderr for work that takes longer than a second; only on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

_PATIENCE = 1.0  # seconds before anything is shown
_WIDTH = 24


class ProgressBar:
    """A bar that is called with a phase and the share of it that is done; the context manager removes it at the end."""

    def __init__(self) -> None:
        self._begin, self._lock, self._closed = time.monotonic(), threading.Lock(), False
        self._line = self._drawn = ""
        self._timer: threading.Timer | None = None

    def __call__(self, what: str, share: float) -> None:
        """Update the bar; it is drawn after one second, even without a further call."""
        if not sys.stderr.isatty():
            return
        done = round(_WIDTH * min(max(share, 0.0), 1.0))
        with self._lock:
            self._line = f"{what} [{'#' * done}{'.' * (_WIDTH - done)}] {100 * share:3.0f}%"
            delay = self._begin + _PATIENCE - time.monotonic()
            if delay <= 0:
                self._draw()
            elif self._timer is None and not self._closed:
                self._timer = threading.Timer(delay, self._wake)
                self._timer.daemon = True  # a bar is no reason to keep the program alive
                self._timer.start()

    def close(self) -> None:
        """Remove the bar for good; later calls draw nothing."""
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            if self._drawn:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
                self._drawn = ""

    def _wake(self) -> None:
        with self._lock:
            self._draw()

    def _draw(self) -> None:
        """Draw the line if it has changed; the lock is held."""
        if self._closed or self._line == self._drawn:
            return
        sys.stderr.write(f"\r\x1b[K{self._line}")
        sys.stderr.flush()
        self._drawn = self._line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def resumable(where: str) -> Iterator[ProgressBar]:
    """Show a bar during work that can be stopped, and tell the user `where` the same command resumes it."""
    try:
        with ProgressBar() as progress:
            yield progress
    except KeyboardInterrupt:
        sys.stderr.write(f"specscope: stopped; the same command resumes {where}\n")
        raise
