"""Draws a step of lookahead for the terminal: the window as a grid, and the attention mask."""

from __future__ import annotations

from decoding.codec import Codec
from decoding.tree import closure
from decoding.types import Role, Step

from .paint import Paint, one_line

_CELL = 9  # columns of the terminal for one token
_COLOURS = ("75", "214", "175", "166", "32")  # of the window's rows
_POOL = "36"
_HALVES = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
_ASCII_HALVES = {(0, 0): " ", (1, 0): "'", (0, 1): ".", (1, 1): ":"}


def window_and_mask(paint: Paint, step: Step, codec: Codec) -> str:
    """Draw the window and the mask, each with a line on how to read it."""
    title = f"One step of lookahead (step {step.index}): it fed {len(step.tokens)} tokens in one pass."
    return "\n".join([paint.bold(title), *_grid(paint, step, codec), "", *_mask(paint, step)])


def _grid(paint: Paint, step: Step, codec: Codec) -> list[str]:
    """Draw the window row by row, each column a trajectory read downwards; then the guesses that were verified."""
    rows, room = step.panel["rows"], (paint.width - 14) // _CELL
    lines = ["Window: a row is the target's answer to those above; columns become n-grams."]
    for index, row in enumerate([*rows, step.panel["new"]]):
        shift = 1 if index == 0 else 0  # the last token of the text precedes row 0
        cells = [step.tokens[0], *row][:room] if shift else row[:room]
        name = f"row {index}" if index < len(rows) else "answers"
        colour = _COLOURS[index % len(_COLOURS)] if index < len(rows) else ""
        lines.append(f"  {name:10}" + "".join(paint(_cell(codec, token), colour=colour) for token in cells))
    for guess in step.panel["guesses"]:
        marked = [paint(_cell(codec, token), colour=_POOL) for token in guess[:room]]
        accepted = [*guess[: step.accepted]] == [*step.emitted[: step.accepted]] and step.accepted > 0
        text = "".join(marked)
        lines.append(f"  {'guess':10}{text}" + (paint.bold("← accepted") if accepted else ""))
    return lines


def _cell(codec: Codec, token: int) -> str:
    text = one_line(codec.piece(token)).strip() or "␣"
    return (text if len(text) < _CELL else text[: _CELL - 2] + "…").ljust(_CELL)


def _mask(paint: Paint, step: Step) -> list[str]:
    """Draw the ancestor closure, two rows of it per line of the terminal."""
    seen = closure(step.parents).astype(int)
    halves = _HALVES if paint.unicode else _ASCII_HALVES
    size = min(len(seen), paint.width - 4)
    lines = ["Mask: a row is a fed token; its marks are the tokens it sees, its ancestors."]
    for top in range(0, size, 2):
        below = seen[top + 1] if top + 1 < size else seen[top] * 0
        cells = [halves[int(seen[top][column]), int(below[column])] for column in range(size)]
        lines.append("  " + "".join(paint(cell, colour=_colour(step, i)) for i, cell in enumerate(cells)).rstrip())
    return lines


def _colour(step: Step, node: int) -> str:
    """Return the colour of a node's part of the step."""
    if step.roles[node] is Role.VERIFY:
        return _POOL
    if step.roles[node] is Role.ROOT:
        return _COLOURS[0]
    row = int(step.sources[node].partition(":")[2].split(",")[0])
    return _COLOURS[row % len(_COLOURS)]
