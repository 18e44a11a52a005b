"""Reads a tree after a text whose last tokens the session may lack: at first the whole prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch

from ..queued import Proposal, QueuedDraft
from .queued_tree import QueuedTree, put_after_chain
from .session import ExitSession, ProgressCallback, Reading, TreeSession, catch_up
from .upload import on_device

if TYPE_CHECKING:
    from .captured import PassJudge
    from .upload import Tokens


class TreeReader:
    """Reads the tokens that a session lacks, then a tree after them; stores the accepted nodes."""

    def __init__(self, session: TreeSession, chunk: int, progress: ProgressCallback | None = None) -> None:
        self._session, self._chunk, self._progress = session, chunk, progress
        self._pending: Sequence[int] = ()

    def read(
        self,
        missing: Sequence[int],
        draft: Proposal,
        room: int,
        interrupted: Callable[[], bool],
        only: Sequence[int] | None = None,
        judge: PassJudge | None = None,
    ) -> Reading | None:
        """Read the missing tokens before a tree, then the tree; answer for its nodes, or for `only` some.

        The tokens are read in chunks until the rest fits into `room` rows, which are read in one pass with the tree.
        `judge` is for sessions that can run one, and judges all rows of that pass. Return None, with the rest still
        missing, if the run was interrupted between two passes.
        """
        pending = self._pending = catch_up(self._session, missing, room, self._chunk, interrupted, self._progress)
        if len(pending) > room or (len(pending) < len(missing) and interrupted()):
            return None
        tokens: Tokens = draft.ids if isinstance(draft, QueuedDraft) else draft.tokens
        more: dict[str, Any] = {} if judge is None else {"judge": judge}
        if not pending:
            if draft.entry is not None and not isinstance(draft.parents, QueuedTree):
                # Checking that the session has all methods of the protocol would cost a tenth of a toy's step.
                return cast("ExitSession", self._session).resume(tokens, draft.parents, *draft.entry, **more)
            return self._session.read(tokens, draft.parents, only=only, **more)
        if isinstance(tokens, torch.Tensor):
            together: Tokens = torch.cat((on_device(pending, tokens.device), tokens))
        else:
            together = [*pending, *tokens]
        before = len(pending)
        rows = None if only is None else [before + node for node in only]
        return self._session.read(together, put_after_chain(before, draft.parents), before, rows, **more)

    def commit(self, nodes: Sequence[int]) -> None:
        """Store the pending tokens, and then these nodes of the tree: a path from its root."""
        before = len(self._pending)
        self._session.commit([*range(before), *(before + node for node in nodes)])
        self._pending = ()
