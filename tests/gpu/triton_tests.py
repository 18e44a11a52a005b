"""Where Triton's kernels run in tests: on a GPU, or else in Triton's interpreter, whose rounding is mended here."""

from __future__ import annotations

from typing import Any

import pytest
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
interpreter: Any = pytest.importorskip("triton.runtime.interpreter")
_convert = interpreter._convert_float


def _rounded(numbers: Any, source: Any, target: Any, mode: Any) -> Any:
    """Round float32 to the nearest bfloat16, as devices do; the interpreter cuts the rest off."""
    if source.name == "fp32" and target.name == "bf16":
        return torch.from_numpy(numbers.copy()).bfloat16().view(torch.uint16).numpy()
    return _convert(numbers, source, target, mode)


interpreter._convert_float = _rounded
