"""Writes a lesson as a page of text and tables, for readers without scripts: questions first, answers at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from math import floor, log10
from typing import Any

from decoding.types import Role, Trace

from ..fates import node_fates, target_choices
from ..palette import MEANINGS
from ..token_text import shown

CHART_LINK = "Open this chart on the Debug tab"
_LABELS = {meaning.fate: meaning.label for meaning in MEANINGS}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ max-width: 46em; margin: 2em auto; padding: 0 1em; font-family: system-ui, sans-serif; line-height: 1.5; }}
table {{ border-collapse: collapse; break-inside: avoid; }} #answers {{ break-before: page; }}
td, th {{ border: 1px solid; padding: .2em .5em; text-align: left; }}
</style>
</head>
<body>
<h1>{title}</h1>
{screens}
<h2 id="answers">Answers</h2>
<ol>{answers}</ol>
</body>
</html>
"""


def plain_lesson(lesson: Mapping[str, Any], trace: Callable[[str], Trace]) -> str:
    """Return the page; `lesson` is as the page gets it, `trace` returns a recording by its name."""
    asked = [screen for screen in lesson["screens"] if screen["ask"]]
    return _PAGE.format(
        title=escape(lesson["title"]),
        screens="\n".join(_screen(screen, trace) for screen in lesson["screens"]),
        answers="\n".join(f"<li><h3>{escape(screen['title'])}</h3>{_answer(screen, trace)}</li>" for screen in asked),
    )


def _screen(screen: Mapping[str, Any], trace: Callable[[str], Trace]) -> str:
    parts = [f"<h2>{escape(screen['title'])}</h2>", *map(_block, screen["before"])]
    if screen["ask"]:
        parts.append(f"<p><strong>{_words(screen['ask']['question'])}</strong></p>")
        choices = "".join(f"<li>{_words(choice['spans'])}</li>" for choice in screen["ask"]["choices"])
        parts.append(f"<ul>{choices}</ul>" if choices else "")
    show = screen["show"]
    if show and show["phase"] not in ("accept", "commit"):
        parts.append(_table(trace(show["runs"][0]), show["step"], judged=False))
    return "\n".join(parts)


def _answer(screen: Mapping[str, Any], trace: Callable[[str], Trace]) -> str:
    ask, show = screen["ask"], screen["reveal"] or screen["show"]
    right = next((choice for choice in ask["choices"] if choice["right"]), None)
    given = _number(ask["right"]) if isinstance(ask["right"], int | float) else ", ".join(ask["right"] or [])
    parts = [f"<p><strong>{_words(right['spans']) if right else escape(given)}</strong></p>"]
    parts += map(_block, screen["after"])
    if screen["chart"]:
        parts.append(f'<p><a href="../index.html?{escape(screen["chart"])}">{CHART_LINK}</a></p>')
    if show:
        parts.append(_table(trace(show["runs"][0]), show["step"], judged=True))
    return "\n".join(parts)


def _number(value: float) -> str:
    """Write an answer with three digits, or all of those before the point, as the page does."""
    digits = 2 - floor(log10(max(abs(value), 1)))
    return f"{round(value, max(digits, 0)):.10g}"


def _table(trace: Trace, k: int, *, judged: bool) -> str:
    """Return a step's nodes as a table, with their fates only if these may be shown."""
    step = trace.steps[k]

    def text(token: int) -> str:
        return escape(shown(trace.texts.get(token, f"#{token}")))

    head = ["Node", "After", "Token"] + (["The target's word after it", "What became of it"] if judged else [])
    rows = []
    for node, (token, parent, role) in enumerate(zip(step.tokens, step.parents, step.roles, strict=True)):
        cells = [f"n{node}", "" if role is Role.ROOT else f"n{parent}", text(token)]
        if judged:
            choice = target_choices(step)[node]
            cells += ["" if choice < 0 else text(choice), escape(_LABELS[node_fates(step)[node]])]
        rows.append("".join(f"<td>{cell}</td>" for cell in cells))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    caption = f"Step {k} of {escape(trace.header.method)}"
    return f"<table><caption>{caption}</caption><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>{body}</table>"


def _block(block: Mapping[str, Any]) -> str:
    words = _words(block["spans"])
    return f"<ul><li>{words}</li></ul>" if block["kind"] == "li" else f"<p>{words}</p>"


def _words(spans: list[dict[str, str]]) -> str:
    tags = {"bold": "strong", "code": "code"}
    return "".join(
        f"<{tags[span['kind']]}>{escape(span['text'])}</{tags[span['kind']]}>"
        if "kind" in span
        else escape(span["text"])
        for span in spans
    )
