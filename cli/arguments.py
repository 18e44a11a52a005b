"""Defines and parses the flags that several commands share; an invalid value raises ParamError."""

from __future__ import annotations

import argparse
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch

from decoding.default_model import BEST, named_model
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.loader import load
from decoding.parts import NAMED_PARTS

from .progress import ProgressBar

_MODELS = '"smollm2", "pocket", "toy", a model folder, a GGUF file or a hub id such as org/model@revision'
_BEST = "smollm2 where it is on this machine, else pocket"
MODEL_FLAGS = ("model", "draft", *NAMED_PARTS, "device", "draft_device", "dtype")
LARGEST_PROMPT = 2**20  # bytes: several times the longest context


class Parser(argparse.ArgumentParser):
    """A parser that raises ParamError instead of printing its usage and leaving."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        raise ParamError(f"{' '.join(message.split())} (see {self.prog} --help)")


def add_model_flags(parser: argparse.ArgumentParser, model: str | None = BEST) -> None:
    """Add the flags that choose a model and its device; "best" becomes the name of a model when it is parsed."""
    group = parser.add_argument_group("model")
    shown = "the model of the trace" if model is None else _BEST if model == BEST else model
    group.add_argument("--model", default=model, type=_model, metavar="NAME", help=f"{_MODELS} (default: {shown})")
    group.add_argument(
        "--draft", metavar="NAME", help="a smaller model with the same tokenizer (smollm2, pocket and the toy have one)"
    )
    for name, part in NAMED_PARTS.items():
        metavar = "FILE_OR_ID" if part.is_file else "FOLDER_OR_ID"
        group.add_argument(f"--{name}", metavar=metavar, help=f"{part.title}: {part.source}")
    group.add_argument(
        "--device",
        help="cpu, cuda, or several devices for the layers, such as cuda:0,cuda:1 (default: cuda if available)",
    )
    group.add_argument(
        "--draft-device", metavar="DEVICE", help="where the drafter runs (default: the model's last device)"
    )
    group.add_argument(
        "--dtype", help="float32, bfloat16, float16, or int8 for the weights (default: depends on model and device)"
    )
    group.add_argument("--threads", metavar="N", help="CPU threads")


def _model(name: str) -> str:
    """Check that a model is named at all: commands take an empty name for none, and then the default."""
    if not name.strip():
        raise argparse.ArgumentTypeError("name a model, or leave the flag out for the default")
    return named_model(name)


def add_json_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag for output that scripts read."""
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def load_engine(arguments: argparse.Namespace, model: str | None = None, *, download: bool = True) -> Engine:
    """Load the engine that the flags describe."""
    name = clean(model or arguments.model)
    threads = arguments.threads or ("1" if name == "toy" else None)  # the toy's tensors are too small to be shared out
    set_threads(threads)
    if name != "toy":
        import transformers

        transformers.logging.set_verbosity_error()  # its advice is not about our way of loading

    named = {name: getattr(arguments, name) for name in ("draft", *NAMED_PARTS)}
    parts: dict[str, Any] = {name: clean(path) for name, path in named.items() if path is not None}
    with ProgressBar() as progress:
        return load(
            name,
            **parts,
            device=arguments.device,
            draft_device=arguments.draft_device,
            dtype=arguments.dtype,
            progress=progress,
            download=download,
        )


def device_of(arguments: argparse.Namespace) -> str:
    """Return the device that the flags name, or the default one."""
    return clean(arguments.device or ("cuda" if torch.cuda.is_available() else "cpu"))


def set_threads(threads: str | None) -> None:
    """Set the number of CPU threads, if a flag names it."""
    if threads is not None:
        torch.set_num_threads(whole("--threads", threads, 1, 1024))


def names_in(text: str) -> list[str]:
    """Parse comma-separated names."""
    return [name.strip() for name in clean(text).split(",") if name.strip()]


def whole(flag: str, text: str, low: int, high: int) -> int:
    """Parse a flag's whole number."""
    try:
        number = int(text)
    except ValueError:
        raise ParamError(f"{flag} must be a whole number, not {clean(text)[:40]!r}") from None
    if not low <= number <= high:
        raise ParamError(f"{flag} must be from {low} to {high}, not {clean(text)[:40]}")
    return number


def real(flag: str, text: str, low: float, high: float) -> float:
    """Parse a flag's number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        raise ParamError(f"{flag} must be a number from {low:g} to {high:g}, not {clean(text)[:40]!r}")
    return number


def choice(flag: str, text: str, choices: Collection[str]) -> str:
    """Check a flag that names one of several."""
    if text not in choices:
        raise ParamError(f"{flag} must be one of {', '.join(choices)}, not {clean(text)[:40]!r}")
    return text


def pairs(texts: Sequence[str], flag: str = "--param") -> dict[str, str]:
    """Parse several NAME=VALUE."""
    values: dict[str, str] = {}
    for text in texts:
        name, sign, value = clean(text).partition("=")
        if not sign or not name:
            raise ParamError(f"{flag} must look like NAME=VALUE, not {text[:40]!r}")
        if name in values:
            raise ParamError(f"{flag} names {name[:40]} twice")
        values[name] = value
    return values


def clean(text: str) -> str:
    """Return a text valid in UTF-8: invalid bytes arrive from the shell as lone surrogates."""
    return text.encode(errors="replace").decode()


def check_place(flag: str, path: str, *, replace: bool = True) -> None:
    """Raise ParamError if no file can be written, or replaced, there; call it before the work, not after it."""
    if Path(path).is_dir():
        raise ParamError(f"{flag} must name a file, and {clean(path)[:200]!r} is a folder: add a name to it")
    if not Path(path).parent.is_dir():
        raise ParamError(f"{flag} must name a file in a folder that exists, not {clean(path)[:200]!r}")
    if not replace and Path(path).exists():
        raise ParamError(f"{clean(path)[:200]!r} exists: name another file, or replace it with --force")


def read_text(path: str, what: str) -> str:
    """Read a text file of limited size."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST_PROMPT + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = error.strerror if isinstance(error, OSError) else error
        raise ParamError(f"cannot read the {what} {clean(path)[:200]!r}: {reason}") from None
    if len(data) > LARGEST_PROMPT:
        raise ParamError(f"the {what} {clean(path)[:200]!r} is larger than 1 MB: shorten it")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ParamError(f"the {what} {clean(path)[:200]!r} is not a text: save it as UTF-8")
    if not text.strip():
        raise ParamError(f"the {what} {clean(path)[:200]!r} is empty: write something into it")
    return text


def read_ids(text: str) -> list[int]:
    """Parse comma-separated token ids."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ParamError(f"--prompt-ids must be whole numbers with commas between, not {clean(text)[:40]!r}") from None
