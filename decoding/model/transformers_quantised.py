"""Checks that transformers can compute with quantised weights here, and counts their memory."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import ModelError
from .files import FLOATS, TensorFiles

# Packages that keep packed weights until the first pass, and then widen them to the dtype of the computation.
_WIDENING = ("compressed-tensors",)


def check_quantisation(config: Any, device: torch.device) -> str | None:
    """Return how the weights are quantised; raise ModelError unless transformers computes with them as they are."""
    quantisation = getattr(config, "quantization_config", None)
    if quantisation is None:
        return None
    from transformers.quantizers import AutoHfQuantizer

    given = quantisation if isinstance(quantisation, dict) else quantisation.to_dict()
    method = str(given.get("quant_method", "an unknown method"))[:40]
    try:
        quantiser = AutoHfQuantizer.from_config(quantisation, pre_quantized=True)
        quantiser.validate_environment(device_map={"": str(device)})
    except Exception as error:  # a package that is missing, a device that is too old, settings of a newer version
        raise ModelError(f"weights quantised by {method} cannot be run here: {as_one_line(error)}") from None
    if getattr(quantiser.quantization_config, "dequantize", False):
        raise ModelError(
            f"weights quantised by {method} need a device or package that is not here, and would be widened without a "
            "word: use the model's float32, float16 or bfloat16 weights"
        )
    return method


def needed_bytes(method: str | None, files: TensorFiles, parameters: int, dtype: torch.dtype) -> int:
    """Count the bytes of weights quantised by `method` (None: not at all); ModelError if the files hold others."""
    if method is None:
        return files.bytes(dtype)
    if all(stored in FLOATS for stored in files.dtypes.values()):
        raise ModelError(
            f"config.json says that the weights are quantised by {method}, but all of them are plain numbers: "
            "the weight files do not belong to it"
        )
    if method in _WIDENING:
        return max(files.bytes(), parameters * dtype.itemsize)
    return max(files.bytes(), files.bytes(dtype))  # some packages keep the saved dtype of scales and other weights


def count_parameters(kind: Any, config: Any) -> int:
    """Count the parameters before quantisation, which may pack several into one number."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in kind(config).parameters())


def held_bytes(model: Any) -> int:
    """Count the bytes of a model's weights in memory, with the tensors that a quantiser attaches to them."""
    tensors = dict[int, torch.Tensor]()  # by identity, so that a shared one counts once
    for weight in model.parameters():
        state = getattr(weight, "quant_state", None)  # of bitsandbytes
        beside = [each for each in vars(state).values() if isinstance(each, torch.Tensor)] if state else []
        tensors |= {id(tensor): tensor for tensor in (weight, *beside)}
    return sum(map(stored_bytes, tensors.values()))


def stored_bytes(tensor: torch.Tensor) -> int:
    """Count the bytes of a tensor; a quantised one looks like floats but consists of codes and scales."""
    if hasattr(type(tensor), "__tensor_flatten__"):
        parts, _ = tensor.__tensor_flatten__()  # type: ignore[attr-defined]
        return sum(stored_bytes(getattr(tensor, part)) for part in parts)
    return tensor.numel() * tensor.element_size()


def as_one_line(error: Exception) -> str:
    """Return the first words of an error; for a missing package, how to install it."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0].replace("_", "-")
        return f"the package {package} is missing: pip install {package}"
    return " ".join(str(error).split())[:200] or type(error).__name__
