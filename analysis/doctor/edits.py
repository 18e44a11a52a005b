"""Changes of a drafter's weights that undo what converters and training code get wrong: order, sign and scale.

Each is a hypothesis about the file: two tensors were swapped, rows are in another order, a norm was multiplied. The
drafter's predictions with the change decide whether it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import torch

Weights = Mapping[str, torch.Tensor]
_MANY_HEADS = 12  # of more heads only neighbours are swapped
_MOST_BLOCKS = 4  # of which every order is tried
DIVISORS = (2, 3, 4, 8, 16, 100)
_SMALL = 0.6  # a norm's scales below it may have been divided
VITAL = "vital"  # the flag of a share of something that no drafter does well without
SHARES = (0.0, 0.5)  # of what a part adds to the states


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of some weights."""

    name: str  # "gate and up swapped"
    flag: str  # the weights that it is about
    remedy: str
    change: Callable[[Weights], Weights]  # returns the changed weights alone


@dataclass(frozen=True, slots=True)
class HeadSizes:
    """How the rows of a layer's queries, keys and values are split."""

    query: int
    kv: int
    size: int


def edited(weights: Weights, edits: Sequence[Edit]) -> Weights:
    """Return the weights after every change."""
    for edit in edits:
        weights = {**weights, **edit.change(weights)}
    return weights


def layer_edits(weights: Weights, layers: Sequence[str], heads: HeadSizes) -> list[Edit]:
    """List the changes of layers whose weights' names begin so: of all of them together, and of each where there are
    few.
    """
    edits = [*_exchanged(weights, layers), *_rotary(weights, layers, heads), *_offsets(weights)]
    for at in layers:
        edits += [*_heads(weights, at, heads), *_norms(weights, at), *_turned(weights, at)]
    if len(layers) > 1:
        for at in layers:
            edits += [*_exchanged(weights, [at]), *_rotary(weights, [at], heads)]
    return edits


def halves_edit(names: Sequence[str]) -> Edit:
    """Swap the halves of these weights' columns."""
    return _on_columns("embedding and feature halves of q, k and v swapped", "qkv_halves", names, _swap_halves)


def block_edits(name: str, blocks: int) -> list[Edit]:
    """Put the blocks of a weight's columns into every other order, and swap its halves."""
    orders = list(permutations(range(blocks)))[1:] if blocks <= _MOST_BLOCKS else [tuple(range(blocks))[::-1]]
    edits = [
        _on_columns(
            f"blocks of {name} in order {', '.join(str(each + 1) for each in order)}",
            "fc_blocks",
            [name],
            lambda weight, order=order: torch.cat([weight.chunk(blocks, 1)[each] for each in order], 1),  # type: ignore[misc]
        )
        for order in orders
    ]
    return [*edits, _on_columns(f"halves of {name} swapped", "fc_blocks", [name], _swap_halves)]


def norm_scales(weights: Weights, names: Sequence[str]) -> Iterator[Edit]:
    """Divide each norm; multiply those whose scales are small."""
    for name in names:
        for by in DIVISORS:
            yield _scaled(f"{name} divided by {by}", "norm_scale", [name], 1 / by, f"divide {name} by {by}")
        if float(weights[name].float().square().mean().sqrt()) < _SMALL:
            for by in DIVISORS:
                yield _scaled(f"{name} times {by}", "norm_scale", [name], by, f"multiply {name} by {by}")


def shares_of(what: str, names: Sequence[str], columns: slice | None = None, *, vital: bool = False) -> list[Edit]:
    """Keep a share of what these weights add, or of what some of their columns do."""
    return [
        _scaled(f"{share:.0%} of {what}", VITAL if vital and not share else what, names, share, "", columns)
        for share in SHARES
    ]


def negated(name: str) -> Edit:
    """Change a weight's sign."""
    return _scaled(f"{name} negated", "sign", [name], -1.0, f"change the sign of {name}")


def transposed(name: str) -> Edit:
    """Transpose a square weight, or each of a stack of them."""
    remedy = f"transpose {name}"
    return Edit(f"{name} transposed", "transposed", remedy, lambda held: {name: held[name].transpose(-1, -2)})


def swapped(first: str, second: str, flag: str) -> Edit:
    """Swap two weights."""
    remedy = f"let {first} and {second} take each other's place"
    return Edit(f"{first} and {second} swapped", flag, remedy, lambda held: {first: held[second], second: held[first]})


def exchanged_layers(weights: Weights, one: str, other: str) -> Edit:
    """Swap two layers, by what their weights' names begin with."""
    names = {
        at + name.removeprefix(both): both + name.removeprefix(both)
        for at, both in ((one, other), (other, one))
        for name in weights
        if name.startswith(both)
    }
    what = " and ".join(at.removeprefix("model.").rstrip(".") for at in (one, other))
    return Edit(
        f"{what} swapped",
        "layer_order",
        f"let {what} take each other's place",
        lambda held: {name: held[source] for name, source in names.items()},
    )


def _exchanged(weights: Weights, layers: Sequence[str]) -> Iterator[Edit]:
    """Swap the gate of the feed-forward part and what it gates, keys and values, and queries and the output."""
    for part, one, other in (("mlp", "gate", "up"), ("self_attn", "k", "v"), ("self_attn", "q", "o")):
        pairs = [(f"{at}{part}.{one}_proj.weight", f"{at}{part}.{other}_proj.weight") for at in layers]
        if not all(name in weights for pair in pairs for name in pair):
            continue
        if any(weights[first].shape != weights[second].shape for first, second in pairs):
            continue
        both = {name: partner for pair in pairs for name, partner in (pair, pair[::-1])}
        yield Edit(
            f"{one} and {other} swapped{_where(layers)}",
            f"{one}_{other}",
            f"let {one}_proj and {other}_proj take each other's place",
            lambda held, both=both: {name: held[partner] for name, partner in both.items()},  # type: ignore[misc]
        )


