"""Counts a model's memory before any of its weights is read or fetched."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod
from pathlib import Path

import torch

from decoding.gguf.file import GgufFile
from decoding.gguf.folder import is_gguf
from decoding.gguf.names import make_config as read_gguf_config
from decoding.model.config import has_decoder, read_shape
from decoding.model.files import TensorFiles, read_config
from decoding.model.layout import Sizes, find_devices
from decoding.model.precision import Precision, find_precision
from decoding.model.transformers_loading import check_architecture
from decoding.model.transformers_quantised import check_quantisation, count_parameters, needed_bytes


def weight_bytes(path: Path, device: str | None = None, dtype: str | None = None, *, here: bool = True) -> int:
    """Count the bytes of a model's weights in memory, by its config.json or the header of its GGUF file.

    Raises ModelError for a model that cannot be run, and if `here` for weight files other than safetensors. Without the
    files quantised weights count one byte for each parameter: only the files say how they are packed.
    """
    devices = find_devices(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    precision = find_precision(dtype, devices[-1])
    if is_gguf(path):
        return _gguf_bytes(path, precision)
    raw, config = read_config(path)
    with ExitStack() as stack:
        files = stack.enter_context(TensorFiles(path)) if here else None
        if has_decoder(raw):
            shape = read_shape(config)
            return Sizes.of(shape, precision).held(shape.tied)
        kind, quantised = check_architecture(config), check_quantisation(config, devices[0])
        parameters = count_parameters(kind, config)
        if quantised is None:
            return parameters * precision.dtype.itemsize
        return parameters if files is None else needed_bytes(quantised, files, parameters, precision.dtype)


def _gguf_bytes(path: Path, precision: Precision) -> int:
    file = GgufFile(path)
    read_gguf_config(file)  # refuses families that cannot be run
    matrices = {name for name, stored in file.tensors.items() if len(stored.shape) == 2 and name != "token_embd.weight"}
    return sum(
        precision.bytes(*stored.shape) if name in matrices else prod(stored.shape) * precision.dtype.itemsize
        for name, stored in file.tensors.items()
    )
