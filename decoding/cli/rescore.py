"""`rescore`: checks that every token of a recorded run is the target's own choice."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from ..embedded import FOLDERS, SMOLLM2
from ..errors import ModelError
from ..model.precision import find_precision
from ..trace import read_trace
from .arguments import add_json_flag, add_model_flags, load_engine
from .paint import Paint
from .progress import Progress
from .report import judgement

HELP = "check a recorded run against one plain pass of its model"
EXAMPLE = "python -m decoding rescore run.jsonl"
_VIOLATED = 1


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The command's flags."""
    parser.add_argument("trace", metavar="TRACE", help="a file that run --trace wrote")
    add_model_flags(parser, model=None)
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Rescore; exit code 1 if a token is not the target's choice."""
    trace = read_trace(arguments.trace)
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
    with Progress() as progress:
        progress("checking the text", 0.0)
        verdict = engine.rescore(trace, progress)
    if arguments.json:
        print(json.dumps({**asdict(verdict), "model": engine.model.card.name, "method": trace.header.method}))
    else:
        paint = Paint.for_stream(sys.stdout)
        print(judgement(paint, verdict, greedy=trace.header.sampling.get("temperature") == 0))
        for place in verdict.places:
            missed = (
                f"new token {place.position}: {trace.texts.get(place.token, place.token)!r}, the target's choice is"
            )
            print(f"  {missed} {engine.codec.piece(place.choice)!r}, ahead by {place.margin:.3g}")
    return _VIOLATED if verdict.violations else 0


def _dtype(named: str) -> str:
    """The dtype of the run: with another one, near ties could be decided differently and would look like violations."""
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
