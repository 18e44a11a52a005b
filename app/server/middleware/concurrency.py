"""Limits how many requests of one client run at once; others wait for a limited time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from .errors import RequestError

_BUSY = "Too many requests come from your address at once: try again in a moment."


class ClientConcurrency:
    """A semaphore and a bounded waiting list for each client."""

    def __init__(self, slots: int, waiting: int, seconds: float) -> None:
        self._slots, self._waiting, self._seconds = slots, waiting, seconds
        self._clients: dict[str, tuple[asyncio.Semaphore, list[None]]] = {}  # and how many are present

    def __len__(self) -> int:
        return len(self._clients)

    @contextlib.asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[None]:
        """Hold a slot during the block; raises RequestError if none becomes free in time."""
        semaphore, present = self._clients.setdefault(client, (asyncio.Semaphore(self._slots), []))
        if len(present) >= self._slots + self._waiting:
            raise RequestError(429, _BUSY)
        present.append(None)
        try:
            try:
                async with asyncio.timeout(self._seconds):
                    await semaphore.acquire()
            except TimeoutError:
                raise RequestError(429, _BUSY) from None
            try:
                yield
            finally:
                semaphore.release()
        finally:
            present.pop()
            if not present:
                self._clients.pop(client, None)
