"""The landscape of a text as rows of cells, in the words that the page and notebooks share.

It is made from the result of `measure_landscape`: a column for each token of the text, a row for each method, and in
each cell what a step of the method would have done if it began before the token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import token_text
from .wording import count

OTHER = "≠"  # before a token that the target would not have chosen
NO_GUESS = "·"
LEGEND = (
    f"A digit is how many guesses the target would accept; {NO_GUESS} is no guess; "
    f"{OTHER} marks a token that is not the target's choice."
)
_NAMED = 4  # first guesses that are named

Landscape = Mapping[str, Any]  # what `measure_landscape` returns


@dataclass(frozen=True, slots=True)
class Column:
    """A token of the text."""

    text: str  # with everything visible
    is_choice: bool  # whether it is the target's choice
    words: str


@dataclass(frozen=True, slots=True)
class LandscapeRow:
    """A method's cells: the three lists have an entry for each token."""

    label: str
    settings: str
    mean: str
    accepted: list[int | None]  # None: no step can begin there
    signs: list[str]
    words: list[str]


def measured_tokens(landscape: Landscape) -> list[Column]:
    """Return the tokens that were measured."""
    tokens, first, choices = landscape["tokens"], landscape["first"], landscape["choices"]
    shown = list[Column]()
    for place, token in enumerate(tokens[first:], start=first):
        words = f"token {place - first + 1} of {len(tokens) - first}, {_quoted(landscape, [token])}"
        chosen = token == choices[place - 1]
        if not chosen:
            words += f" where the target chooses {_quoted(landscape, [choices[place - 1]])}"
        shown.append(Column(token_text.shown(_text(landscape, token)), chosen, words))
    return shown


def rows(landscape: Landscape) -> list[LandscapeRow]:
    """Return the methods that were measured."""
    return [_row(landscape, method) for method in landscape["methods"]]


def _row(landscape: Landscape, method: Mapping[str, Any]) -> LandscapeRow:
    cells = list(zip(*(method[name] for name in ("accepted", "drafted", "guesses", "written")), strict=True))
    return LandscapeRow(
        label=method["label"],
        settings=method["settings"],
        mean="–" if method["mean_accepted"] is None else f"{method['mean_accepted']:.2f}",
        accepted=[*method["accepted"]],
        signs=["" if accepted is None else str(accepted) if drafted else NO_GUESS for accepted, drafted, *_ in cells],
        words=[_words(landscape, *cell) for cell in cells],
    )


def _words(
    landscape: Landscape, accepted: int | None, drafted: int, guesses: Sequence[int], written: Sequence[int]
) -> str:
    """Say what a step would have done at a cell."""
    if accepted is None:
        return "the text before this token is too short for a step"
    writes = f"the step writes {_quoted(landscape, written)}"
    if not drafted:
        return f"no guess; {writes}"
    named = ", ".join(_quoted(landscape, [token]) for token in guesses[:_NAMED])
    more = ", …" if len(guesses) > _NAMED else ""
    first = "first guess" if len(guesses) == 1 else "first guesses"
    return f"{first} {named}{more}; {accepted} of {count(drafted, 'guess', 'guesses')} accepted; {writes}"


def sentence(row: str, column: str, cell: str) -> str:
    """Return all words of a cell; the page's script joins the three in the same way."""
    return f"{row} at {column}: {cell}."


def about_text(columns: Sequence[Column]) -> str:
    """Say how much of the text is the target's own choice."""
    chosen = sum(column.is_choice for column in columns)
    return f"{chosen} of {count(len(columns), 'token')} {'is' if chosen == 1 else 'are'} the target's own choice."


def about_silent(rows: Sequence[LandscapeRow]) -> str:
    """Name the methods without a guess; "" if there are none."""
    silent = [row.label for row in rows if set(row.signs) <= {"", NO_GUESS}]
    if not silent:
        return ""
    return f"{names_in_a_row(silent)} {'guesses' if len(silent) == 1 else 'guess'} nothing in a run's first step."


def names_in_a_row(labels: Sequence[str]) -> str:
    """Join names: "one, two and three"."""
    return " and ".join([*([", ".join(labels[:-1])] if labels[1:] else []), *labels[-1:]])


def _quoted(landscape: Landscape, tokens: Sequence[int]) -> str:
    return token_text.quoted(token_text.joined(_text(landscape, token) for token in tokens))


def _text(landscape: Landscape, token: int) -> str:
    return str(landscape["texts"].get(str(token), f"#{token}"))
