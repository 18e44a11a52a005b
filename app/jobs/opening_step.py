"""Chooses the step at which a recording opens.

The first step that a visitor sees should show guesses that pay off, in readable language, and early in the text. So a
step scores 1 for each accepted token that is a word (at least two letters and nothing else: no digits, no punctuation,
no variables of one letter), 0.5 more if it also rejects a guess and so shows both fates, and 0.1 less for each step
before it. The recording opens at the step with the highest score.

A run that accepts no word (autoregressive decoding accepts nothing at all) opens at the first step that writes one.
"""

from __future__ import annotations

from decoding.types import Step, Trace

_FIRST, _LAST = 2, 40  # the first steps read the prompt, and pools and windows are empty; later ones have a long text
_MIXED, _LATER = 0.5, 0.1  # in words


def opening_step(trace: Trace) -> int:
    """Return the number of the step to open a recording at."""

    def worth(step: Step) -> tuple[bool, bool, float]:
        words = [is_word(trace.texts.get(token, "")) for token in step.emitted]
        accepted = sum(words[: step.accepted])
        mixed = 0 < step.accepted < step.drafted
        return accepted > 0, any(words), accepted + _MIXED * mixed - _LATER * step.index

    return max(trace.steps[_FIRST:_LAST] or trace.steps[-1:], key=worth).index


def is_word(text: str) -> bool:
    """Return True if a token's text is a word, or a piece of one."""
    letters = text.strip()
    return len(letters) > 1 and letters.isalpha()
