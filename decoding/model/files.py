"""Finds model folders, and reads them without trust: only safetensors, which cannot run code."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch

from .. import smollm2
from ..embedded import FOLDERS
from ..errors import ModelError, ModelMissingError
from ..gguf.folder import folder_of, is_gguf
from ..hub import find_repository, parse_id
from ..installation import CLONE
from ..packed import open_tensors, stored
from ..types import JSON
from .config import plain_reason
from .precision import Precision
from .session import ProgressCallback

_LARGEST_JSON = 64 * 2**20  # bytes; the index of the largest models is a tenth of it
# Above every model, and a configuration of this size is still cheap to read.
_LARGEST_SIZE = 2**24  # heads, dimensions or tokens
_MOST_LAYERS = 4096
_SIZES = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "hidden_size", "intermediate_size")
FLOATS = ("F64", "F32", "F16", "BF16")  # numbers that are converted when a model is loaded
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


class ModelFolder(NamedTuple):
    """A model to load, and how."""

    path: Path
    raw: dict[str, JSON]  # config.json as JSON
    config: Any  # config.json as transformers' configuration
    name: str  # in records
    devices: tuple[torch.device, ...]
    precision: Precision
    progress: ProgressCallback


def find_folder(
    name: str, progress: ProgressCallback, dtype: torch.dtype | None = None, *, download: bool = True
) -> Path:
    """Find the folder of a model named by its path, its name, a GGUF file or a hub id.

    GGUF files are dequantised to `dtype`; without it any folder made from the file will do. Without `download` nothing
    is fetched from the hub.
    """
    if name in FOLDERS:
        if FOLDERS[name].is_dir():
            return FOLDERS[name]
        raise ModelError(f"this installation has no embedded model {name!r}: {CLONE}, or name another model")
    path = Path(name)
    try:
        if name and path.is_dir():
            return path
        exists, gguf = path.exists(), is_gguf(path)
    except OSError:  # a name too long for the file system
        exists, gguf = True, False
    if name == smollm2.NAME and not exists:
        path = smollm2.find(progress, download=download)
        gguf = is_gguf(path)
        if not gguf:
            return path
    if gguf:
        return folder_of(path, dtype, progress)
    hub_id = parse_id(name)
    if exists or hub_id is None or path.suffix.lower() == ".gguf":
        raise ModelError(
            f"{name[:200]!r} is not a folder; name a model folder, a GGUF file or a hub id such as org/model, or "
            "org/model@revision"
        )
    try:
        return find_repository(hub_id, "the model", progress, download=download)
    except ModelMissingError:
        raise
    except ModelError:
        from huggingface_hub.constants import HF_HUB_OFFLINE

        raise ModelError(
            f"there is no folder {name[:200]!r}, and the hub gave no model of that name; check the name and the network"
            f"{', which HF_HUB_OFFLINE turns off' if HF_HUB_OFFLINE else ''}, or name a model folder"
        ) from None


def public_name(name: str) -> str:
    """Return the name of a model for records, which other people read, without the folders above it."""
    try:
        path = Path(name)
        if name in FOLDERS or not path.exists():
            return name
        if path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--"):  # of the hub's cache
            return path.parent.parent.name.removeprefix("models--").replace("--", "/")
        return path.stem if is_gguf(path) else path.resolve().name
    except OSError:
        return name


def read_config(folder: Path) -> tuple[dict[str, JSON], Any]:
    """Read config.json as JSON and as transformers' configuration; allocate nothing by its sizes."""
    if not (folder / "config.json").is_file():
        files = sorted(path.name for path in folder.glob("*.gguf"))
        advice = f"; name its GGUF file itself, such as {files[0][:80]}" if files else ""
        raise ModelError(f"{str(folder)!r} is no model folder: it has no config.json{advice}")
    raw = read_json(folder / "config.json")
    for name, value in raw.items():
        largest = _MOST_LAYERS if name == "num_hidden_layers" else _LARGEST_SIZE
        if name in _SIZES and isinstance(value, int | float) and value > largest:
            raise ModelError(f"{name} is {str(value)[:40]} in config.json, which no model has; fetch the model again")
    from transformers import CONFIG_MAPPING, AutoConfig

    family = raw.get("model_type")
    if not isinstance(family, str) or family not in CONFIG_MAPPING:
        raise ModelError(
            f"transformers {version('transformers')} knows no models of type {str(family)[:40]!r}: "
            "name another model, or update transformers"
        )
    try:
        return raw, AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # validation in transformers raises errors of many kinds
        raise ModelError(f"config.json in {str(folder)!r} cannot be used: {plain_reason(error)}") from None


