"""`cost`: measures the costs of decoding on this machine, by rows, contexts and methods."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from analysis.bench.methods import as_prompt
from analysis.cost.sweep import CONTEXTS, ROUNDS, sweep
from analysis.measured_here import machine_facts
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.types import JSON

from .arguments import add_json_flag, add_model_flags, check_place, clean, load_engine, whole
from .bench import columns_of, number, read_questions
from .paint import Paint, one_line, print_report
from .progress import resumable

HELP = "measure what passes cost on this machine by their rows, and what each method's drafting costs"
EXAMPLE = "python -m decoding cost --model pocket"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser)
    parser.add_argument(
        "--contexts",
        default=",".join(map(str, CONTEXTS)),
        metavar="A,B",
        help=f"lengths of the text before a pass; longer ones than the model reads are left out "
        f"(default: {','.join(map(str, CONTEXTS))})",
    )
    parser.add_argument(
        "--tasks", metavar="FILE", help="prompts that methods are measured on (default: the model's own, or english)"
    )
    parser.add_argument(
        "--rounds",
        default=str(ROUNDS),
        metavar="N",
        help=f"how often to measure each pass; noisy ones are measured again (default: {ROUNDS})",
    )
    parser.add_argument("--again", action="store_true", help="measure again what was measured here before")
    parser.add_argument("--out", metavar="FILE", help="add the measurement to a file of this machine's costs")
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure and report."""
    rounds = whole("--rounds", arguments.rounds, 1, 100)
    contexts = [whole("--contexts", part, 2, 1_000_000) for part in arguments.contexts.split(",")]
    if arguments.out is not None:
        check_place("--out", arguments.out)
    engine, name = load_engine(arguments), clean(arguments.model)
    if arguments.out is not None:
        _read_costs(Path(arguments.out), engine)  # or it would be refused after the measurement
    try:
        tasks = read_questions(arguments.tasks, arguments.model, 4)
    except ParamError:
        if arguments.tasks is not None:
            raise
        tasks = read_questions("english", arguments.model, 4)
    prompts = [as_prompt(engine, [("user", task.turns[0])]) for task in tasks[:2]]
    with resumable("where it stopped") as progress:
        report = sweep(
            engine,
            Path(name).name,
            prompts,
            contexts=contexts,
            rounds=rounds,
            anew=arguments.again,
            progress=progress,
        )
    if arguments.out is not None:
        _add_to(Path(arguments.out), engine, report)
    print_report(report, arguments.json, _table)
    return 0


def _read_costs(path: Path, engine: Engine) -> dict[str, Any]:
    """Return this machine's costs from a file; nothing if there is no file yet."""
    if not path.exists():
        return {}
    try:
        costs = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ParamError(f"{clean(str(path))} holds no costs: name another file") from error
    if not isinstance(costs, dict) or any(costs.get(fact) != value for fact, value in machine_facts(engine).items()):
        raise ParamError(f"{clean(str(path))} was measured on another device, dtype or version: name another file")
    return costs


def _add_to(path: Path, engine: Engine, report: dict[str, JSON]) -> None:
    """Add the measurement to a file, which may hold other models on the same machine."""
    costs = _read_costs(path, engine)
    document: dict[str, JSON] = {**machine_facts(engine), "date": report["date"]}
    for part in ("shapes", "trees", "prefill", "methods"):
        others = [entry for entry in costs.get(part, []) if entry["shape"] != report["model"]]
        document[part] = [*others, *report[part]]
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _table(paint: Paint, report: dict[str, JSON]) -> list[str]:
    """Format the report for a terminal."""
    shapes = report["shapes"]
    head = f"{report['model']}, {report['device']}, {report['dtype']}, {report['threads']} threads, {report['date']}"
    lines = [one_line(clean(head))]
    if shapes:
        lines.append("What a pass costs, in passes over one row after the same text:")
        heads = ["rows", *(f"after {shape['context']:,}" for shape in shapes)]
        marked = [{*shape["noisy"]} for shape in shapes]
        cells = [heads, ["1 (ms)", *(number(shape["milliseconds"][0], ".2f") for shape in shapes)]]
        for at, rows in enumerate(shapes[0]["rows"][1:], start=1):
            costs = [shape["milliseconds"][at] / shape["milliseconds"][0] for shape in shapes]
            noisy = ("?" if rows in each else "" for each in marked)
            cells.append([str(rows), *(f"{cost:.2f}{mark}" for cost, mark in zip(costs, noisy, strict=True))])
        lines += columns_of(paint, cells)
    if report["methods"]:
        lines.append("What a step of each method costs, after the first, in milliseconds:")
        cells = [["method", "step", "drafting", "pass", "rows", "tokens"]]
        for row in report["methods"]:
            times = (row[f"{part}_milliseconds"] for part in ("step", "draft", "forward"))
            cells.append([row["method"] + ("?" if row["disturbed"] else ""), *(number(each, ".2f") for each in times)])
            cells[-1] += [number(row["rows_per_step"], ".1f"), number(row["tokens_per_step"], ".2f")]
        lines += columns_of(paint, cells)
    if "?" in "".join(lines[1:]):
        lines.append(paint.dim("?: disturbed by other processes, or times differ by more than 15%; --again repeats it"))
    if report["saved"]:
        lines.append(one_line(clean(f"saved in {report['saved']}")))
    return lines
