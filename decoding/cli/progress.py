"""A one-line progress bar on stderr, for whatever takes longer than a second; only where a person is looking."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

_PATIENCE = 1.0  # seconds before anything is shown
_WIDTH = 24


class Progress:
    """Call it with what is going on and which share of it is done; as a context it cleans up after itself."""

    def __init__(self) -> None:
        self._begin, self._shown = time.monotonic(), False

    def __call__(self, what: str, share: float) -> None:
        """Draw the bar."""
        if not sys.stderr.isatty() or time.monotonic() - self._begin < _PATIENCE:
            return
        done = round(_WIDTH * min(max(share, 0.0), 1.0))
        sys.stderr.write(f"\r\x1b[K{what} [{'#' * done}{'.' * (_WIDTH - done)}] {100 * share:3.0f}%")
        sys.stderr.flush()
        self._shown = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
