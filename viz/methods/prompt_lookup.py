"""Prompt lookup on the screen: a chain, and the position of the text that it was copied from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from decoding.methods.panels import PromptLookupPanel
from decoding.types import Header, Role, Step

from ..boards import board
from ..boards.board import Board, alone
from ..fates import emitted_fates
from ..palette import Fate
from ..panels import panel_reader
from ..run_state import RunState
from ..sources import SHARED_WORDS, in_a_sentence, parse
from ..tables import Table, TableRow, fate_label, fates_of, texts_of
from ..view import Figure, Patch, Picture
from ..wording import count, quote
from .base import Screen
from .stages import prompt_lookup as on_stage
from .stages.prompt_lookup import params_of

_BEFORE = 2  # tokens shown before a match
_NOW, _WRITTEN = 2.4, 3.6  # rows of the text and of what the target wrote
_WORDS = 15.5  # columns that the words above them need
_SOURCES = {"reference": "copied from position {0} of the reference"}

panel_of = panel_reader(PromptLookupPanel)


def _shown(header: Header) -> tuple[int, int]:
    """Return tokens shown of an ending, and of a copy."""
    params = params_of(header)
    return min(8, params.max_ngram), min(10, params.K)


def base(run: RunState) -> Figure:
    """Return the two positions in the text without a step."""
    n, K = _shown(run.header)
    return board.base(-n - _BEFORE - 3.2, max(K + 1.5, _WORDS - n - _BEFORE), 4.5, "Copied passage")


def frame(run: RunState, k: int) -> Patch:
    """Return the end of the text above its earlier occurrence, and what followed there."""
    step, board = run.steps[k], Board()
    widest, K = _shown(run.header)
    left = -widest - _BEFORE
    guesses = range(1, len(step.tokens))
    board.label("the text now", left - 0.6, _NOW)
    board.label("the target", left - 0.6, _WRITTEN)
    for back in range(min(-left + 1, step.start)):
        place = step.start - 1 - back
        board.context(run.ids[place], -back, _NOW, Fate.PROMPT if back else Fate.ROOT, -1 if back else 0)
    for x, (token, fate) in enumerate(zip(step.emitted, emitted_fates(step), strict=True), start=1):
        if x <= K + 1:
            board.learned(token, x, _WRITTEN, fate)
    copy = _copy(run, step)
    if copy is None:
        board.alone(SCREEN.why_no_guess(run, step), left)
        return {"data": board.patch(step)}
    board.outcome(copy.where, left, 0)
    board.label("earlier", left - 0.6, 1)
    behind = range(1 - len(copy.ending), 1)
    for x, token in zip(behind, copy.ending, strict=True):
        board.context(token, x, 1, Fate.PROMPT)
    for x in list(guesses)[:K]:
        board.context(step.tokens[x], x, 1, Fate.PROMPT)
        board.guess(x, x, _NOW)
    xs: list[float | None] = []
    for back in range(min(copy.n, widest)):
        xs += [-back, -back, None]
    ties = {"x": xs, "y": [1.5, _NOW - 0.5, None] * (len(xs) // 3)}
    return {"data": [*board.patch(step), {}, ties]}


def rows(run: RunState, k: int) -> Table:
    """Return copied passage, the text and what the target wrote, as a table."""
    step, copy = run.steps[k], _copy(run, run.steps[k])
    widest, _ = _shown(run.header)
    text = run.ids[max(0, step.start - widest - _BEFORE - 1) : step.start - 1]
    fates = fates_of(step, range(len(step.tokens)), len(text))
    table_rows = [TableRow((texts_of(run, [*text, *step.tokens]), "the text now", fates), 0 if step.tokens else -1)]
    if copy is not None:
        table_rows.insert(0, TableRow((texts_of(run, [*copy.ending, *step.tokens[1:]]), "earlier", None)))
    written = ", ".join(map(fate_label, emitted_fates(step)))
    table_rows.append(TableRow((texts_of(run, step.emitted), "the target", written), since="commit"))
    sentence = alone(SCREEN.why_no_guess(run, step)) if copy is None else copy.where
    return Table(("Tokens", "Text", "Fates"), table_rows, (sentence,))


class _Copy(NamedTuple):
    """Where a guess was copied from."""

    n: int  # tokens of the ending that occur there, too
    ending: Sequence[int]  # the tokens before the copied ones
    where: str


def _copy(run: RunState, step: Step) -> _Copy | None:
    """Return the position that the step's guess was copied from; None if it guesses nothing."""
    n = min(panel_of(step).get("n", 0), step.start)
    if n < 1 or len(step.tokens) < 2:
        return None
    widest, _ = _shown(run.header)
    kind, places = parse(step.sources[1])
    place = places[0] if places else 0
    source = run.header.reference if kind == "reference" else run.ids[: step.start]
    first = max(0, place - min(n, widest + 1) - _BEFORE)
    return _Copy(n, source[first:place], _where(kind, place, n))


def _where(kind: str, place: int, n: int) -> str:
    """Say where the copy begins."""
    where = {"prompt": "in the prompt", "output": "in the new text", "reference": "in the reference"}.get(kind, "")
    ending = "token also occurs" if n == 1 else f"{n} tokens also occur"
    return f"the last {ending} {where} before position {place}; the guesses are what followed"


def _origin(run: RunState, step: Step) -> str:
    first = next(source for source, role in zip(step.sources, step.roles, strict=True) if role is Role.VERIFY)
    ending = panel_of(step).get("ending", [])
    behind = f", after an earlier {quote(run, ending)}" if ending else ""
    return f", {in_a_sentence(first, SHARED_WORDS | _SOURCES)}{behind}"


def _no_guess(run: RunState, step: Step) -> str:
    params = params_of(run.header)
    if panel_of(step).get("n"):
        return "the copy begins with an end of text" if params.stop_at_end else ""
    if params.tail == "full":
        return f"no earlier occurrence of the end of the text is followed by {count(params.K, 'token')}"
    return "the end of the text did not occur before"


SCREEN = Screen(
    chain=True,
    sources=_SOURCES,
    origin=_origin,
    no_guess=_no_guess,
    pool=Picture(base, frame, rows),
    stage=on_stage.STAGE,
    depth=lambda header: params_of(header).K,
)
