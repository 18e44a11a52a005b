"""One piece of the language: a conversation of one kind, whose answers a checker can judge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """A user's turn, and one of its many right answers."""

    prompt: str
    answer: str


@dataclass(frozen=True, slots=True)
class Sample:
    """The turns of one conversation."""

    kind: str
    turns: tuple[Turn, ...]
    system: str = ""
