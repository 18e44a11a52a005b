"""The state of a run that the views read: the header, the steps so far, and what several views need of them.

It only grows. All views are functions of a run's state and a step's number, and read no later step. So a frame is the
same whether the run is still going on, has just ended, or comes from a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from decoding.types import Header, Step, Trace


@dataclass(slots=True)
class RunState:
    """The steps so far, and display texts of the tokens in them."""

    header: Header
    texts: dict[int, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)  # prompt and everything emitted
    ends: frozenset[int] = field(init=False)  # tokens that end a text
    # Sums over the steps, by name, so that a long run is not counted again for every step.
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, trace: Trace) -> RunState:
        """Return the state at the end of a trace."""
        run = cls(trace.header)
        run.learn_texts(trace.texts)
        for step in trace.steps:
            run.add(step)
        return run

    def __post_init__(self) -> None:
        self.ids.extend(self.header.prompt)
        self.ends = frozenset(self.header.end_tokens)

    def learn_texts(self, texts: Mapping[int, str]) -> None:
        """Add display texts of tokens."""
        self.texts.update(texts)

    def add(self, step: Step) -> None:
        """Append the next step."""
        self.steps.append(step)
        self.ids.extend(step.emitted)

    def wants_one(self, step: Step) -> bool:
        """Return True if a step was asked for one token alone, which needs no guess."""
        return step.start - len(self.header.prompt) + 1 >= self.header.max_new_tokens

    def text(self, token: int | None) -> str:
        """Return a token's display text."""
        return "" if token is None or token < 0 else self.texts.get(token, f"#{token}")
