"""Where Triton's kernels run in tests: on a GPU, or else in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

from tests.gpu.interpreted import mend

pytest.importorskip("triton")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if DEVICE.type == "cpu":
    mend()
