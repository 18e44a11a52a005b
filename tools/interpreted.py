"""Fix Triton's interpreter where it differs from a device.

With numpy 2.4 and later it cannot loop over a range that a kernel has read. In bfloat16 it multiplies the numbers' bits
instead of the numbers, and truncates where a device rounds. On a processor without AVX-512, the rounding of a row of a
product depends on the row's position; on a device it does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def mend() -> None:
    """Fix the interpreter of this process, once, before a kernel runs in it."""
    import triton.language as tl
    from triton.runtime import interpreter

    patch, convert, dot = interpreter._patch_lang_tensor, interpreter._convert_float, interpreter.InterpreterBuilder
    if getattr(patch, "mended", False):
        return

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    def converted(numbers: Any, source: Any, target: Any, rounding: Any) -> Any:
        if (source, target) == (tl.bfloat16, tl.float32):
            return numbers.view(np.uint16).astype(np.uint32) << 16
        if (source, target) == (tl.float32, tl.bfloat16):
            bits = numbers.view(np.uint32)
            nearest = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16  # ties go to even
            return np.where(np.isnan(numbers), 0x7FC0, nearest).astype(np.uint16)
        return convert(numbers, source, target, rounding)

    def multiplied(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        a, b = (self.cast_impl(part, tl.float32) if part.dtype.scalar == tl.bfloat16 else part for part in (a, b))
        # Multiply each row separately, and add each block to the accumulator afterwards.
        rows = interpreter.TensorHandle(a.data[..., None, :], a.dtype)
        none = interpreter.TensorHandle(np.zeros((), d.data.dtype), d.dtype)
        each = original(self, rows, b, none, *rest)
        return interpreter.TensorHandle(each.data[..., 0, :] + d.data, d.dtype.scalar)

    patched.mended = True  # type: ignore[attr-defined]
    original = dot.create_dot
    interpreter._patch_lang_tensor, interpreter._convert_float = patched, converted
    dot.create_dot = multiplied
