"""Large copies wake none of torch's threads, and are the same as torch's own."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from decoding.errors import ModelError
from decoding.model import quiet
from tests.families import needs_compiler

THREADS = """
import os
import torch
from decoding.model import quiet

def threads():
    return len(os.listdir("/proc/self/task"))

torch.set_num_threads(2)
table, index, counts = torch.empty(600, 256), torch.arange(600), [threads()]
quiet.rows(table, index)
quiet.zeros(600, 256, device=table.device, dtype=table.dtype)
counts.append(threads())
table.index_select(0, index)
counts.append(threads())
print(*counts)
"""


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("count", [0, 1, 5, 700])
def test_rows_are_torchs(dtype: torch.dtype, count: int) -> None:
    """Of a part of a table as well, and in any order."""
    table = torch.randn(60, 2 * quiet.MOST // 64).to(dtype)[7:]
    index = torch.randint(len(table), (count,))
    wanted = table.index_select(0, index)
    assert torch.equal(quiet.rows(table, index), wanted)
    assert torch.equal(quiet.rows(table, index.tolist()), wanted)
    assert torch.equal(quiet.rows(table.t().contiguous().t(), index.tolist()), wanted), "a table that lies otherwise"


@needs_compiler
@pytest.mark.parametrize("row", [-1, 60, 2**40])
def test_a_row_that_is_not_there_is_refused(row: int) -> None:
    """Compiled code would copy what lies beside the table."""
    with pytest.raises(ModelError, match="name tokens from 0 to 59"):
        quiet.rows(torch.randn(60, 32), [3, row])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_zeros_are_torchs(dtype: torch.dtype) -> None:
    made = quiet.zeros(3, 2, quiet.MOST, device=torch.device("cpu"), dtype=dtype)
    assert made.dtype == dtype and torch.equal(made, torch.zeros(3, 2, quiet.MOST, dtype=dtype))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted by Linux's process files")
def test_no_thread_is_woken() -> None:
    """torch makes its second thread when it is first needed; its own selection of so many rows needs it."""
    command = [sys.executable, "-c", THREADS]
    before, quietly, loudly = map(int, subprocess.run(command, check=True, capture_output=True).stdout.split())
    assert before == quietly < loudly
