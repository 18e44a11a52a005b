"""The length at which a text must be read anew: some models' rotary embeddings depend on how long the text is."""

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

    @property
    def lies_ahead(self) -> bool:
        """Return whether the text, if it goes on, will have to be read anew."""
        return self._last is not None

    def crossed(self, text_length: int) -> bool:
        """Return whether the text has just outgrown the seam. Then all of it is to be read anew."""
        if self._last is None or text_length <= self._last:
            return False
        self._session.reset(text_length)
        self._last = None
        return True

    def fit(self, draft: Draft, text_length: int) -> Draft:
        """Let no guess from beyond the seam be accepted."""
        if self._last is None:
            return draft
        deepest = self._last - text_length
        nodes = zip(draft.roles, depths(draft.parents), strict=True)
        return replace(draft, roles=tuple(role if depth <= deepest else Role.EXPLORE for role, depth in nodes))
