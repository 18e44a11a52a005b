"""One piece of the language: a conversation of one kind, whose answers a checker can judge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """What a user asks, and one right answer of the many that are right."""

    prompt: str
    answer: str


@dataclass(frozen=True, slots=True)
class Sample:
    """The turns of one conversation."""

    kind: str
    turns: tuple[Turn, ...]
    system: str = ""
