"""A field of a record that disagrees with the rest of it, with its model or with another run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from decoding.trace.json_line import show

MOST = 100  # contradictions that are listed; a record of another model has one at every token


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A field of a record, and why it cannot be right."""

    step: int | None  # None: in the header or the summary
    field: str
    why: str

    @property
    def sentence(self) -> str:
        """Describe it in one line."""
        where = "" if self.step is None else f"step {self.step}: "
        return f"{where}{self.field} {self.why}"


def differs(step: int | None, field: str, recorded: object, source: str, expected: object) -> Contradiction:
    """Describe a value that should be another one; `source` is what gives that, in the plural."""
    return Contradiction(step, field, f"is {_shown(recorded)}, but {source} give {_shown(expected)}")


def summed_up(contradictions: Sequence[Contradiction]) -> str:
    """Name the first of several contradictions, and how many more there are."""
    more = len(contradictions) - 1
    return contradictions[0].sentence + (
        f" (and {more} more contradictions)" if more > 1 else " (and another contradiction)" * more
    )


def first_of(contradictions: Iterable[Contradiction]) -> list[Contradiction]:
    """Collect contradictions, up to as many as anybody reads."""
    listed = list[Contradiction]()
    for each in contradictions:
        listed.append(each)
        if len(listed) == MOST:
            break
    return listed


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple) and len(value) <= 8 and all(isinstance(each, int) for each in value):
        return str(list(value))
    return show(value)
