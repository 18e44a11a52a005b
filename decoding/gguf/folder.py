"""Turns a GGUF file into a model folder in the user's cache, once; every later start reads that folder.

A damaged folder is made again. The remains of a killed process are removed at the next start.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import torch

from ..errors import ModelError
from ..model.precision import spelt
from ..model.session import ProgressCallback
from ..types import JSON
from ..user_cache import user_cache
from .file import GgufFile
from .manifest import is_whole, write_manifest
from .names import make_config, rotate_halves, weight_name

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_FORMAT = 1  # of the folders: one of an older version is not read
_SHARD = 2**31  # bytes of weights that are collected in memory before a file is written
_KEPT_AS = (torch.float32, torch.bfloat16, torch.float16)
_UNFINISHED = "unfinished-"
_log = logging.getLogger(__name__)


def is_gguf(path: Path) -> bool:
    """Return True if a path is a file named as a GGUF file."""
    return path.suffix.lower() == ".gguf" and path.is_file()


def folder_of(path: Path, dtype: torch.dtype | None, progress: ProgressCallback) -> Path:
    """Return the model folder of a GGUF file, dequantised to `dtype` (None: to any); make it if there is none."""
    file = GgufFile(path)
    config, digest = make_config(file), file.digest()
    home = user_cache()
    if home is None:
        raise ModelError(f"{path.name} needs a place for its dequantised weights: set XDG_CACHE_HOME to a folder")
    short = re.sub(r"[^A-Za-z0-9.-]+", "-", path.stem)[:80]
    folders = {kind: home / "gguf" / f"{short}-v{_FORMAT}-{digest[:16]}-{spelt(kind)}" for kind in _KEPT_AS}
    kind = dtype if dtype in folders else torch.float32
    if dtype is None:
        kind = next((kind for kind, made in folders.items() if is_whole(made)), torch.bfloat16)
    folder = folders[kind]
    _remove_unfinished(folder.parent)
    if is_whole(folder):
        return folder
    if folder.exists():
        _log.warning("%s is damaged or from an older version: %s is converted again", folder, path.name)
    config |= {"dtype": spelt(kind), "gguf_sha256": digest}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _check_room(file, kind, folder.parent)
        # No other process removes the temporary folder while this one shares the lock.
        with (
            _locked(folder.parent, exclusive=False),
            TemporaryDirectory(dir=folder.parent, prefix=_UNFINISHED) as fresh,
        ):
            draft = Path(fresh, folder.name)
            draft.mkdir()
            _write_tokenizer(path, file, draft)
            _write_weights(file, config, kind, draft, progress)
            (draft / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
            write_manifest(draft)
            if not is_whole(folder):  # another process may have made the same folder meanwhile
                with suppress(OSError):
                    folder.rename(Path(fresh, "damaged"))  # a process that reads it keeps its open files
                with suppress(OSError):
                    draft.rename(folder)
    except OSError as error:
        reason = error.strerror or error
        advice = "name a folder that can be written with XDG_CACHE_HOME"
        raise ModelError(f"{path.name} cannot be converted into {str(folder.parent)!r} ({reason}): {advice}") from None
    return folder


def _remove_unfinished(home: Path) -> None:
    """Remove the folders of killed processes, unless a running one may be writing."""
    if not (folders := list(home.glob(f"{_UNFINISHED}*"))):
        return
    with suppress(OSError), _locked(home, exclusive=True) as alone:
        for folder in folders if alone else ():
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(home: Path, *, exclusive: bool) -> Iterator[bool]:
    """Lock the cache until the block or the process ends; yield whether it is locked.

    Processes that convert share the lock, so while one has it exclusively none converts.
    """
    with ExitStack() as stack:
        locked = False
        with suppress(ImportError, OSError):  # not on Unix, another process has it, or the file system has no locks
            import fcntl

            handle = os.open(home, os.O_RDONLY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH)
            locked = True
        yield locked


def _check_room(file: GgufFile, kind: torch.dtype, home: Path) -> None:
    size = sum(torch.Size(stored.shape).numel() for stored in file.tensors.values()) * kind.itemsize
    free = shutil.disk_usage(home).free
    if free < size:
        raise ModelError(
            f"{file.name} takes {size / 1e9:.1f} GB dequantised, and {str(home)!r} has {free / 1e9:.1f} GB left: "
            "free some, or set XDG_CACHE_HOME"
        )


def load_gguf_tokenizer(path: Path, file: GgufFile) -> PreTrainedTokenizerBase | None:
    """Read the tokenizer of a file, with its chat template; None if it has none."""
    if not file.has_tokenizer:
        return None
    from transformers import AutoTokenizer

    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            path.parent, gguf_file=path.name, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # damaged metadata raises errors of many kinds
        reason = " ".join(str(error).split())[:160]
        raise ModelError(f"the tokenizer of {path.name} cannot be used ({reason}): fetch it again") from None
    return tokenizer


def _write_tokenizer(path: Path, file: GgufFile, folder: Path) -> None:
    """Write the tokenizer, and the ids that end a text."""
    tokenizer = load_gguf_tokenizer(path, file)
    if tokenizer is None:
        return
    tokenizer.save_pretrained(folder)
    # The end of a text, of a turn and of a message.
    ids = [file.metadata.get(f"tokenizer.ggml.{end}_token_id") for end in ("eos", "eot", "eom")]
    ends = sorted({token for token in ids if type(token) is int})
    if ends:
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}), encoding="utf-8")


def _write_weights(
    file: GgufFile, config: dict[str, JSON], kind: torch.dtype, folder: Path, progress: ProgressCallback
) -> None:
    from safetensors.torch import save_file

    shard_of: dict[str, str] = {}
    for number, shard in enumerate(_shards(_weights(file, config, kind, progress)), start=1):
        name = f"model-{number:05}.safetensors"
        save_file(shard, folder / name, {"format": "pt"})
        shard_of |= dict.fromkeys(shard, name)
    index = {"metadata": {}, "weight_map": shard_of}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def _weights(
    file: GgufFile, config: dict[str, JSON], kind: torch.dtype, progress: ProgressCallback
) -> Iterator[tuple[str, torch.Tensor]]:
    for number, name in enumerate(file.tensors):
        progress("converting weights", number / len(file.tensors))
        theirs = weight_name(name, config["model_type"])
        if theirs is not None:
            try:
                yield theirs, rotate_halves(name, config)(file.get(name, kind)).contiguous()
            except (RuntimeError, TypeError):  # sizes that do not divide the tensor
                raise ModelError(f"{file.name} is damaged: {name[:80]} is not of the size that it names") from None


def _shards(weights: Iterator[tuple[str, torch.Tensor]]) -> Iterator[dict[str, torch.Tensor]]:
    shard: dict[str, torch.Tensor] = {}
    for name, tensor in weights:
        shard[name] = tensor
        if sum(kept.nbytes for kept in shard.values()) >= _SHARD:
            yield shard
            shard = {}
    if shard:
        yield shard