def read_json(path: Path) -> dict[str, JSON]:
    """Read a JSON object from a file of sane size."""
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise ModelError(f"{path.name} is too large to be what its name says; fetch the model again")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        at = f" from line {error.lineno}, column {error.colno} on" if isinstance(error, json.JSONDecodeError) else ""
        raise ModelError(f"{path.name} in {str(path.parent)!r} is no JSON{at}: correct it or fetch it again") from None
    if not isinstance(content, dict):
        raise ModelError(f"{path.name} in {str(path.parent)!r} holds no JSON object: correct it or fetch it again")
    return content


class TensorFiles:
    """The weights of a folder, one safetensors file or several with an index, read one tensor at a time."""

    def __init__(self, folder: Path) -> None:
        self._files: dict[str, Any] = {}  # by the tensor's name
        self._stack = ExitStack()
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, str] = {}  # by their names in the file
        paths = _weight_files(folder)
        with ExitStack() as stack:
            for path in paths:
                self._open(path, stack)
            self._stack = stack.pop_all()

    def _open(self, path: Path, stack: ExitStack) -> None:
        file = stack.enter_context(open_tensors(path, f"{path.name} is damaged or cut short; fetch the model again"))
        for name in file.keys():  # noqa: SIM118  # the file is no dict
            if name in self.shapes:
                raise ModelError(f"the weight {name[:80]} is in two files; fetch the model again")
            self._files[name] = file
            part = file.get_slice(name)
            self.shapes[name], self.dtypes[name] = tuple(part.get_shape()), str(part.get_dtype())

    def bytes(self, dtype: torch.dtype | None = None) -> int:
        """Count the bytes of all tensors as stored, or with floating-point numbers converted to `dtype`."""
        return sum(prod(size) * _width(self.dtypes[name], dtype) for name, size in self.shapes.items())

    def rows(self, name: str) -> torch.Tensor:
        """Read the first and the last row of a tensor; all of it if it has fewer."""
        size = self.shapes[name]
        if len(size) < 2 or size[0] < 2:
            return self.get_raw(name)
        part = self._files[name].get_slice(name)
        return torch.cat((part[:1], part[-1:]))

    def get_raw(self, name: str) -> torch.Tensor:
        """Read one tensor of any dtype."""
        tensor: torch.Tensor = self._files[name].get_tensor(name)
        return tensor

    def get(self, name: str) -> torch.Tensor:
        """Read one tensor of a model's weights."""
        tensor = self.get_raw(name)
        if tensor.dtype not in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
            raise ModelError(f"the weight {name} is stored as {tensor.dtype}; quantised weights cannot be run")
        return tensor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _width(stored: str, dtype: torch.dtype | None) -> int:
    """Return the bytes of one number of a format."""
    if stored in FLOATS and dtype is not None:
        return dtype.itemsize
    bits = re.search(r"\d+", stored)
    return max(1, int(bits[0]) // 8) if bits else 1


def _weight_files(folder: Path) -> list[Path]:
    """List the safetensors files that make up the model."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        if (whole := stored(folder / "model.safetensors")).is_file():
            return [whole]
        if any(next(folder.glob(pattern), None) for pattern in PICKLES):
            raise ModelError(
                f"{str(folder)!r} holds pickled weights only, and those can run code; convert them to safetensors"
            )
        raise ModelError(f"{str(folder)!r} has no model.safetensors; name a folder with safetensors weights")
    file_of = read_json(index).get("weight_map")
    if not isinstance(file_of, dict) or not all(isinstance(name, str) for name in file_of.values()):
        raise ModelError(f"{index.name} in {str(folder)!r} has no weight_map; fetch the model again")
    names = sorted(set(file_of.values()))
    for name in names:
        if name != Path(name).name or "\\" in name or not name.endswith(".safetensors"):
            raise ModelError(f"{index.name} names the file {name[:80]!r}, which is outside the model's folder")
        if not stored(folder / name).is_file():
            raise ModelError(f"the weight file {name[:80]} is missing; fetch the model again")
    return [stored(folder / name) for name in names]
