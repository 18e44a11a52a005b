"""What a conversation keeps from one run to the next, so that its next turn reads only what is new.

    chat = Chat()
    engine.decode(first_turn, chat=chat, ...)    # reads the whole prompt
    engine.decode(second_turn, chat=chat, ...)   # the first turn and its answer are in the cache already

The text decides alone: what stands at the beginning of both prompts is kept, where the cache still holds it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from .model.session import Model, Session
from .session_pool import Lender


class Chat:
    """Every model's cache with the text in it, and the methods' memories. One run at a time finds the caches there."""

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}  # by method
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Model, Session, Sequence[int]]] = {}  # by what the model is there for

    def borrow(
        self, use: str, lender: Lender, model: Model, prompt: Sequence[int], room: int, largest_step: int
    ) -> Session:
        """A session that holds as much as it can of the prompt but its last token, which is a run's first root."""
        with self._lock:
            owner, session, text = self._kept.pop(use, (None, None, ()))
        if owner is not model or session is None or session.capacity < room or session.largest_step < largest_step:
            session = None  # free the old cache before the new one is allocated
            # The next turn is longer: with room for it, this one's text need not be read again.
            session, text = lender.borrow(model, max(room, min(2 * room, model.card.context)), largest_step), ()
        pairs = zip(text, prompt[:-1], strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if not common or not session.keep(common, len(prompt)):
            session.reset(len(prompt))
        return session

    def give_back(self, use: str, model: Model, session: Session, text: Sequence[int]) -> None:
        """Keep a session and the tokens that it stores."""
        assert len(text) == session.length
        with self._lock:
            self._kept[use] = model, session, text
