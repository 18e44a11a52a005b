"""The text as it is written: every token with its fate, and after it the guesses that were not accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from decoding.types import Role, Step

from .. import sources, token_text
from ..fates import emitted_fates
from ..methods import screen_of
from ..palette import FATE_RANGE, FATE_SCALE, MEANINGS, Fate, meanings
from ..run_state import RunState
from ..stream import encode
from ..view import Figure, Patch, View

_GHOSTS = 16  # guesses shown after the text, at most
_COLUMNS = 90  # of the figure's text, in characters


def base(run: RunState) -> Figure:
    """Return nothing: the prompt is in the run's first line."""
    return {}


def frame(run: RunState, k: int) -> Patch:
    """Return the node of every emitted token, and the guesses that were not accepted."""
    step = run.steps[k]
    if not step.tokens:
        return {}
    small = "u1" if len(step.tokens) <= 2**8 else "i2"
    patch = {"nodes": encode.pack(nodes(step), small)}
    if missed := ghosts(step):
        patch["ghosts"] = encode.pack(missed, small)
    return patch


def nodes(step: Step) -> list[int]:
    """Return the node of every emitted token; for the target's own token after them, the node that it answers."""
    taken = [*step.path[1:], step.path[-1]]
    return taken[: len(step.emitted)]


def ghosts(step: Step) -> list[int]:
    """Return the guesses that would have come next: the first rejected one, and down its first branch."""
    below: dict[int, int] = {}
    taken = set(step.path)
    for node, (parent, role) in enumerate(zip(step.parents, step.roles, strict=True)):
        if role is Role.VERIFY and node not in taken:
            below.setdefault(parent, node)
    missed = list[int]()
    at = below.get(step.path[-1])
    while at is not None and len(missed) < _GHOSTS:
        missed.append(at)
        at = below.get(at)
    return missed


def picture(run: RunState, k: int) -> Figure:
    """Return the text up to a step as a figure: below each token the sign of its fate."""
    fates = [Fate.PROMPT] * len(run.header.prompt)
    fates += [fate for step in run.steps[: k + 1] for fate in emitted_fates(step)]
    words = [token_text.shown(run.text(token)) for token in run.ids[: len(fates)]]
    x, y = _wrapped(words)
    look = {"family": "monospace", "size": 13, "color": "$text"}
    writing = _points(x, y, "text", text={"strings": words}, textposition="middle right", textfont=look)
    signs = _points([place + 0.6 for place in x], [height - 0.38 for height in y], "markers")
    signs |= {"marker": {**_by_fate(fates), "size": 7}, "customdata": _origins(run, k)}
    signs |= {"hovertemplate": "%{customdata}<extra></extra>"}
    legend = [
        _points([None], [None], "markers", name=meanings(lossless=run.header.lossless)[fate].label, showlegend=True)
        | {"marker": {"symbol": MEANINGS[fate].symbol, "color": MEANINGS[fate].colour, "size": 8}}
        for fate in (Fate.PROMPT, Fate.ACCEPTED, Fate.CORRECTION, Fate.BONUS, Fate.OWN)
    ]
    layout = {
        "height": max(160, 84 - 30 * min(y)),
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "itemclick": False},
        "xaxis": {"visible": False, "range": [-1, _COLUMNS + 6], "fixedrange": True},
        "yaxis": {"visible": False, "range": [min(y) - 1, 1], "fixedrange": True},
        "margin": {"l": 8, "r": 8, "t": 24, "b": 8},
    }
    return {"data": [writing, signs, *legend], "layout": layout}


def _origins(run: RunState, k: int) -> list[str]:
    """Return the fate of every token up to a step, and of accepted guesses where they came from."""
    words, fate_meanings = screen_of(run.header).source_words, meanings(lossless=run.header.lossless)
    origins = [fate_meanings[Fate.PROMPT].label] * len(run.header.prompt)
    for step in run.steps[: k + 1]:
        guesses = [sources.in_a_sentence(step.sources[node], words) for node in step.path[1:]]
        guesses = [f": {token_text.escaped(source)}" for source in guesses]
        behind = guesses + [""] * (len(step.emitted) - len(guesses))
        origins += [fate_meanings[fate].label + more for fate, more in zip(emitted_fates(step), behind, strict=False)]
    return origins


def _by_fate(fates: Sequence[Fate]) -> dict[str, Any]:
    """Return a marker's symbols and colours by fate."""
    bands = {"cmin": FATE_RANGE[0], "cmax": FATE_RANGE[1], "colorscale": FATE_SCALE}
    return {"symbol": [MEANINGS[fate].symbol for fate in fates], "color": [int(fate) for fate in fates], **bands}


def _wrapped(words: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return where every word begins, in columns and, downwards, in lines."""
    x, y, column, line = list[int](), list[int](), 0, 0
    for word in words:
        if column and column + token_text.width(word) > _COLUMNS:
            column, line = 0, line + 1
        x.append(column)
        y.append(-line)
        ends = word.endswith("↵")
        column, line = (0, line + 1) if ends else (column + token_text.width(word), line)
    return x, y


def _points(x: Sequence[float | None], y: Sequence[float | None], mode: str, **more: Any) -> dict[str, Any]:
    plain = {"type": "scatter", "mode": mode, "x": list(x), "y": list(y), "hoverinfo": "none", "showlegend": False}
    return plain | more


VIEW = View(
    name="text",
    label="Text",
    kind="text",
    look_for="The mark under a token shows who wrote it: an accepted guess, or the target itself.",
    base=base,
    frame=frame,
    grows=True,
    columns=(("Token", "token"), ("Fate", "fate"), ("Where from", "source")),
)
