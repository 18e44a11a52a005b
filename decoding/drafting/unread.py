"""Hidden states of the target that a drafter has yet to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from ..model.session import LayerStates
    from ..parts.adapter import AdapterSession
    from ..parts.dflash import DFlashSession
    from ..parts.eagle import EagleSession


class Unread:
    """The last stored tokens' states (n, H), as they entered the tapped layers."""

    def __init__(self) -> None:
        self.states = torch.empty(0)
        self._stored = 0  # tokens that the target had stored after the last step

    def __len__(self) -> int:
        return len(self.states)

    def take(self, count: int) -> torch.Tensor:
        """Remove and return the next states, at most `count`."""
        taken, self.states = self.states[:count], self.states[count:]
        return taken

    def follow(self, session: LayerStates, reader: AdapterSession | EagleSession | DFlashSession) -> None:
        """Rewind a reader to the stored text, and keep the states that it has yet to read."""
        fresh = session.tapped()
        restarted = session.length - len(fresh) < self._stored  # the engine has read the text from its beginning again
        reader.rewind(0 if restarted else min(reader.length, session.length))
        states = torch.cat((self.states, fresh)) if len(self.states) else fresh
        self.states = states[len(states) - (session.length - reader.length) :]
        self._stored = session.length
