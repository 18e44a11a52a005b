"""A draft that a device is still writing when the host has the target read it."""

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
    """A tree whose tokens only the device knows; the host learns them together with the target's answers.

    `finish` makes the draft of the numbers that have been fetched, once: the first nodes of the tree. Where a drafter
    stops, the host finds out when the target has read on already.
    """

    ids: torch.Tensor  # (T,) the root, and what was guessed
    parents: Parents
    q: tuple[torch.Tensor | None, ...]  # as in `Draft`
    numbers: tuple[torch.Tensor, ...]  # what `finish` asks for
    finish: Callable[[Sequence[Sequence[float]]], Draft]
    entry: tuple[int, torch.Tensor] | None = None  # as in `Draft`
    fixed: Hashable = None  # equal where q is at the same addresses; None: it is elsewhere every time

    def on(self, device: torch.device) -> QueuedDraft:
        """The same for a target on that device. From device to device numbers go without the host's waiting."""
        numbers = tuple(each.to(device, non_blocking=True) for each in self.numbers)
        parents = self.parents if isinstance(self.parents, tuple) else self.parents.on(device)
        fixed = self.fixed if device == self.ids.device else None
        ids = self.ids.to(device, non_blocking=True)
        return replace(self, ids=ids, parents=parents, numbers=numbers, fixed=fixed)


Proposal = Draft | QueuedDraft
