"""Ways to break a drafter: each changes its configuration and weights in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Config, Weights = dict[str, Any], dict[str, torch.Tensor]
Break = Callable[[Config, Weights], None]


def entry(**values: Any) -> Break:
    """Another value of some entries of config.json."""
    return lambda config, weights: config.update(values)


def layer(**values: Any) -> Break:
    """Another value of some entries of the layer's configuration."""
    return lambda config, weights: config["transformer_layer_config"].update(values)


def base(theta: float) -> dict[str, Any]:
    """A rotary embedding."""
    return {"rope_type": "default", "rope_theta": theta}


def weights_like(weights: Weights, *ends: str) -> list[str]:
    """The names of weights that end so."""
    return [name for name in weights if any(name.endswith(f"{end}.weight") for end in ends)]


def swapped(one: str, other: str) -> Break:
    """Two weights of every layer in each other's place."""

    def change(config: Config, weights: Weights) -> None:
        for name in weights_like(weights, one):
            partner = name.replace(one, other)
            weights[name], weights[partner] = weights[partner], weights[name]

    return change


def on(ends: Sequence[str], how: Callable[[torch.Tensor], torch.Tensor]) -> Break:
    """A function of every weight whose name ends so."""

    def change(config: Config, weights: Weights) -> None:
        names = weights_like(weights, *ends)
        assert names
        for name in names:
            weights[name] = how(weights[name]).contiguous()

    return change


def on_exactly(name: str, how: Callable[[torch.Tensor], torch.Tensor]) -> Break:
    """A function of one weight."""
    return lambda config, weights: weights.update({name: how(weights[name])})


