"""Loads the model that a trace names, for commands that continue a recorded run."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from decoding.embedded import FOLDERS, SMOLLM2
from decoding.engine import Engine
from decoding.errors import ModelError
from decoding.model.precision import find_precision
from decoding.types import Trace

from .arguments import load_engine


def engine_of(arguments: argparse.Namespace, trace: Trace) -> Engine:
    """Load the engine of a trace, with the dtype of its run; `--model` and `--dtype` override them."""
    named = trace.header.model.name
    if not arguments.model and named not in ("toy", SMOLLM2, *FOLDERS) and not _is_folder(named):
        # A trace may come from anybody: what it names must not make this machine fetch anything.
        raise ModelError(
            f"the trace names the model {named[:200]!r}, which is no folder here: name it with --model if you trust it"
        )
    name = arguments.model or named
    if name != "toy":
        arguments.dtype = arguments.dtype or _dtype(trace.header.dtype)
    try:
        engine = load_engine(arguments, name, download=arguments.model is not None)
    except ModelError as error:
        if arguments.model:
            raise
        raise ModelError(f"the model that the trace names cannot be loaded ({error}): name one with --model") from None
    if not arguments.model and engine.model.card.hash != trace.header.model.hash:
        raise ModelError(f"{named!r} has changed since this trace was written: name its weights with --model")
    return engine


def _dtype(named: str) -> str:
    """Return the dtype of the run: with another one, near-ties could fall differently and look like violations."""
    try:
        find_precision(named, torch.device("cpu"))
    except ModelError:
        raise ModelError(
            f"the trace names the dtype {named[:40]!r}, which cannot be used: name one with --dtype"
        ) from None
    return named


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):  # a name that no file can have
        return False
