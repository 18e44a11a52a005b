"""The server's log: one line per record, as text or as JSON, rate-limited.

Text of visitors is truncated and its control characters are escaped; an error has its innermost calls instead
of a stack trace. Each logger may write so many lines in some seconds at each level; dropped lines are counted, and the
next line says how many.

A record may hold facts beside its message, as `extra={"facts": {"event": "run", ...}}`: never a prompt or an answer.
`metrics.py` counts the same records, so what is logged and what is counted cannot differ.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_log = logging.getLogger(__name__)
_LONGEST = 400  # characters of a line
_CALLS = 6  # of an error's stack, the innermost
_LINES, _SECONDS = 20, 10.0


class OneLineFormatter(logging.Formatter):
    """Formats a record as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, message, and the position of an error."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        return f"{stamp} {record.levelname.lower()} {_message(record)}"


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line, for collectors of many servers' logs."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger and message, and the facts of the record."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        return json.dumps(line | facts_of(record))


@dataclass(slots=True)
class _Span:
    begin: float
    lines: int = 0


class RateLimitFilter(logging.Filter):
    """Passes a limited number of records of each logger and level in each time span."""

    def __init__(
        self, lines: int = _LINES, seconds: float = _SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._lines, self._seconds, self._clock = lines, seconds, clock
        self._spans: dict[tuple[str, int], _Span] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if a record passes; the first of a new span says how many were dropped."""
        with self._lock:
            now, dropped = self._clock(), 0
            span = self._spans.setdefault((record.name, record.levelno), _Span(now))
            if now - span.begin >= self._seconds:
                dropped = max(0, span.lines - self._lines)
                span.begin, span.lines = now, 0
            span.lines += 1
            if span.lines > self._lines:
                return False
        if dropped:
            record.msg, record.args = f"[{dropped} lines dropped] {record.getMessage()}", ()
        return True


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Return a text as one line: truncated, control characters escaped."""
    cut = text[: longest + 1]
    shown = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in cut)
    return shown if len(shown) <= longest else f"{shown[:longest]}..."


def facts_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the facts of a record; most have none."""
    facts: dict[str, Any] = getattr(record, "facts", {})
    return facts


def configure(as_json: bool = False) -> None:
    """Configure logging of this process and its libraries: to stderr, formatted and rate-limited.

    Gradio prints the stack traces of the errors that it catches, and Python those of threads; they become lines too.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else OneLineFormatter())
    handler.addFilter(RateLimitFilter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("app").setLevel(logging.INFO)
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # else a record that cannot be written is reported with a stack trace
    traceback.print_exc = _log_caught
    threading.excepthook = lambda thrown: _log_error("a thread failed", thrown.exc_value)
    sys.unraisablehook = lambda thrown: _log_error("an error could not be raised", thrown.exc_value)


def _log_caught(limit: int | None = None, file: object = None, chain: bool = True) -> None:
    """Log the error that is being handled; in place of traceback.print_exc."""
    _log_error("an error was caught", sys.exception())


def _log_error(message: str, error: BaseException | None) -> None:
    _log.error(message, exc_info=error)


def _message(record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.exc_info and record.exc_info[1] is not None:
        text += f" ({_place(record.exc_info[1])})"
    return one_line(text)


def _place(error: BaseException) -> str:
    calls = traceback.extract_tb(error.__traceback__)[-_CALLS:]
    where = " < ".join(f"{call.filename.rsplit('/', 1)[-1]}:{call.lineno} {call.name}" for call in reversed(calls))
    return f"{type(error).__name__}: {one_line(str(error), 160)} at {where}"
