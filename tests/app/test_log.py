"""The server's log: one line each, and not too many."""

from __future__ import annotations

import logging

import pytest

from app.log import OneLineFormatter, RateLimitFilter, one_line


def record(text: str, name: str = "app", level: int = logging.INFO, **more: object) -> logging.LogRecord:
    made = logging.LogRecord(name, level, "x.py", 1, text, (), None)
    vars(made).update(more)
    return made


@pytest.mark.parametrize(
    "text", ["a\nb", "a\rb", "\x1b[31m", "a\u2028b", "\u202eevil", "\ud800", "\x00", "x" * 100_000]
)
def test_whatever_is_told_stays_on_one_short_line(text: str) -> None:
    line = OneLineFormatter().format(record(text))
    assert line.isprintable() and len(line) < 500 and len(line.splitlines()) == 1
    line.encode()


def test_an_error_is_told_with_its_place_and_no_stack_trace() -> None:
    try:
        int("no\nnumber")
    except ValueError as error:
        line = OneLineFormatter().format(record("it failed", exc_info=(ValueError, error, error.__traceback__)))
    assert "it failed (ValueError: invalid literal" in line and "test_log.py:" in line and "\n" not in line


def test_letters_of_all_languages_stay_readable() -> None:
    assert one_line("größe 你好") == "größe 你好" and one_line("a\tb") == "a\\tb"


def test_a_flood_is_counted_and_hides_nothing_else() -> None:
    now = 0.0
    limited = RateLimitFilter(lines=3, seconds=10.0, clock=lambda: now)
    assert [limited.filter(record("flood")) for _ in range(100)].count(True) == 3
    assert limited.filter(record("a fault", level=logging.ERROR)) and limited.filter(record("x", name="uvicorn"))
    now = 11.0
    late = record("flood")
    assert limited.filter(late) and late.getMessage() == "[97 lines dropped] flood"
    assert not [
        each for each in range(5) if limited.filter(record("flood")) and "dropped" in record("flood").getMessage()
    ]
