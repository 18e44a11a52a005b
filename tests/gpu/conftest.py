"""Tests of Triton's kernels run on a GPU, or else in Triton's interpreter; without Triton they are left out."""

from __future__ import annotations

from importlib.util import find_spec

import torch

from tools.interpreted import mend

_KERNELS = ["test_compilation.py", "test_pointwise.py", "test_products.py", "test_tree_attention.py"]
collect_ignore = [] if find_spec("triton") else _KERNELS
if find_spec("triton") and not torch.cuda.is_available():
    mend()
