"""The caches of a conversation, kept between runs, so that each turn reads only new text.

    chat = Chat()
    engine.decode(first_turn, chat=chat, ...)    # reads the whole prompt
    engine.decode(second_turn, chat=chat, ...)   # the first turn and its answer are in the cache already

The longest common prefix of the stored text and the new prompt is reused, if the cache still has it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from .model.session import Model, Session
from .session_pool import SessionPool


class Chat:
    """The cache of each model with its text, and the methods' memories. One run at a time can use the caches."""

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}  # by method
        self._lock = threading.Lock()
        self._stored: dict[str, tuple[Model, Session, Sequence[int]]] = {}  # by use: "target" or "draft"

    def acquire(
        self, use: str, session_pool: SessionPool, model: Model, prompt: Sequence[int], room: int, largest_step: int
    ) -> Session:
        """Return a session that stores as much of the prompt as possible, but not its last token, the root."""
        with self._lock:
            owner, session, text = self._stored.pop(use, (None, None, ()))
        if owner is not model or session is None or session.capacity < room or session.largest_step < largest_step:
            session = None  # free the old cache before the new one is allocated
            # The next turn is longer: with room for it, this turn's text is not read again.
            session, text = session_pool.acquire(model, max(room, min(2 * room, model.card.context)), largest_step), ()
        pairs = zip(text, prompt[:-1], strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if not common or not session.keep(common, len(prompt)):
            session.reset(len(prompt))
        return session

    def release(self, use: str, model: Model, session: Session, text: Sequence[int]) -> None:
        """Store a session and the tokens in its cache for the next turn."""
        assert len(text) == session.length
        with self._lock:
            self._stored[use] = model, session, text