def times(by: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda weight: weight * by


def transpose(weight: torch.Tensor) -> torch.Tensor:
    return weight.T


def by_heads(
    size: int, order: Callable[[torch.Tensor], torch.Tensor], dim: int = 0
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Whole heads in another order."""

    def how(weight: torch.Tensor) -> torch.Tensor:
        heads = torch.arange(weight.shape[dim]).view(-1, size)
        return weight.index_select(dim, order(heads).flatten())

    return how


def first_two(heads: torch.Tensor) -> torch.Tensor:
    return heads[[1, 0, *range(2, len(heads))]]


def interleaved(size: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """Rows of rotated halves as rows of rotated neighbours."""
    order = torch.arange(size).view(2, -1).T.flatten()
    return lambda weight: weight.unflatten(0, (-1, size))[:, order].flatten(0, 1)


def dimension_first(size: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """Rows of all heads' first dimension, then those of the second one."""
    return lambda weight: weight.unflatten(0, (-1, size)).transpose(0, 1).flatten(0, 1)


def turned(weight: torch.Tensor, size: int = 256) -> torch.Tensor:
    """Columns for states in another basis, as those of a target trained again."""
    noise = torch.randn(size, size, generator=torch.Generator().manual_seed(4))
    basis = torch.linalg.qr(noise).Q
    return (weight.float().unflatten(1, (-1, size)) @ basis).flatten(1).to(weight.dtype)


def halves(weight: torch.Tensor) -> torch.Tensor:
    return weight.roll(weight.shape[1] // 2, 1)


def blocks(order: Sequence[int]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda weight: torch.cat([weight.chunk(len(order), 1)[each] for each in order], 1)


def shuffled(dim: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def how(weight: torch.Tensor) -> torch.Tensor:
        order = torch.randperm(weight.shape[dim], generator=torch.Generator().manual_seed(1))
        return weight.index_select(dim, order)

    return how


def random(weight: torch.Tensor) -> torch.Tensor:
    """Numbers as large, and of no meaning."""
    noise = torch.randn(weight.shape, generator=torch.Generator().manual_seed(2))
    return (noise * weight.float().std()).to(weight.dtype)


def noisy(share: float) -> Break:
    """Every matrix less exact, as if it had learnt for a shorter time."""

    def change(config: Config, weights: Weights) -> None:
        generator = torch.Generator().manual_seed(3)
        for name, weight in weights.items():
            if weight.dim() == 2 and weight.is_floating_point():
                noise = torch.randn(weight.shape, generator=generator) * weight.float().std() * share
                weights[name] = (weight.float() + noise).to(weight.dtype)

    return change


def rounded(bits: int, group: int | None = None) -> Break:
    """Every matrix in so few bits, with a scale for each row or group."""

    def change(config: Config, weights: Weights) -> None:
        most = 2 ** (bits - 1) - 1
        for name, weight in weights.items():
            if weight.dim() == 2 and weight.is_floating_point():
                parts = weight.float() if group is None else weight.float().unflatten(1, (-1, group))
                scale = parts.abs().amax(-1, keepdim=True).clamp(min=1e-12) / most
                weights[name] = ((parts / scale).round() * scale).view(weight.shape).to(weight.dtype)

    return change


def mapped(order: Callable[[torch.Tensor], torch.Tensor]) -> Break:
    """The draft vocabulary's ids in another order."""

    def change(config: Config, weights: Weights) -> None:
        count = torch.arange(len(weights["d2t"]))
        weights["d2t"] = order(weights["d2t"] + count) - count

    return change


def more_heads(config: Config, weights: Weights) -> None:
    """Heads of half the size, twice as many: a head_dim that was derived wrongly."""
    held = config["transformer_layer_config"]
    for name in ("num_attention_heads", "num_key_value_heads"):
        held[name] *= 2
    held["head_dim"] = 32


def absolute(config: Config, weights: Weights) -> None:
    """d2t holds ids instead of offsets."""
    weights["d2t"] = weights["d2t"] + torch.arange(len(weights["d2t"]))


def cast(dtype: torch.dtype) -> Break:
    def change(config: Config, weights: Weights) -> None:
        for name, weight in weights.items():
            weights[name] = weight.to(dtype) if weight.is_floating_point() else weight

    return change


def without(*names: str) -> Break:
    def change(config: Config, weights: Weights) -> None:
        for name in names:
            del weights[name]

    return change


def flushed(share: float) -> Break:
    """The smallest numbers of every matrix as zeros, as in a format that is too coarse for them."""

    def change(config: Config, weights: Weights) -> None:
        for name, weight in weights.items():
            if weight.dim() == 2 and weight.is_floating_point():
                sizes = weight.float().abs()
                weights[name] = weight * (sizes >= sizes.flatten().kthvalue(int(share * weight.numel())).values)

    return change


def clipped(weight: torch.Tensor) -> torch.Tensor:
    """No number larger than the median."""
    most = float(weight.float().abs().median())
    return weight.clamp(-most, most)


def empty_rows(share: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Zeros in the first rows: with a head's share, that head is lost."""

    def how(weight: torch.Tensor) -> torch.Tensor:
        kept = weight.clone()
        kept[: int(share * len(kept))] = 0
        return kept

    return how


def moved_norms(by: float) -> Break:
    """Scales of norms as some models store them, which add 1 to them, or as after adding 1 once too often."""

    def change(config: Config, weights: Weights) -> None:
        for name in [name for name, weight in weights.items() if weight.dim() == 1 and "norm" in name]:
            weights[name] = weights[name] + by

    return change


def without_biases(config: Config, weights: Weights) -> None:
    for name in [name for name in weights if name.endswith("bias")]:
        weights[name] = torch.zeros_like(weights[name])


def heads_in(order: Sequence[int]) -> Break:
    """Medusa heads under other numbers."""

    def change(config: Config, weights: Weights) -> None:
        old = {**weights}
        for name in old:
            head, _, rest = name.partition(".")
            weights[name] = old[f"{order[int(head)]}.{rest}"].clone()

    return change


def in_heads(numbers: Sequence[int], how: Callable[[torch.Tensor], torch.Tensor]) -> Break:
    """A function of the weights of some Medusa heads' blocks, counted from 1."""
    return both(*(on_exactly(f"{number - 1}.0.linear.weight", how) for number in numbers))


def half_random(weight: torch.Tensor) -> torch.Tensor:
    """The first half of the columns as they were, and the others random."""
    kept = weight.shape[1] // 2
    return torch.cat([weight[:, :kept], random(weight)[:, kept:]], 1)


def only_heads(count: int) -> Break:
    """The first Medusa heads alone."""

    def change(config: Config, weights: Weights) -> None:
        config.pop("accuracies", None)
        for name in [name for name in weights if int(name.partition(".")[0]) >= count]:
            del weights[name]

    return change


def only(part: str, change: Break) -> Break:
    """A change of some of the weights alone."""

    def narrowed(config: Config, weights: Weights) -> None:
        some = {name: weight for name, weight in weights.items() if part in name}
        change(config, some)
        weights.update(some)

    return narrowed


def both(*changes: Break) -> Break:
    def change(config: Config, weights: Weights) -> None:
        for each in changes:
            each(config, weights)

    return change


def same(config: Config, weights: Weights) -> None:
    """Nothing is changed."""


def exchanged(one: str, other: str) -> Break:
    """Two layers in each other's place, by what their weights' names begin with."""

    def change(config: Config, weights: Weights) -> None:
        for name in [name for name in weights if name.startswith(one)]:
            partner = name.replace(one, other)
            weights[name], weights[partner] = weights[partner], weights[name]

    return change


def without_columns(share: slice) -> Callable[[torch.Tensor], torch.Tensor]:
    """Zeros in one of three blocks of the columns, or in one of their halves."""

    def how(weight: torch.Tensor) -> torch.Tensor:
        kept = weight.clone()
        width = kept.shape[1]
        kept[:, slice(share.start * width // 6, share.stop * width // 6)] = 0
        return kept

    return how
