"""Pads or cuts a drafter's logits to the target's width: equal vocabularies may be padded differently."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import pad

from .session import Model, Reading, Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .queued_tree import Parents
    from .upload import Tokens


class Resized:
    """A model whose logits have `vocabulary` columns: cut off, or filled up with tokens it never proposes."""

    def __init__(self, model: Model, vocabulary: int) -> None:
        self.card = replace(model.card, vocabulary=vocabulary)
        self.device, self.devices, self.attention = model.device, model.devices, model.attention
        self.dtype, self.precision = model.dtype, model.precision
        self.window, self.rolling, self.step_rows = model.window, model.rolling, model.step_rows
        self.lacks = model.lacks
        self.model = model

    def open(self, capacity: int, largest_step: int) -> ResizedSession:
        """Open a session of the model, resized."""
        session = self.model.open(capacity, largest_step)
        return ResizedSession(session, self.model.card.vocabulary, self.card.vocabulary)


class ResizedSession:
    """A session with the columns of its logits cut or filled up."""

    def __init__(self, session: Session, columns: int, wanted: int) -> None:
        self.capacity, self.largest_step, self.seam = session.capacity, session.largest_step, session.seam
        self._session, self._columns, self._wanted = session, columns, wanted
        self.commit, self.rewind = session.commit, session.rewind
        self.keep, self.reset = session.keep, session.reset

    @property
    def length(self) -> int:
        """Tokens stored."""
        return self._session.length

    def read(self, tokens: Tokens, parents: Parents, skip: int = 0, only: Sequence[int] | None = None) -> Reading:
        """Read as the session does; a padding id that it has no row for is read as its last one."""
        last = self._columns - 1
        ids = tokens.clamp(max=last) if isinstance(tokens, torch.Tensor) else [min(token, last) for token in tokens]
        reading = self._session.read(ids, parents, skip, only)
        missing = max(0, self._wanted - self._columns)
        logits = pad(reading.logits[..., : self._wanted], (0, missing), value=-torch.inf)
        return Reading(logits, reading.hidden)
