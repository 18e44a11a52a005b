"""Parts of sentences: counts, quoted tokens, probabilities."""

from __future__ import annotations

from collections.abc import Sequence

from . import token_text
from .run_state import RunState


def count(number: int, noun: str, nouns: str = "") -> str:
    """Return a number of things."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def quote(run: RunState, tokens: Sequence[int]) -> str:
    """Return the texts of tokens in a row, in quotation marks."""
    return token_text.quoted(token_text.joined(run.text(token) for token in tokens))


def share(p: float) -> str:
    """Return a probability."""
    return f"{p:.2f}" if p >= 0.005 else "under 0.01"


def under(p: float, limit: float) -> str:
    """Return a probability below a limit, with as many digits as show that it is below."""
    shown = next((f"{p:.{digits}f}" for digits in (2, 3, 4) if float(f"{p:.{digits}f}") < limit), f"{p:.5g}")
    return f"{shown} is under the limit {limit:g}"


def odds(p: float, other: float) -> str:
    """Return two probabilities, with as many digits as show which is the larger one."""
    first, second = share(p), share(other)
    for digits in (3, 4):
        if first == second:
            first, second = f"{p:.{digits}f}", f"{other:.{digits}f}"
    return f"p {first} against {second}"
