"""GGUF files for llama.cpp: the one that a model comes from, and the same with its weights in 16 or 32 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from decoding.errors import ModelError, ParamError
from decoding.gguf.file import GgufFile
from decoding.gguf.folder import is_gguf
from decoding.smollm2 import NAME, packaged
from decoding.user_cache import user_cache

_FORMAT = 1  # of the files written here


def source_of(name: str) -> Path:
    """Return the GGUF file of a model; raise ParamError if there is none."""
    path = packaged() if name == NAME and not Path(name).exists() else Path(name)
    if path is None or not is_gguf(path):
        raise ParamError("llama.cpp reads GGUF files: name one with --model, or leave it out of the peers")
    return path


def precision_of(path: Path) -> str:
    """Return how most of a file's weights are stored, as "BF16" or "Q4_1"."""
    sizes: dict[str, int] = {}
    for stored in GgufFile(path).tensors.values():
        sizes[stored.kind.name] = sizes.get(stored.kind.name, 0) + stored.size
    return max(sizes, key=sizes.__getitem__)


def unquantised(source: Path, dtype: torch.dtype) -> Path:
    """Return the file with its matrices dequantised to `dtype`, in the user's cache; write it if it is not there."""
    import gguf

    kinds = {
        torch.float32: gguf.GGMLQuantizationType.F32,
        torch.bfloat16: gguf.GGMLQuantizationType.BF16,
        torch.float16: gguf.GGMLQuantizationType.F16,
    }
    home, file = user_cache(), GgufFile(source)
    if home is None:
        raise ModelError(f"{source.name} needs a place for its dequantised weights: set XDG_CACHE_HOME to a folder")
    target = home / "llama.cpp" / f"v{_FORMAT}-{file.digest()[:16]}-{kinds[dtype].name}.gguf"
    if not target.is_file():
        fresh = target.with_suffix(".unfinished")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(source, file, kinds[dtype], fresh)
            fresh.replace(target)
        except OSError as error:
            reason = error.strerror or error
            raise ModelError(f"{source.name} cannot be dequantised into {str(target.parent)!r}: {reason}") from None
    return target


def _write(source: Path, file: GgufFile, kind: Any, target: Path) -> None:
    import gguf

    reader, writer = gguf.GGUFReader(source), gguf.GGUFWriter(target, file.architecture)
    for key, field in reader.fields.items():
        # The writer sets its own version, counts and architecture.
        if not key.startswith("GGUF.") and key not in ("general.architecture", "general.file_type"):
            writer.add_key_value(key, field.contents(), field.types[0], field.types[-1] if field.types[1:] else None)
    for name in file.tensors:
        numbers = file.get(name, torch.float32).numpy()
        stored = kind if numbers.ndim > 1 else gguf.GGMLQuantizationType.F32  # norms, as llama.cpp wants them
        writer.add_tensor(name, gguf.quantize(numbers, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
