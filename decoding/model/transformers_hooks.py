"""Hooks in a transformers model that record the inputs of its layers and its output, and the experts used."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import Module, ModuleList

from .transformers_pass import current


def note_output(output: Module) -> None:
    """Record the input of the output layer: the hidden states after the final norm."""

    def note(module: Module, arguments: tuple[torch.Tensor, ...]) -> None:
        if (step := current()) is not None:
            step.hidden = arguments[0].flatten(0, -2)

    output.register_forward_pre_hook(note)


def note_layers(model: Module, count: int) -> int:
    """Record the inputs of tapped layers, and the last one's output; return `count`, or 0 if they are not found."""
    layers = next((part for part in model.modules() if isinstance(part, ModuleList) and len(part) == count), None)
    if not layers:
        return 0

    def note(layer: int, states: Any) -> None:
        step = current()
        if step is not None and layer in step.taps and isinstance(states, torch.Tensor):
            step.states[layer] = states.flatten(0, -2)

    for index, module in enumerate(layers):
        module.register_forward_pre_hook(
            lambda module, given, named, at=index: note(at, given[0] if given else named.get("hidden_states")),
            with_kwargs=True,
        )
    layers[-1].register_forward_hook(
        lambda module, given, output: note(count, output[0] if isinstance(output, tuple) else output)
    )
    return count


def note_experts(model: Module) -> int | None:
    """Record the experts that every row uses; return how many a layer has, or None if no layer has any."""
    count: int | None = None

    def note(module: Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        step = current()
        numbers = (value for value in (*given, *named.values()) if isinstance(value, torch.Tensor))
        experts = next((value for value in numbers if value.dtype in (torch.int64, torch.int32)), None)
        if step is not None and experts is not None:
            step.experts.append(experts.flatten())

    for module in model.modules():
        if type(module).__name__.endswith("Experts"):  # their name in all mixtures of transformers
            module.register_forward_pre_hook(note, with_kwargs=True)
            count = getattr(module, "num_experts", None)
    return count


def mean_experts(experts: list[torch.Tensor]) -> float | None:
    """Average the number of distinct experts over the layers that have any."""
    return sum(len(torch.bincount(each).nonzero()) for each in experts) / len(experts) if experts else None
