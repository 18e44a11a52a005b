"""Compiles the kernels of products for devices that need not be there. Run by itself: tests set the interpreter."""

from __future__ import annotations

import os
from itertools import product
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)

import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

from decoding.gpu.product_row import multiply_row  # noqa: E402
from decoding.gpu.product_rows import multiply_rows  # noqa: E402
from decoding.gpu.product_sum import add_parts  # noqa: E402

FLAGS = dict.fromkeys(("SCALED", "BIASED", "NORMED", "GATED", "ADDED"), False)
BLOCKS = {"inputs": 576, "BLOCK_N": 16, "BLOCK_K": 64, "SPLIT": 1, "STAGES": 4, "EVEN": True, "EARLY": 0}


def build(kernel: Any, capability: int, constants: dict[str, Any], **types: str) -> None:
    """Compile to the device's machine code; pointers and sizes are multiples of 16."""
    names = [name for name in kernel.arg_names if name not in constants]
    usual = {"rows": "i32", "outputs": "i32", "eps": "fp32"}
    signature = {name: types.get(name, usual.get(name, types["x"])) for name in names}
    aligned: Any = {
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(kernel.arg_names)
        if name in names and name != "tiles"
    }
    aligned = {at: value for at, value in aligned.items() if kernel.arg_names[at[0]] not in ("eps", "rows")}
    source = ASTSource(kernel, signature | dict.fromkeys(constants, "constexpr"), constants, aligned)
    options = {"num_warps": 4, **({"launch_pdl": True} if constants["EARLY"] else {})}
    assert triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options).asm["cubin"]


def main() -> None:
    """Every dtype and addition at least once for each of the two generations."""
    for capability, dtype in product((80, 90), ("*bf16", "*fp32")):
        rows = BLOCKS | FLAGS | {"BLOCK_M": 16, "WIDE": False, "BULK": False}
        sixteen = dtype == "*bf16"
        many = {"BLOCK_M": 64 if sixteen else 16, "BLOCK_N": 64 if sixteen else 32, "BLOCK_K": 64 if sixteen else 32}
        every = {"BIASED": True, "NORMED": True, "GATED": True, "ADDED": True, "EVEN": False}
        build(multiply_rows, capability, rows | many | {"SPLIT": 3}, x=dtype, y="*fp32")
        build(multiply_rows, capability, rows | every | {"BLOCK_K": many["BLOCK_K"]}, x=dtype)
        build(multiply_row, capability, BLOCKS | FLAGS | {"BLOCK_K": 256} | every, x=dtype)
        if capability >= 90:
            bulk = {"BULK": True, "BLOCK_K": many["BLOCK_K"]}
            build(
                multiply_rows, capability, rows | bulk, x=dtype, tiles=f"tensordesc<{dtype[1:]}[16, {bulk['BLOCK_K']}]>"
            )
        if sixteen:
            early = {"EARLY": 8 if capability >= 90 else 0, "SCALED": True}
            build(multiply_rows, capability, rows | early, x=dtype, weight="*i8")
            build(multiply_row, capability, BLOCKS | FLAGS | early, x=dtype, weight="*i8")
        ends = dict.fromkeys(("SCALED", "BIASED", "ADDED"), True)
        build(add_parts, capability, {"SPLIT": 4, "BLOCK_N": 256, "EARLY": 0} | ends, x=dtype, parts="*fp32")


if __name__ == "__main__":
    main()