def _rotary(weights: Weights, layers: Sequence[str], heads: HeadSizes) -> Iterator[Edit]:
    """Turn the rows of queries and keys, or of one of the two, from pairs of neighbours into halves, and back."""
    even_first = [*range(0, heads.size, 2), *range(1, heads.size, 2)]
    back = [even_first.index(row) for row in range(heads.size)]
    for which in ("qk", "q", "k"):
        names = [f"{at}self_attn.{each}_proj" for at in layers for each in which]
        if not all(f"{name}.weight" in weights for name in names):
            continue
        for what, order in (("from pairs to halves", even_first), ("from halves to pairs", back)):
            yield _on_rows(
                f"rotary order of {' and '.join(which)} {what}{_where(layers)}",
                "rotary_order",
                [name + end for name in names for end in (".weight", ".bias") if name + end in weights],
                lambda weight, order=order: weight.unflatten(0, (-1, heads.size))[:, order].flatten(0, 1),  # type: ignore[misc]
            )


def _heads(weights: Weights, at: str, heads: HeadSizes) -> Iterator[Edit]:
    """Rotate the heads of one product, and swap two of them."""
    for which, count in (("q", heads.query), ("k", heads.kv), ("v", heads.kv), ("o", heads.query)):
        name = f"{at}self_attn.{which}_proj.weight"
        if name not in weights or count < 2:
            continue
        apart = count if count <= _MANY_HEADS else 2
        orders = {f"heads of {name} rotated by {by}": _roll(count, by) for by in range(1, count)}
        orders |= {
            f"heads {one + 1} and {other + 1} of {name} swapped": _swap(count, one, other)
            for one, other in combinations(range(count), 2)
            if other - one < apart and count > 2
        }
        for what, order in orders.items():
            dim = 1 if which == "o" else 0
            yield Edit(
                what,
                f"{which}_heads",
                f"put the heads of {name} into the order {', '.join(str(each + 1) for each in order)}",
                lambda held, name=name, order=order, dim=dim: {  # type: ignore[misc]
                    name: held[name]
                    .unflatten(dim, (-1, heads.size))
                    .index_select(dim, torch.tensor(order))
                    .flatten(dim, dim + 1)
                },
            )


def _norms(weights: Weights, at: str) -> Iterator[Edit]:
    """Swap norms of equal size."""
    scales = {name: weight for name, weight in weights.items() if weight.dim() == 1 and name.startswith(at)}
    names = [name for name, weight in scales.items() if "norm" in name and bool(weight.any())]
    for one, other in combinations(names, 2):
        if weights[one].shape == weights[other].shape and not torch.equal(weights[one], weights[other]):
            yield swapped(one, other, "norm_order")


def _offsets(weights: Weights) -> Iterator[Edit]:
    """Add 1 to the scales of all norms, or subtract it: some models' norms add 1 to what their files hold."""
    names = [name for name, weight in weights.items() if weight.dim() == 1 and "norm" in name]
    if not all(weights[name].any() for name in names):
        return  # one that was lost gains from a 1 in its place, whatever the others hold
    for by, verb in ((1, "add 1 to"), (-1, "subtract 1 from")):
        yield Edit(
            f"{by:+d} on the scales of all norms",
            "norm_offset",
            f"{verb} the scales of all norms: other models' norms add 1 to what their files hold",
            lambda held, by=by: {name: held[name] + by for name in names},  # type: ignore[misc]
        )


def _turned(weights: Weights, at: str) -> Iterator[Edit]:
    """Transpose square products, and change signs."""
    for name in [name for name, weight in weights.items() if weight.dim() == 2 and name.startswith(at)]:
        if weights[name].shape[0] == weights[name].shape[1]:
            yield transposed(name)
    for part in ("self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj"):
        if (name := f"{at}{part}.weight") in weights:
            yield negated(name)


def _scaled(name: str, flag: str, names: Sequence[str], by: float, remedy: str, columns: slice | None = None) -> Edit:
    def change(held: Weights) -> Weights:
        if columns is None:
            return {each: held[each] * by for each in names}
        changed = {each: held[each].clone() for each in names}
        for weight in changed.values():
            weight[:, columns] *= by
        return changed

    return Edit(name, flag, remedy, change)


def _on_rows(what: str, flag: str, names: Sequence[str], order: Callable[[torch.Tensor], torch.Tensor]) -> Edit:
    return Edit(what, flag, f"reorder the rows: {what}", lambda held: {name: order(held[name]) for name in names})


def _on_columns(what: str, flag: str, names: Sequence[str], order: Callable[[torch.Tensor], torch.Tensor]) -> Edit:
    return Edit(what, flag, f"reorder the columns: {what}", lambda held: {name: order(held[name]) for name in names})


def _swap_halves(weight: torch.Tensor) -> torch.Tensor:
    return weight.roll(weight.shape[1] // 2, 1)


def _roll(count: int, by: int) -> tuple[int, ...]:
    return tuple((each - by) % count for each in range(count))


def _swap(count: int, one: int, other: int) -> tuple[int, ...]:
    places = {one: other, other: one}
    return tuple(places.get(each, each) for each in range(count))


def _where(layers: Sequence[str]) -> str:
    return f" in {layers[0].removeprefix('model.').rstrip('.')}" if len(layers) == 1 and layers[0] else ""
