"""`tree-search`: finds the best size of a Medusa tree, by the heads' accuracies and by measurement."""

from __future__ import annotations

import argparse

from analysis.bench.methods import bench
from decoding.errors import ParamError
from decoding.parts.heads import Guesser
from decoding.parts.medusa_tree import expected_length, grow
from decoding.types import JSON

from .arguments import add_json_flag, add_model_flags, load_engine, names_in, whole
from .bench import read_questions
from .paint import Paint, print_report
from .progress import ProgressBar

HELP = "grow Medusa trees from the heads' accuracies, and compare expected with measured tokens per step"
EXAMPLE = "python -m decoding tree-search --measure 1,4,16,63 --limit 8"
_SIZES = (1, 2, 4, 8, 16, 32, 63, 128, 256)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser)
    parser.add_argument("--measure", default="", metavar="N,N", help="sizes of the trees to measure")
    parser.add_argument(
        "--tasks",
        metavar="FILE",
        help='questions to measure on, or "english" (pocket, smollm2 and the toy have their own)',
    )
    parser.add_argument("--limit", metavar="N", help="use only the first N tasks")
    parser.add_argument("--max-new-tokens", default="128", metavar="N")
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Search, measure and report."""
    sizes = [whole("--measure", size, 1, _SIZES[-1]) for size in names_in(arguments.measure)]
    budget = whole("--max-new-tokens", arguments.max_new_tokens, 1, 1_000_000)
    limit = None if arguments.limit is None else whole("--limit", arguments.limit, 1, 100_000)
    engine = load_engine(arguments)
    if missing := engine.lacks("medusa"):
        raise ParamError(f"tree-search needs {missing}")
    tasks = read_questions(arguments.tasks, arguments.model, limit) if sizes else ()
    rows: list[dict[str, JSON]] = []
    with ProgressBar() as progress:
        heads: Guesser = engine.part("medusa")
        if heads.accuracies is None:
            raise ParamError("these heads come without accuracies: train them with `train medusa`, which measures them")
        for size in sorted({*_SIZES, *sizes}):
            tree = grow(heads.accuracies, size)
            row = {"guesses": len(tree.parents) - 1, "depth": max(tree.depths), "paths": tree.text}
            rows.append(
                row | {"expected": expected_length(tree, heads.accuracies), "measured": None, "step_cost": None}
            )
            if size in sizes:
                params = {"medusa": {"size": size}}
                report = bench(engine, tasks, ["medusa"], params=params, max_new_tokens=budget, progress=progress)
                measured = report["rows"][1]
                rows[-1] |= {"measured": measured["mean_acceptance_length"], "step_cost": measured["step_cost"]}
    report = {"model": engine.model.card.name, "accuracies": heads.accuracies, "trees": rows}
    print_report(report, arguments.json, _table)
    return 0


def _table(paint: Paint, report: dict[str, JSON]) -> list[str]:
    lines = [paint.bold(f"{'guesses':>7} {'depth':>5} {'expected':>9} {'measured':>9} {'step cost':>10}")]
    for row in report["trees"]:
        measured, cost = (f"{row[name]:.2f}" if row[name] else "-" for name in ("measured", "step_cost"))
        lines.append(f"{row['guesses']:7} {row['depth']:5} {row['expected']:9.2f} {measured:>9} {cost:>10}")
    lines.append(paint.dim("tokens per step, the target's own included; expected as if heads erred independently"))
    lines.append(paint.dim('--json has every tree as text, for --param tree=given --param paths="..."'))
    return lines
