"""The text of a run so far, and what limits a draft after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..session_pool import SessionPool

if TYPE_CHECKING:
    from ..sampling import Sampler


@dataclass(slots=True)
class TextSoFar:
    """The text of a run so far, and how the next tokens are drawn."""

    text: list[int]  # prompt and committed tokens; the last one is the root of the next step
    prompt_length: int
    max_new_tokens: int
    sampler: Sampler  # shapes a drafter's logits exactly as the target's
    end_tokens: frozenset[int] = frozenset()
    largest_step: int = 128  # nodes that fit into one step
    interrupted: Callable[[], bool] = lambda: False  # asked inside long drafting loops
    detailed: bool = False  # whether the record keeps every q, which greedy drafts do not need
    session_pool: SessionPool = field(default_factory=SessionPool)  # of drafters whose caches outlive the run

    @property
    def remaining(self) -> int:
        """Count the tokens still to be written. One of them is never a guess, so drafting as many is wasted."""
        return self.max_new_tokens - (len(self.text) - self.prompt_length)

    @property
    def room(self) -> int:
        """Return the longest chain of guesses that can still be written and that fits into a step after the root."""
        return min(self.remaining, self.largest_step) - 1
