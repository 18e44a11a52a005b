"""How a tree is read behind a text of which the session may lack the end: at first the whole prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..tree import after_chain
from ..types import Draft
from .session import ExitSession, ProgressCallback, Reading, Session, catch_up


class TreeReader:
    """Reads what a session lacks of the text and then a tree behind it; stores the nodes that are accepted."""

    def __init__(self, session: Session, chunk: int, progress: ProgressCallback | None = None) -> None:
        self._session, self._chunk, self._progress = session, chunk, progress
        self._pending: Sequence[int] = ()

    def catch_up(self, pending: Sequence[int], room: int, interrupted: Callable[[], bool]) -> bool:
        """Read `pending`, the tokens missing in front of the next tree, in chunks until `room` rows take the rest.

        False, with the rest still missing, if the run was interrupted between two chunks.
        """
        self._pending = catch_up(self._session, pending, room, self._chunk, interrupted, self._progress)
        return len(self._pending) <= room

    def read(self, draft: Draft) -> Reading:
        """Feed the rest of the pending tokens and the tree, in one pass; answer for the tree's nodes."""
        pending = self._pending
        if draft.entry is not None and not pending:
            assert isinstance(self._session, ExitSession)
            return self._session.resume(draft.tokens, draft.parents, *draft.entry)
        parents = after_chain(len(pending), draft.parents) if pending else draft.parents
        return self._session.read([*pending, *draft.tokens], parents, skip=len(pending))

    def commit(self, nodes: Sequence[int]) -> None:
        """Store the tokens that were pending, and behind them these nodes of the tree: a path from its root."""
        before = len(self._pending)
        self._session.commit([*range(before), *(before + node for node in nodes)])
        self._pending = ()
