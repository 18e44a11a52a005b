"""`doctor`: examines the wiring of one drafter, and names the entry that is wrong."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter

from analysis.doctor import KINDS
from analysis.doctor.drafters import open_drafter
from analysis.doctor.examine import ExaminationReport, examine, refused
from analysis.doctor.names import names_in
from analysis.doctor.texts import write_texts
from analysis.prompts.tasks import sample
from analysis.reporting import finish
from decoding.errors import ModelError, ParamError
from decoding.model.files import find_folder
from decoding.parts.named import NAMED_PARTS, find_part

from .arguments import add_json_flag, add_model_flags, clean, load_engine, whole
from .bench import read_questions
from .paint import Paint
from .progress import ProgressBar

HELP = "find faults in a drafter: check its files, then try its flags and the order of its weights as given and changed"
EXAMPLE = "python -m decoding doctor --model pocket --eagle assets/pocket/eagle"
PROMPTS, TOKENS = 24, 48
_EXIT_CODES = {"healthy": 0, "faulty": 1, "poor": 3}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser)
    parser.add_argument(
        "--tasks", metavar="FILE", help='prompts, or "english" (pocket and smollm2 have their own); first turns only'
    )
    parser.add_argument("--prompts", default=str(PROMPTS), metavar="N", help=f"number of prompts (default: {PROMPTS})")
    parser.add_argument(
        "--max-new-tokens",
        default=str(TOKENS),
        metavar="N",
        help=f"tokens to write after each prompt (default: {TOKENS})",
    )
    parser.add_argument("--seed", default="0", metavar="N", help="seed for the choice of prompts")
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Examine and report; exit code 0 for a healthy drafter, 1 for a named fault, 3 for a poor one of unknown cause."""
    count = whole("--prompts", arguments.prompts, 1, 1000)
    tokens = whole("--max-new-tokens", arguments.max_new_tokens, 8, 4096)
    seed = whole("--seed", arguments.seed, 0, 2**31 - 1)
    kind, name = _drafter(arguments)
    tasks = sample(read_questions(arguments.tasks, arguments.model, None), count, seed)
    engine = load_engine(arguments)
    with ProgressBar() as progress:
        started, model = perf_counter(), engine.model.card.name
        if kind in NAMED_PARTS:  # a drafter that is not there has no fault
            folder: str | Path = find_part(kind, name, progress)
        else:
            folder = find_folder(name, progress, engine.model.dtype)
        try:
            examined = open_drafter(engine, kind, name, progress)
        except ModelError as error:
            report = refused(KINDS[kind], model, name, error, names_in(kind, folder))
        else:
            texts = finish(write_texts(engine, tasks, tokens, examined.layers()), progress)
            report = finish(examine(examined, texts, model, seed, started), progress)
    print(json.dumps(report.to_json()) if arguments.json else report_text(Paint.for_stream(sys.stdout), report))
    return _EXIT_CODES[report.condition]


def _drafter(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the one named drafter. The engine is loaded without it: a faulty one could not be loaded."""
    named = {kind: path for kind in KINDS if (path := getattr(arguments, kind)) is not None}
    if len(named) != 1:
        raise ParamError(f"name one drafter to examine: --{', --'.join(KINDS)}")
    [(kind, path)] = named.items()
    setattr(arguments, kind, None)
    return kind, clean(path)


def report_text(paint: Paint, report: ExaminationReport) -> str:
    """Format the report for a terminal."""
    lines = [paint.bold(f"{report.method} for {report.model}: {report.drafter}"), ""]
    for check in report.checks:
        verdict = "FAULT" if not check.fine else "NOTE" if check.note else "ok"
        lines.append(paint.fit(f"{verdict:6} {check.name:16} {check.sentence}"))
    for seen in report.evidence:
        lines.append(paint.fit(f"{'ok' if seen.fine else 'POOR':6} {seen.name:16} {seen.sentence}"))
    if report.given is not None and report.best is not None:
        lines += ["", paint.bold(f"{'changed':44} {'tokens/step':>11} {'gain':>7}  interval of the gain")]
        lines.append(f"{'nothing, as given':44} {report.given.tokens_per_step:11.2f}")
        for each in report.outcomes:
            low, high = each.interval
            row = (
                f"{each.probe.name:44} {each.other.tokens_per_step:11.2f} {each.gain:+7.2f}  {low:+.2f} to {high:+.2f}"
            )
            lines.append(paint.bold(row) if each.is_better else row)
        lines += ["", paint.bold("accepted, by the guess's position in the step")]
        curves = {"as given": report.given, "mended": report.best}
        for name, measured in curves.items() if report.faults else [("as given", report.given)]:
            lines.append(f"{name:10} " + "  ".join(f"{share:4.0%}" for share in measured.survival))
    return "\n".join([*lines, "", report.verdict])
