"""The types of the arguments of facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType, TypeVar

from decoding.types import Step, Trace

from ..token_text import shown
from .lesson import LessonError

NodeId = NewType("NodeId", int)
NodeRange = NewType("NodeRange", range)
RunNames = NewType("RunNames", list[tuple[str, Trace]])  # all arguments that are left
_T = TypeVar("_T")


class FactError(LessonError):
    """A fact that cannot be computed; the message is the reason, without file and line."""


@dataclass(frozen=True, slots=True)
class At:
    """A step of a run."""

    run: Trace
    step: Step

    def text(self, token: int) -> str:
        """Return the text of a token, its spaces visible."""
        return shown(self.run.texts.get(token, f"#{token}"))


def given(value: _T | None, what: str) -> _T:
    """Return a recorded value; raise FactError if there is none."""
    if value is None:
        raise FactError(f"this run does not record {what}")
    return value


def text_of(run: Trace) -> tuple[int, ...]:
    """Return prompt and new tokens."""
    return (*run.header.prompt, *(token for step in run.steps for token in step.emitted))
