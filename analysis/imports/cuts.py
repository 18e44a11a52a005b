"""Finds where in its text the steps of a record begin.

An engine counts its steps with guesses; the first pass, which reads the prompt, writes one token without any. So
1 + the sum of (accepted + 1) is the number of tokens, unless steps had no guess (then it is less: engines leave these
out, and their positions are unknown) or the last step was cut by the end of the text (then it is more).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from .acceptance import MOST_STEPS, Acceptance
from .fields import Fields
from .tables import ImportedRows

UNORDERED = "a record that counts its steps in a histogram knows no order"
ONLY_GUESSING = "the record counts steps with guesses alone, not the pass that reads the prompt"
UNPLACED = "the record leaves out steps without a guess, so the positions of the others are unknown"
SEVERAL_RUNS = {  # why a record that sums up many runs lacks these columns
    "steps.start": UNORDERED,
    "steps.step": UNORDERED,
    "steps.first": ONLY_GUESSING,
    "runs.question": "a record is a whole set of prompts, so that questions cannot be told apart",
}


class TokenCount(NamedTuple):
    """Where a record counts the tokens of an answer: an object and the name in it."""

    fields: Fields
    name: str


def starts_of(written: Sequence[int], prompt: int) -> list[int]:
    """Return the length of the text before each step."""
    return [*accumulate(written, initial=prompt)][:-1]


def add_steps(
    tables: ImportedRows, counted: TokenCount, run: int, acceptance: Acceptance, tokens: int, prompt: int | None
) -> None:
    """Add the steps of a run of so many tokens; `counted` says where the record counts them."""
    columns, reasons = _step_columns(counted, acceptance, tokens, prompt)
    tables.missing |= reasons
    tables.add_steps(counted.fields.where, run, drafts=acceptance.drafts, **columns)


def _step_columns(
    counted: TokenCount, acceptance: Acceptance, tokens: int, prompt: int | None
) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Make the columns of the steps of a run of so many tokens; and the reasons why columns are unknown."""
    fields, what = counted
    accepted, drafted = [*acceptance.accepted], [*acceptance.drafted]
    if tokens < 1 and not accepted:
        return {"accepted": [], "written": [], "drafted": []}, {}
    whole = 1 + sum(accepted) + len(accepted)
    # Which step was the last one is not known without an order: the longest can have lost as many tokens as any.
    last = len(accepted) - 1 if acceptance.ordered or not accepted else accepted.index(max(accepted))
    if whole > tokens and whole - (accepted[last] if accepted else 0) > tokens:
        fields.refuse(what, f"is {tokens}, but 1 + the sum of (accepted + 1) over all steps is {whole}")
    without = max(0, tokens - whole)
    if without > MOST_STEPS:
        fields.refuse(what, f"is {tokens}, which makes more than the {MOST_STEPS} steps that are read")
    written = [each + 1 for each in accepted]
    if whole > tokens:
        written[last] -= whole - tokens  # the text ended in the middle of the last step
    placed = acceptance.ordered and not without
    columns: dict[str, list[Any]] = {
        "accepted": [0, *accepted, *[0] * without],
        "written": [1, *written, *[1] * without],
        "drafted": [0, *drafted, *[0] * without],
    }
    if placed and prompt is not None:
        columns["start"] = starts_of(columns["written"], prompt)
    if placed:
        return columns, {}
    if acceptance.ordered:
        return columns, {"steps.start": UNPLACED}
    return columns, {"steps.start": UNORDERED, "steps.step": UNORDERED}
