"""The server's log: a line for whatever happens, and no more lines than somebody can read.

What visitors send stands in it cut and with control characters escaped, and an error with its place instead of a
stack trace. Each logger has so many lines in some seconds, at each level: what is above that is counted, and told of
with the next line.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

_LONGEST = 400  # characters of a line
_CALLS = 6  # of an error's stack, the innermost
_LINES, _SECONDS = 20, 10.0


class OneLine(logging.Formatter):
    """A record as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, what happened, and where an error came from."""
        told = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            told += f" ({_place(record.exc_info[1])})"
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        return f"{stamp} {record.levelname.lower()} {visible(told)}"


@dataclass(slots=True)
class _Span:
    begin: float
    lines: int = 0


class Limited(logging.Filter):
    """Lets through some lines of each logger and level in every few seconds."""

    def __init__(
        self, lines: int = _LINES, seconds: float = _SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._lines, self._seconds, self._clock = lines, seconds, clock
        self._spans: dict[tuple[str, int], _Span] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is told; the first of a new span says how many were not."""
        with self._lock:
            now, kept_back = self._clock(), 0
            span = self._spans.setdefault((record.name, record.levelno), _Span(now))
            if now - span.begin >= self._seconds:
                kept_back = max(0, span.lines - self._lines)
                span.begin, span.lines = now, 0
            span.lines += 1
            if span.lines > self._lines:
                return False
        if kept_back:
            record.msg, record.args = f"[{kept_back} lines were left out] {record.getMessage()}", ()
        return True


def visible(text: str, longest: int = _LONGEST) -> str:
    """A text on one line, whatever it holds."""
    cut = text[: longest + 1]
    shown = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in cut)
    return shown if len(shown) <= longest else f"{shown[:longest]}..."


def begin() -> None:
    """Send the logs of this process, and of the libraries in it, to stderr through both."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine())
    handler.addFilter(Limited())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("app").setLevel(logging.INFO)
    logging.captureWarnings(True)


def _place(error: BaseException) -> str:
    calls = traceback.extract_tb(error.__traceback__)[-_CALLS:]
    where = " < ".join(f"{call.filename.rsplit('/', 1)[-1]}:{call.lineno} {call.name}" for call in reversed(calls))
    return f"{type(error).__name__}: {visible(str(error), 160)} at {where}"
