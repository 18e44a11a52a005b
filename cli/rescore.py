"""`rescore`: checks that every token of a recorded run is the target's own choice."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from decoding.trace import read_trace

from .arguments import add_json_flag, add_model_flags
from .paint import Paint
from .progress import ProgressBar
from .recorded import engine_of
from .report import judgement

HELP = "check a recorded run against one plain pass of its model"
EXAMPLE = "python -m decoding rescore run.jsonl"
_VIOLATED = 1


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("trace", metavar="TRACE", help="trace written by run --trace")
    add_model_flags(parser, model=None)
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Rescore; exit code 1 if a token is not the target's choice."""
    trace = read_trace(arguments.trace)
    engine = engine_of(arguments, trace)
    with ProgressBar() as progress:
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
