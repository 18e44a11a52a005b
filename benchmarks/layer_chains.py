"""Measure chains of layers without attention: the cost of a launch, and the savings of fused kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch.nn.functional import linear, rms_norm, silu

from .gpu_kernels import reason, row
from .kernel_cases import LayerSizes
from .product_bench import EPS, Bench, Multiplication, products

LAYERS = {"135M": 30, "1B": 16, "7B": 8, "tiny": 2}  # too many bytes for an L2 cache
HEAD = [
    "chain, a layer",
    "rows",
    "MB",
    "cuBLAS, torch",
    "cuBLAS, our pointwise",
    "ours, our pointwise",
    "the same, overlapping",
    "ours, all fused",
]
LayerFunction = Callable[[torch.Tensor, int], torch.Tensor]


def small(shape: LayerSizes) -> list[tuple[str, int, int, tuple[str, ...]]]:
    """List the products of a layer with all their extras."""
    extras = {"qkv": ("norm",), "out": ("residual",), "gate_up": ("norm", "gated"), "down": ("residual",)}
    sizes = {name: (outputs, inputs) for name, outputs, inputs in products(shape)}
    sizes["gate_up"] = shape.inner, shape.hidden
    return [(name, *sizes[name], extras[name]) for name in extras]


def fused_plan(bench: Bench, rows: int, outputs: int, inputs: int, gated: bool) -> Any:
    """Return the fastest measured plan of a product; if gated, without a split and with smaller blocks."""
    from decoding.gpu.products import plan

    by = bench.best.get((rows, 2 * outputs if gated else outputs, inputs, False))
    by = plan(rows, outputs, inputs, torch.bfloat16) if by is None else by
    if gated:  # reads two blocks
        by = replace(by, split=1, outputs=max(by.outputs // 2, 16 if by.rows else 1))
    return by


def tasks(bench: Bench, shape: LayerSizes, rows: int) -> Iterator[Multiplication]:
    """List the kernels that a chain compiles."""
    for name, outputs, inputs, extras in small(shape):
        wide = outputs * (2 if name == "gate_up" else 1)
        yield rows, outputs, inputs, fused_plan(bench, rows, outputs, inputs, name == "gate_up"), False, extras
        yield rows, wide, inputs, fused_plan(bench, rows, wide, inputs, False), False, ()


def measure(bench: Bench, shape: LayerSizes, rows: int) -> None:
    """Time each way to compute layers without attention, one after the other."""
    from decoding.gpu.norm import norm
    from decoding.gpu.products import Extras, product
    from decoding.gpu.swiglu import swiglu

    layers, hidden = LAYERS[shape.name], shape.hidden
    sizes = {name: (outputs, inputs) for name, outputs, inputs in products(shape) if name != "head"}
    weights = {name: bench.random(layers, *size) for name, size in sizes.items()}
    first, scale = bench.random(rows, hidden), torch.ones(hidden, dtype=torch.bfloat16, device=bench.device)
    attended = bench.random(rows, sizes["out"][1])

    def by(name: str, gated: bool = False) -> Any:
        outputs, inputs = sizes[name]
        return fused_plan(bench, rows, outputs // 2 if gated else outputs, inputs, gated)

    def torchs(x: torch.Tensor, at: int) -> torch.Tensor:
        linear(rms_norm(x, x.shape[1:], eps=EPS) * scale, weights["qkv"][at])
        x = x + linear(attended, weights["out"][at])
        gate, up = linear(rms_norm(x, x.shape[1:], eps=EPS) * scale, weights["gate_up"][at]).chunk(2, -1)
        return x + linear(silu(gate).mul_(up), weights["down"][at])

    def pointwise(multiply: Callable[[torch.Tensor, str, int], torch.Tensor], overlap: bool = False) -> LayerFunction:
        def layer(x: torch.Tensor, at: int) -> torch.Tensor:
            multiply(norm(x, None, scale, EPS, overlap)[1], "qkv", at)
            x, normed = norm(x, multiply(attended, "out", at), scale, EPS, overlap)
            return x + multiply(swiglu(multiply(normed, "gate_up", at), overlap), "down", at)

        return layer

    def multiplied(x: torch.Tensor, name: str, at: int, overlap: bool = False) -> torch.Tensor:
        return product(x, weights[name][at], by=by(name), overlap=overlap)

    def fused() -> LayerFunction:
        qkv, out, gate_up, down = by("qkv"), by("out"), by("gate_up", True), by("down")

        def layer(x: torch.Tensor, at: int) -> torch.Tensor:
            product(x, weights["qkv"][at], Extras(norm=scale, eps=EPS), qkv)
            x = product(attended, weights["out"][at], Extras(residual=x), out)
            gated = product(x, weights["gate_up"][at], Extras(norm=scale, eps=EPS, gated=True), gate_up)
            return product(gated, weights["down"][at], Extras(residual=x), down)

        return layer

    ways: dict[str, LayerFunction] = {
        "cuBLAS, torch": torchs,
        "cuBLAS, our pointwise": pointwise(lambda x, name, at: linear(x, weights[name][at])),
        "ours, our pointwise": pointwise(multiplied),
        "the same, overlapping": pointwise(partial(multiplied, overlap=True), overlap=True),
        "ours, all fused": fused(),
    }
    size = sum(weight[0].nbytes for weight in weights.values())
    cells, expected = [shape.name, str(rows), f"{size / 1e6:.1f}"], None
    for way, layer in ways.items():

        def run(layer: LayerFunction = layer) -> torch.Tensor:
            x = first
            for at in range(layers):
                x = layer(x, at)
            return x

        try:
            x = run().double()
            expected = x if expected is None else expected
            apart = float((x - expected).norm() / expected.norm())
            took = bench.time([run]) / layers
            cells.append(f"{took * 1e6:.2f} us, {size / took / 1e9:.0f} GB/s, differs {apart:.4f}")
            bench.records.append({"chain": shape.name, "rows": rows, "way": way, "us": took * 1e6, "apart": apart})
        except Exception as error:  # another way may work
            cells.append(f"FAILED {reason(error)[:100]}")
    if expected is not None:
        bench.say(row(cells))
