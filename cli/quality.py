"""`quality`: measures how many questions the embedded model answers correctly, and the entropy of its answers."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from analysis.prompts.tasks import read_tasks, suite
from decoding.embedded import TARGET

from .arguments import add_json_flag, add_model_flags, clean, load_engine, whole
from .paint import Paint, one_line
from .progress import ProgressBar

HELP = "answer the embedded family's held-out questions greedily, and grade the answers"
EXAMPLE = "python -m decoding quality --limit 20"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser, TARGET)
    parser.add_argument("--tasks", metavar="FILE", help="other tasks in the family's language, with references")
    parser.add_argument("--limit", metavar="N", help="use only the first N tasks")
    parser.add_argument("--show-wrong", action="store_true", help="print every wrong answer")
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure and report."""
    from lab.pocket.quality import measure, total

    limit = None if arguments.limit is None else whole("--limit", arguments.limit, 1, 100_000)
    tasks = read_tasks(suite(TARGET) if arguments.tasks is None else clean(arguments.tasks), limit)
    engine = load_engine(arguments)
    with ProgressBar() as progress:
        quality = measure(engine, tasks, progress)
    rows = {**quality, "all": total(quality)}
    if arguments.json:
        report = {kind: {**asdict(row), "share": row.share, "entropy": row.entropy} for kind, row in rows.items()}
        print(json.dumps({"model": engine.model.card.name, "kinds": report}))
        return 0
    paint = Paint.for_stream(sys.stdout)
    print(paint.bold(f"{'kind':12} {'right':>9} {'bits/token':>11}"))
    for kind, row in rows.items():
        print(f"{kind:12} {f'{row.right} of {row.turns}':>9} {row.entropy:11.2f}")
    if arguments.show_wrong:
        for kind, row in quality.items():
            for prompt, answer, reference in row.wrong:
                print(f"\n{paint.bold(kind)}")
                for name, text in (("asked", prompt), ("answered", answer), ("reference", reference)):
                    print(f"  {name}: {one_line(text)}")
    return 0
