"""The target's hidden states, and the drafters that read them: what a method that needs "features" is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from .block import BlockDrafter
from .eagle import EagleDrafter

if TYPE_CHECKING:
    from ..model.session import LayerStates
    from ..parts.dflash import DFlash
    from ..parts.eagle import Eagle
    from .text_so_far import TextSoFar


@dataclass(frozen=True, slots=True)
class Features:
    """The states between the layers of a target, on its last device."""

    session: LayerStates
    device: torch.device

    def eagle(self, context: TextSoFar, part: Eagle, rows: int) -> EagleDrafter:
        """Draft after a text with a part that reads at most `rows` guesses in a step."""
        return EagleDrafter(self.session, context, self.device, part, rows)

    def block(self, context: TextSoFar, part: DFlash) -> BlockDrafter:
        """Draft after a text with a part that fills blocks."""
        return BlockDrafter(self.session, context, self.device, part)
