"""Compiles kernels for devices that are not there. The interpreter forgives what the compiler refuses.

    python -m tests.gpu.compile_attention

It must be a process of its own: where kernels are interpreted, there is nothing to compile.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from decoding.gpu import combine, tree_attention

CAPABILITIES = (80, 90)
SHARED = {80: 99 * 1024, 90: 227 * 1024}  # bytes of a block; 8.6 and 8.9 have less than 8.0
_TYPES = {torch.bfloat16: "*bf16", torch.float16: "*fp16", torch.float32: "*fp32"}

Launch = tuple[Any, dict[str, str], dict[str, Any], int]  # kernel, types of its numbers, the others, warps


def launches() -> Iterator[Launch]:
    """What is launched for 135M and 7B in bfloat16, and for odd sizes in the other dtypes."""
    for dtype, repeats, kv_heads, size in (
        (torch.bfloat16, 3, 3, 64),
        (torch.bfloat16, 4, 8, 128),
        (torch.float16, 1, 4, 80),
        (torch.float32, 4, 8, 96),
    ):
        wide = triton.next_power_of_2(size)
        plan = tree_attention.plan(kv_heads, size, 4096, dtype, torch.device("cpu"))
        pointer, sums = _TYPES[dtype], {"mixed_shares": "*fp32", "totals": "*fp32"}
        numbers = {"query": pointer, "key": pointer, "value": pointer, "first": "*i64", "seen": "*i1", **sums}
        numbers |= {"packed": "i32", "splits": "i32", "scale": "fp32"}
        fixed = {"repeats": repeats, "kv_heads": kv_heads, "size": size, "wide": wide, "queries": plan.queries}
        fixed |= {"keys": plan.keys, "precision": "ieee" if dtype == torch.float32 else "tf32", "stages": plan.stages}
        yield tree_attention._attend, numbers, fixed, plan.warps
        numbers = {**sums, "first": "*i64", "out": pointer, "count": "i32", "rows": "i32", "splits": "i32"}
        yield combine._combine, numbers, {"size": size, "wide": wide, "shares": 32, "keys": plan.keys}, 4


def main() -> None:
    """Compile them all to machine code."""
    for capability, (kernel, numbers, fixed, warps) in product(CAPABILITIES, launches()):
        types = {name: numbers.get(name, "constexpr") for name in kernel.arg_names}
        pointers = [at for at, name in enumerate(kernel.arg_names) if types[name].startswith("*") and name != "seen"]
        source = ASTSource(kernel, types, fixed, {(at,): [["tt.divisibility", 16]] for at in pointers})
        made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps})
        assert made.metadata.shared <= SHARED[capability], (fixed, made.metadata.shared)
        assert capability < 90 or stack(made.asm["cubin"]) <= 16, f"{fixed}: registers do not suffice"


def stack(code: bytes) -> int:
    """Bytes of memory that a thread of compiled code uses beside its registers; Triton brings CUDA's tool along."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with TemporaryDirectory() as folder:
        (Path(folder) / "cubin").write_bytes(code)
        command = [tool, "--dump-resource-usage", f"{folder}/cubin"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(told.split("STACK:")[1].split()[0])


if __name__ == "__main__":
    main()
