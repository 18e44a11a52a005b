"""A draft that a device is still writing when the host calls the target to read it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .types import Draft

if TYPE_CHECKING:
    import torch

    from .model.queued_tree import Parents


@dataclass(frozen=True, slots=True)
class QueuedDraft:
    """A tree whose tokens only the device knows. The host learns them together with the target's answers.

    Call `finish` once, to make the draft from the fetched numbers. It holds the first nodes of the tree: when the host
    learns where the drafter stopped, the target has already read further.
    """

    ids: torch.Tensor  # (T,) the root and the guesses
    parents: Parents
    q: tuple[torch.Tensor | None, ...]  # as in `Draft`
    numbers: tuple[torch.Tensor, ...]  # to be fetched for `finish`
    finish: Callable[[Sequence[Sequence[float]]], Draft]
    entry: tuple[int, torch.Tensor] | None = None  # as in `Draft`
    fixed: Hashable = None  # equal for tensors at the same addresses; None: the addresses change

    def on(self, device: torch.device) -> QueuedDraft:
        """Copy the draft to the target's device; from one device to another the host does not wait."""
        numbers = tuple(each.to(device, non_blocking=True) for each in self.numbers)
        parents = self.parents if isinstance(self.parents, tuple) else self.parents.on(device)
        fixed = self.fixed if device == self.ids.device else None
        ids = self.ids.to(device, non_blocking=True)
        return replace(self, ids=ids, parents=parents, numbers=numbers, fixed=fixed)


Proposal = Draft | QueuedDraft
