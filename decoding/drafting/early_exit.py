"""A drafter inside the target: its first layers, and an adapter that reads their output.

The adapter has read the hidden states of the stored text, or all but the last few of them. While it drafts, the first
layers run ahead of the stored text; the target continues from their output, so nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from ..model.captured import PassSpec
from ..model.decoder_session import DecoderSession
from .text_so_far import TextSoFar
from .unread import Unread
from .writer import CPU, Reads, Recordable, Writer

if TYPE_CHECKING:
    from ..model.graphs import Outputs
    from ..model.replays import Replays
    from ..model.session import FirstLayers
    from ..model.upload import Tokens
    from ..parts.adapter import Adapter, AdapterSession

_CHUNK = 256  # rows of a long prompt that the adapter reads at once


class EarlyExit(Writer):
    """Drafts with the layers before `layer` and an adapter; `attach` names it."""

    session: FirstLayers
    layer: int
    adapter: AdapterSession

    kind = "exit"

    def __init__(self, session: FirstLayers, context: TextSoFar, device: torch.device = CPU) -> None:
        super().__init__(context, device)
        self.session = session
        self.unread, self._pool = Unread(), context.session_pool
        self._entries: list[torch.Tensor] = []  # (1, H) each: of the root and of every drafted token

    def attach(self, adapter: Adapter, capacity: int, largest_step: int) -> None:
        """Draft with this adapter on a text of up to `capacity` tokens."""
        self.layer, self.vocabulary, self._chunk = adapter.layer, adapter.vocabulary, min(_CHUNK, largest_step)
        self.adapter = self._pool.lend(self, adapter, capacity, largest_step)
        self.session.tap(self.layer)

    @property
    def ready(self) -> bool:
        """Return True if the target has read all of the text but the root."""
        return 0 < self.session.length == len(self.text) - 1

    def catch_up(self) -> bool:
        """Let the adapter read all unread rows but one, which it reads with the root; False if interrupted."""
        while len(self.unread) > 1 and not self.interrupted():
            self.adapter.read(self.unread.take(self._chunk))
        return not self.interrupted()

    @property
    def reads(self) -> Reads:
        """Return `enter`, which runs the first layers, and `adapt`, which runs the adapter."""
        return self.enter, self.adapt

    def enter(self, written: Tokens) -> torch.Tensor:  # (1, H)
        """Run the first layers on the newest written token, or on the root if there is none."""
        newest = written[-1:] if len(written) else self.text[-1:]
        row = self.session.enter(newest, self.layer, len(written))
        self._entries = [*self._entries[: len(written)], row]
        return row

    def adapt(self, row: torch.Tensor) -> torch.Tensor:  # (1, H) -> (1, n)
        """Let the adapter read the unread rows of the text, then `row`; return the next token's logits."""
        if len(self.unread):
            row = torch.cat((self.unread.take(len(self.unread)), row))
        return self.adapter.logits(self.adapter.read(row)[-1:])

    @property
    def replays(self) -> Replays:
        """Return the adapter's recordings."""
        return self.adapter.replays

    def recordable(self, count: int) -> Recordable | None:
        """Record: run the first layers on each token, and let the adapter read their output after the unread rows."""
        adapter, session, lacking = self.adapter, self.session, len(self.unread)
        width = adapter.width(lacking + count)
        passes = session.chain(count + 1) if isinstance(session, DecoderSession) else None
        if passes is None or not width:
            return None
        part = PassSpec(0, self.layer, answers=False)

        def begin(numbers: torch.Tensor, *unread: torch.Tensor) -> tuple[Reads, Callable[[], Outputs]]:
            first, adapted, root = numbers.long().tensor_split((1, 2))
            entries = list[torch.Tensor]()

            def enter(written: torch.Tensor) -> torch.Tensor:
                [row] = passes.run(written[-1:] if len(written) else root, first, len(written), part)
                entries.append(row)
                return row

            def adapt(row: torch.Tensor) -> torch.Tensor:
                drafted = len(entries) - 1
                rows, at = (row, adapted + lacking + drafted) if drafted else (torch.cat((*unread, row)), adapted)
                return adapter.logits(adapter.behind(rows, at, width)[-1:])

            return (enter, adapt), lambda: (torch.cat(entries),)

        def done(count: int) -> None:
            self.unread.take(lacking)
            adapter.follow(lacking + count)

        unread = (self.unread.states,) if lacking else ()
        numbers = passes.first, adapter.length, self.text[-1]
        return Recordable((lacking, width, passes.key), numbers, unread, begin, done)

    def entry(self, beside: Sequence[torch.Tensor] = ()) -> tuple[int, torch.Tensor]:
        """Return the layer, and the hidden states with which the root and the drafted tokens enter it."""
        return self.layer, beside[0] if beside else torch.cat(self._entries)

    def forget(self) -> None:
        """Rewind the adapter to the stored text, and keep the states that it has yet to read."""
        self.unread.follow(self.session, self.adapter)
