"""How many requests one client may have under way: the next ones wait a little, and the patience of a server ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from .refused import RefusedError

_BUSY = "Too many requests come from your address at once: try again in a moment."


class Crowd:
    """Places for each client, taken in the order of coming."""

    def __init__(self, places: int, waiting: int, seconds: float) -> None:
        self._places, self._waiting, self._seconds = places, waiting, seconds
        self._clients: dict[str, tuple[asyncio.Semaphore, list[None]]] = {}  # and how many are here

    def __len__(self) -> int:
        return len(self._clients)

    @contextlib.asynccontextmanager
    async def place(self, client: str) -> AsyncIterator[None]:
        """A place, as long as the block takes; raises RefusedError where none becomes free."""
        gate, here = self._clients.setdefault(client, (asyncio.Semaphore(self._places), []))
        if len(here) >= self._places + self._waiting:
            raise RefusedError(429, _BUSY)
        here.append(None)
        try:
            try:
                async with asyncio.timeout(self._seconds):
                    await gate.acquire()
            except TimeoutError:
                raise RefusedError(429, _BUSY) from None
            try:
                yield
            finally:
                gate.release()
        finally:
            here.pop()
            if not here:
                self._clients.pop(client, None)
