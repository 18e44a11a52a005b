"""Recorded runs of all methods, and changed ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from decoding.shares import cut
from decoding.trace.file import read_trace
from decoding.trace.metrics import summarise
from decoding.types import Step, Timing, Trace
from tests import GOLDEN, ROOT

METHODS = (
    "autoregressive",
    "jacobi",
    "lookahead",
    "draft_model",
    "prompt_lookup",
    "suffix",
    "ngrammys",
    "token_recycling",
    "medusa",
    "kangaroo",
    "eagle3",
    "dflash",
    "ouroboros",
    "rest",
)
QUICK = {"lookahead", "ngrammys", "draft_model", "medusa", "eagle3"}  # each with parts of its own on the screen
# Texts that a page must not run, a figure not read as tags, and a sentence not be turned around by.
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "${document.title}",
    "`",
    "</script><script>alert(1)</script>",
    "<b>bold</b>",
    "$accepted",
    "\u202edesrever",
    "\u05e9\u05dc\u05d5\u05dd",
    "a\u200bb",
    "\u0301" * 40,
    "x" * 10_000,
    "\ud800",
    "\u2028",
    "\x00",
    "%{x}",
    "&lt;i&gt;",
)


@cache
def record(method: str) -> Trace:
    """Record a short run."""
    return read_trace(GOLDEN / f"{method}.jsonl")


@cache
def recorded(name: str) -> Trace:
    """Make a run of the gallery."""
    return read_trace(ROOT / "assets" / "traces" / f"{name}.jsonl.gz")


def divided(trace: Trace, ranks: int) -> Trace:
    """Return the same run as if several processes had read its trees."""
    steps = tuple(
        replace(step, ranks=cut(step.parents, ranks).readers, exchanged=40 + step.index) for step in trace.steps
    )
    return replace(trace, header=replace(trace.header, ranks=ranks), steps=steps)


def timed(trace: Trace) -> Trace:
    """Return the same run with times, which recordings that must be equal on every machine do not have."""
    times = (
        Timing(0.5 + k % 3, 2.0 + k % 5, 0.25, 0.125 * (k % 2), 6.0 + k % 3 + k % 5) for k in range(len(trace.steps))
    )
    steps = tuple(replace(step, timing=timing) for step, timing in zip(trace.steps, times, strict=True))
    return replace(trace, steps=steps, summary=summarise(steps, "length", ""))


def hostile(trace: Trace) -> Trace:
    """Return the same run with hostile texts in the place of its tokens' own."""
    return replace(trace, texts={token: HOSTILE[token % len(HOSTILE)] for token in trace.texts})


def changed(trace: Trace, k: int, **fields: Any) -> Trace:
    """Return the same run with another step k."""
    step: Step = replace(trace.steps[k], **fields)
    return replace(trace, steps=(*trace.steps[:k], step, *trace.steps[k + 1 :]))


def parsed(lines: str) -> list[dict[str, Any]]:
    """Return a stream's lines."""
    return [json.loads(line) for line in lines.splitlines()]


def strings_in(value: Any) -> Iterable[str]:
    """Yield all texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from strings_in(part)


def expanded(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a stream's lines with everything in them that they only refer to."""
    values: list[Any] = []
    got = []
    for line in lines:
        values += line.get("values", ()) if line["kind"] == "values" else ()
        got.append(_whole(line, values) if line["kind"] == "step" else line)
    return got


def _whole(value: Any, values: list[Any]) -> Any:
    if isinstance(value, dict):
        return (
            values[value["same"]] if "same" in value else {name: _whole(part, values) for name, part in value.items()}
        )
    return [_whole(part, values) for part in value] if isinstance(value, list) else value
