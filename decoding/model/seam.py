"""The length at which a text must be read again: some models' rotary embeddings depend on the text's length."""

from __future__ import annotations

from dataclasses import replace

from ..tree import depths
from ..types import Draft, Role
from .session import Session


class Seam:
    """Prevents any step of a run from crossing its session's seam."""

    def __init__(self, session: Session, prompt_length: int) -> None:
        self._session = session
        # The text's length up to which its first reading is valid; None if there is no seam ahead.
        self._last = session.seam if session.seam is not None and prompt_length <= session.seam else None

    @property
    def lies_ahead(self) -> bool:
        """Return True if the text must be read again once it is long enough."""
        return self._last is not None

    def crossed(self, text_length: int) -> bool:
        """Reset the session and return True if the text has just outgrown the seam: all of it must be read again."""
        if self._last is None or text_length <= self._last:
            return False
        self._session.reset(text_length)
        self._last = None
        return True

    def fit(self, draft: Draft, text_length: int) -> Draft:
        """Exclude guesses beyond the seam from acceptance."""
        if self._last is None:
            return draft
        deepest = self._last - text_length
        nodes = zip(draft.roles, depths(draft.parents), strict=True)
        return replace(draft, roles=tuple(role if depth <= deepest else Role.EXPLORE for role, depth in nodes))
