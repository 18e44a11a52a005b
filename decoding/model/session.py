"""What the engine and the drafters ask of a model: read a tree of tokens, keep the accepted rows, forget the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from ..types import ModelCard


@dataclass(frozen=True, slots=True)
class Reading:
    """What the model said at the rows asked for."""

    logits: torch.Tensor  # (R, V)
    hidden: torch.Tensor  # (R, H) after the final norm; (R, 0) for a model without hidden states


class Session(Protocol):
    """One text in one cache. `length` tokens have their key/value stored; row i of a reading is fed token i."""

    @property
    def length(self) -> int:
        """Tokens stored."""
        ...

    capacity: int  # tokens that can be stored
    largest_step: int  # rows that fit into one reading

    def read(self, tokens: Sequence[int], parents: tuple[int, ...], skip: int = 0) -> Reading:
        """Feed a tree whose root stands right behind the stored tokens; answer for rows `skip` and later.

        Raises ModelError before anything is written when the rows do not fit.
        """
        ...

    def commit(self, rows: Sequence[int]) -> None:
        """Store the rows of the last reading that form a path from its root; the others are forgotten."""
        ...

    def rewind(self, length: int) -> None:
        """Forget stored tokens behind `length`: at most `largest_step` of them."""
        ...

    def reset(self, prompt_length: int) -> None:
        """Start a new text. Scaled rotary embeddings of some models depend on the length of its prompt."""
        ...


class Model(Protocol):
    """Weights on a device."""

    card: ModelCard
    device: torch.device
    dtype: torch.dtype
    attention: str  # the backend in words, shown to the user
    window: int | None  # the smallest sliding window among the layers

    def open(self, capacity: int, largest_step: int) -> Session:
        """A session for texts of up to `capacity` tokens."""
        ...


def catch_up(
    session: Session,
    tokens: Sequence[int],
    room: int,
    chunk: int,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Store `tokens` in chunks until at most `room` of them are left, to be read together with a draft.

    A cancelled run stops between two chunks; what was stored stays.
    """
    fed = 0
    while len(tokens) - fed > room and not cancelled():
        part = tokens[fed : fed + min(chunk, session.largest_step)]
        session.read(part, tuple(range(-1, len(part) - 1)), skip=len(part))
        session.commit(range(len(part)))
        fed += len(part)
