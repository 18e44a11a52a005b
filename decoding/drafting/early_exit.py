"""A drafter inside the target: its first layers, and an adapter that reads what comes out of them.

The adapter has read the hidden states of the stored text, or all but the last few of them. While drafting goes on,
the first layers run ahead of the stored text; the target goes on from their output, so nothing is computed twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..sampling import largest_probability
from .chain import Chain
from .drafter import Writer

if TYPE_CHECKING:
    from ..methods.base import Context
    from ..model.session import ExitSession
    from ..parts.adapter import Adapter, AdapterSession

_CHUNK = 256  # rows that the adapter reads at once of a long prompt


class EarlyExit(Writer):
    """Writes ahead with the layers in front of `layer` and an adapter; `attach` says which."""

    layer: int
    adapter: AdapterSession

    def __init__(self, session: ExitSession, context: Context) -> None:
        super().__init__(context)
        self.session = session
        self._stored = 0  # tokens that the target had stored after the last step
        self.unread = torch.empty(0)  # (n, H) hidden states of the last of them, which the adapter has not read
        self._entries: list[torch.Tensor] = []  # (1, H) each: of the root and of every drafted token

    def attach(self, adapter: Adapter, capacity: int, largest_step: int) -> None:
        """Draft behind this adapter's layer, on a text of up to `capacity` tokens."""
        self.layer = adapter.layer
        self.adapter = adapter.open(capacity, largest_step)
        self.session.tap(self.layer)

    @property
    def ready(self) -> bool:
        """Whether the target has read all of the text but the root."""
        return 0 < self.session.length == len(self.text) - 1

    @property
    def entry(self) -> tuple[int, torch.Tensor]:
        """The layer, and the hidden states with which the root and the drafted tokens enter it: as in `Draft`."""
        return self.layer, torch.cat(self._entries)

    def catch_up(self) -> bool:
        """Let the adapter read until one row at most is left, which it reads with the root; False if interrupted."""
        chunk = min(_CHUNK, self.adapter.largest_step)
        while len(self.unread) > 1 and not self.interrupted():
            self.adapter.read(self.unread[:chunk])[-1, 0].item()  # waits, or no clock would see it
            self.unread = self.unread[chunk:]
        return not self.interrupted()

    def begin(self) -> None:
        """Run the first layers on the root."""
        self._entries = [self.session.enter(self.text[-1:], self.layer)]

    def extend(self, chain: Chain, *, confidence: bool) -> None:
        """Write one more token, and run the first layers on it.

        `confidence` asks for the largest probability of the distribution before it is shaped.
        """
        rows = self._entries[-1]
        if len(self.unread):
            rows, self.unread = torch.cat((self.unread, rows)), self.unread[:0]
        raw = self.adapter.logits(self.adapter.read(rows)[-1])  # (V,)
        sure = largest_probability(raw) if confidence else None  # queued first: there when the token is
        token, q = self.choose(self.sampler.penalise(raw[None], [chain.tokens]))
        chain.tokens.append(token)
        chain.q.append(q)
        if sure is not None:
            chain.confidence.append(round(float(sure), 6))
        self._entries.append(self.session.enter([token], self.layer, len(chain)))

    def forget(self) -> None:
        """Make the adapter's text the stored one, and note what of it the adapter has yet to read."""
        session, adapter = self.session, self.adapter
        fresh = session.tapped()
        anew = session.length - len(fresh) < self._stored  # the engine has read the text from its beginning again
        adapter.rewind(0 if anew else min(adapter.length, session.length))
        known = torch.cat((self.unread, fresh)) if len(self.unread) else fresh
        self.unread = known[len(known) - (session.length - adapter.length) :]
        self._stored = session.length
