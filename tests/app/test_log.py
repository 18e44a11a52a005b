"""The server's log: one line each, and not too many."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from app.server.log import OneLineFormatter, RateLimitFilter, one_line
from tools import ROOT


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


# A page whose events fail in every way in which Gradio catches an error, and visitors who press all of its buttons.
FAILING = """
import json, socket, sys, threading, time
import gradio as gr
from app.server import log, serving as server
from app.server.middleware.origin import Owner
from app.server.middleware.session_tracker import SessionTracker
from tools.page import Visitor, free_port

def at_once(): raise ValueError("at once\\nforged")
def later():
    yield "first"
    raise KeyError("later")
def refused(): raise gr.Error("refused")
class Left:
    def __del__(self): raise OSError("in the collector")

log.configure()
with gr.Blocks(analytics_enabled=False) as page:
    text = gr.Textbox()
    text.submit(at_once, None, text, queue=False)
    for function in (at_once, later, refused):
        text.submit(function, None, text)
    page.unload(at_once)
port = free_port()
running = server.Running(page, server.Site(""), SessionTracker(), Owner()).start("127.0.0.1", port)
for number in range(4):
    tab = Visitor(port)
    tab.post("/queue/join" if number else "/run/predict", tab.event(number, []))
    if number:
        assert not [each for each in tab.stream() if each["msg"] == "process_completed"][-1]["success"]
thread = threading.Thread(target=at_once)
thread.start()
thread.join()
Left()
logging = log.logging.getLogger("library")
logging.error("too few %s %s", 1)
running.stop()
"""


@pytest.mark.slow  # a server of its own
def test_no_error_that_gradio_or_python_catches_is_told_with_a_stack_trace() -> None:
    """A failing event printed three kilobytes past the limits of the log."""
    done = subprocess.run([sys.executable, "-c", FAILING], cwd=ROOT, capture_output=True, text=True, timeout=60)
    told = done.stderr
    assert done.returncode == 0, told
    for error in ("ValueError: at once\\nforged", "KeyError: 'later'", "Error: 'refused'", "OSError: in the collector"):
        assert error in told
    assert "Traceback" not in told + done.stdout and "\nforged" not in told
    assert all(line.startswith("20") and len(line) < 500 for line in told.splitlines()), told
