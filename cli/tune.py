"""`tune`: finds the fastest settings of a method on this machine."""

from __future__ import annotations

import argparse

from analysis.bench.methods import as_prompt
from analysis.candidates import CANDIDATES
from analysis.tuning import tune
from decoding.methods import METHODS
from decoding.types import JSON

from .arguments import add_json_flag, add_model_flags, choice, clean, load_engine, whole
from .bench import columns_of, number, read_questions
from .paint import Paint, one_line, print_report
from .progress import ProgressBar

HELP = "find a method's fastest settings on this machine, or report that autoregressive decoding is faster"
EXAMPLE = "python -m decoding tune --model pocket --method lookahead --limit 4"
_SHOWN = 12  # settings in the table


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser)
    parser.add_argument("--method", required=True, metavar="NAME", help="the method whose settings are tried")
    parser.add_argument(
        "--tasks",
        metavar="FILE",
        help='"english", "long", Spec-Bench questions, JSON lines with a prompt or turns, or a folder of .txt files',
    )
    parser.add_argument("--limit", metavar="N", help="use only N tasks, spread over their kinds")
    parser.add_argument("--max-new-tokens", default="64", metavar="N", help="tokens of an answer (default: 64)")
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure and report."""
    method = choice("--method", clean(arguments.method), CANDIDATES)
    limit = None if arguments.limit is None else whole("--limit", arguments.limit, 1, 100_000)
    budget = whole("--max-new-tokens", arguments.max_new_tokens, 2, 1_000_000)
    tasks = read_questions(arguments.tasks, arguments.model, limit)
    engine = load_engine(arguments)
    prompts = [as_prompt(engine, [("user", task.turns[0])]) for task in tasks]
    with ProgressBar() as progress:
        report = tune(engine, method, prompts, max_new_tokens=budget, progress=progress)
    print_report(report, arguments.json, _table)
    return 0


def _table(paint: Paint, report: dict[str, JSON]) -> list[str]:
    """Format the report for a terminal."""
    head = f"{report['model']}, {report['device']}, {report['dtype']}, {report['threads']} threads"
    cells = [["settings", "answers", "tokens/s"]]
    for row in report["rows"][:_SHOWN]:
        cells.append(
            [_spelt(report["method"], row["params"]), str(row["answers"]), number(row["tokens_per_second"], ".1f")]
        )
    lines = [one_line(clean(head)), *columns_of(paint, cells)]
    if others := report["rows"][_SHOWN:]:
        lines.append(paint.dim(f"slower settings, which --json lists: {len(others)}"))
    lines.append(paint.dim("settings with the same number of answers decoded the same text"))
    gain = f"{report['speedup_vs_autoregressive']:.2f}× autoregressive decoding, "
    gain += f"faster on {report['faster_on']} of {report['compared']} prompts"
    gain += ", but too close to call" if report["too_close"] else ""
    best = f"{report['method']} {_spelt(report['method'], report['params'])}: {gain}"
    lines.append(best if report["speculate"] else f"do not speculate with {report['method']} here: at best {gain}")
    share = report["tokens"] / report["grid_tokens"]
    lines.append(paint.dim(f"decoded {share:.0%} of what all settings on all prompts would have taken"))
    if report["disturbed_runs"]:
        lines.append(
            paint.dim(f"other processes disturbed {report['disturbed_runs']} runs: run it again on a quiet machine")
        )
    if report["saved"]:
        lines.append(one_line(clean(f"saved in {report['saved']}")))
    return lines


def _spelt(method: str, params: dict[str, JSON]) -> str:
    return ", ".join(METHODS[method].Params.parse(params).in_words()) or "the defaults"
