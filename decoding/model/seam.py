"""Where a text outgrows the way it is read: the rotary embeddings of some models depend on how long the text is."""

from __future__ import annotations

from dataclasses import replace

from ..tree import depths
from ..types import Draft, Role
from .session import Session


class Seam:
    """Prevents any step of a run from crossing its session's seam."""

    def __init__(self, session: Session, prompt_length: int) -> None:
        self._session = session
        # Tokens up to which the text is read as it was begun; None once, or if, that does not matter.
        self._last = session.seam if session.seam is not None and prompt_length <= session.seam else None

    def fit(self, draft: Draft, text_length: int) -> Draft:
        """Have a text that has outgrown the seam read anew; before that, let no guess from beyond be accepted."""
        if self._last is None:
            return draft
        if text_length > self._last:
            self._session.reset(text_length)
            self._last = None
            return replace(draft, entry=None)
        deepest = self._last - text_length
        nodes = zip(draft.roles, depths(draft.parents), strict=True)
        return replace(draft, roles=tuple(role if depth <= deepest else Role.EXPLORE for role, depth in nodes))
