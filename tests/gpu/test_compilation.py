"""Triton's interpreter forgives what its compiler refuses."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from benchmarks.compile_kernels import touched_early
from tests import ROOT

# The odd shape's kernels run in the interpreter in every type; compiled, one type shows what the compiler refuses.
_ODD = [
    pytest.param("odd", "float32", "8", marks=pytest.mark.slow),
    pytest.param("odd", "float16", "8", marks=pytest.mark.nightly),
]


@pytest.mark.slow  # it compiles every kernel
@pytest.mark.parametrize(("shape", "dtype", "rows"), [("135M", "bfloat16", "1 8"), *_ODD])
def test_gpus_could_run_every_kernel(shape: str, dtype: str, rows: str) -> None:
    """Two generations, within what a program can have of shared memory and, on the newer one, of registers."""
    flags = ["80", "90", "--shapes", shape, "--dtypes", dtype, "--rows", *rows.split()]
    flags += ["--in-turn"] if shape == "odd" else []  # one shape's kernels show whether they wait for their turn
    command = [sys.executable, "-m", "benchmarks.compile_kernels", *flags]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    stacks = [int(size) for size in re.findall(r"(\d+) of stack", result.stdout.split("sm_90", 1)[1])]
    assert len(stacks) >= 12 and max(stacks) <= 16
    assert shape == "odd" or result.stdout.count(" of stack, overlapping\n") >= 8, "or no kernel's turn was checked"


def test_a_kernel_that_reads_before_its_turn_is_noticed() -> None:
    """On a device its numbers would be wrong once in a while."""
    asks, waits = "cp.async.bulk.prefetch.L2.global [%rd1], %r1;", "griddepcontrol.wait;"
    assert (
        touched_early(f"ld.param.b64 %rd1, [x]; {asks} {waits} ld.global.b32 %r2, [%rd1]; st.global.b32 [%rd1], %r2;")
        == []
    )
    for touch in ("ld.global.v4.b32", "cp.async.cg.shared.global", "st.global.b16", "atom.global.add.f32"):
        assert touched_early(f"ld.param.b64 %rd1, [x]; {touch} %r2, [%rd1]; {waits}") == [touch]
