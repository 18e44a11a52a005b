"""`rescore`: checks that every token of a recorded run is the target's own choice, and the rest of its record."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from decoding.trace import read_trace

from .arguments import add_json_flag, add_model_flags
from .paint import Paint, one_line
from .progress import ProgressBar
from .recorded import engine_of
from .report import judgement

HELP = "check a recorded run against one plain pass of its model"
EXAMPLE = "python -m decoding rescore run.jsonl"
_VIOLATED = 1
_LISTED = 20  # contradictions that are printed


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("trace", metavar="TRACE", help="trace written by run --trace")
    parser.add_argument("--again", action="store_true", help="also run it again and compare its steps, drafts included")
    add_model_flags(parser, model=None)
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Rescore; exit code 1 if a token is not the target's choice, or if the record contradicts something."""
    from analysis.recheck.record import recheck

    trace = read_trace(arguments.trace)
    engine = engine_of(arguments, trace)
    with ProgressBar() as progress:
        progress("checking the text", 0.0)
        checked = recheck(engine, trace, progress, again=arguments.again)
    verdict, problems = checked.tokens, checked.contradictions
    if arguments.json:
        report = {**asdict(verdict), "model": engine.model.card.name, "method": trace.header.method}
        report |= {"contradictions": [asdict(each) for each in problems], "unchecked": checked.unchecked}
        print(json.dumps(report))
    else:
        paint = Paint.for_stream(sys.stdout)
        print(judgement(paint, verdict, greedy=trace.header.sampling.get("temperature") == 0))
        for place in verdict.places:
            missed = (
                f"new token {place.position}: {trace.texts.get(place.token, place.token)!r}, the target's choice is"
            )
            print(f"  {missed} {engine.codec.piece(place.choice)!r}, ahead by {place.margin:.3g}")
        for each in problems[:_LISTED]:
            print(paint.fit(f"  {one_line(each.sentence)}"))
        if len(problems) > _LISTED:
            print(f"  and {len(problems) - _LISTED} more contradictions")
        if arguments.again and not problems and not any(each.startswith("the drafts") for each in checked.unchecked):
            whole = "" if trace.summary is not None else " as far as the record goes, which lacks its end"
            print(f"run again, it takes the same steps{whole}")
        print(paint.fit(paint.dim(f"not checked: {one_line('; '.join(checked.unchecked))}")))
    return _VIOLATED if verdict.violations or problems else 0
