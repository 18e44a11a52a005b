"""Counts the experts that a pass reads: what a tree costs under a mixture of experts, beside its rows."""

from __future__ import annotations

from typing import Any

import torch


class ExpertCounter:
    """Listens to which experts every layer of a transformers model is asked for."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._asked = list[torch.Tensor]()
        self.count: int | None = None  # experts of a layer; None where no layer has any
        for module in model.modules():
            if type(module).__name__.endswith("Experts"):  # as all mixtures of transformers call them
                module.register_forward_pre_hook(self._hear, with_kwargs=True)
                self.count = getattr(module, "num_experts", None)

    def _hear(self, module: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        for value in (*arguments, *named.values()):
            if isinstance(value, torch.Tensor) and value.dtype in (torch.int64, torch.int32):
                self._asked.append(value)
                return

    def take(self) -> float | None:
        """Different experts that the last pass read, on average over the layers that have any; None without those."""
        asked, self._asked = self._asked, []
        if not asked:
            return None
        return sum(len(torch.bincount(indices.flatten()).nonzero()) for indices in asked) / len(asked)
