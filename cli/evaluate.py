"""`evaluate`: runs methods over a whole prompt set, and writes every run, step and node into a run folder."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from analysis.tuned import tuned_preset
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.types import JSON

from .arguments import MODEL_FLAGS, add_json_flag, add_model_flags, clean, device_of, load_engine, names_in, real, whole
from .bench import add_question_flags, columns_of, method_params, number, read_questions
from .paint import Paint, one_line, print_report
from .progress import resumable

if TYPE_CHECKING:
    from analysis.evaluate.evaluation import Answers

HELP = "run methods on a set of prompts, and write every run, step and node as Parquet"
EXAMPLE = "python -m decoding evaluate --methods lookahead,draft_model --limit 7 --out runs/first"
_ERRORS = 3  # different ones that are printed
_HEADS = ("method", "setting", "runs", "failed", "tokens/step", "tokens/s", "speedup", "same text")
_LOCAL = "local"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser)
    parser.add_argument("--methods", required=True, metavar="A,B", help="methods to run besides autoregressive")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="run folder: a new one, or one to resume")
    add_question_flags(parser)
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME:METHOD.P=V,...",
        help="another setting of a method, with a name, such as short:draft_model.gamma=2; repeatable",
    )
    parser.add_argument("--no-baseline", action="store_true", help="leave out autoregressive decoding")
    parser.add_argument("--temperature", default="0", metavar="T", help="sampling temperature (default: 0, greedy)")
    parser.add_argument("--top-p", default="1", metavar="P")
    parser.add_argument("--seed", default="0", metavar="N")
    parser.add_argument(
        "--record", default="full", metavar="LEVEL", help="light, or full with probabilities (default: full)"
    )
    parser.add_argument("--traces", action="store_true", help="also write a trace file for every run")
    group = parser.add_argument_group("several processes or machines")
    group.add_argument(
        "--ray",
        nargs="?",
        const=_LOCAL,
        metavar="ADDRESS",
        help="use Ray Data: on this machine, or on the cluster at this address (needs the extra [scale])",
    )
    group.add_argument("--workers", metavar="N", help="worker processes, each with its own model (default: 2)")
    group.add_argument("--num-gpus", metavar="X", help="GPUs per worker, such as 1 or 0.5 (default: 0)")
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Evaluate and report; exit code 1 if every run failed."""
    limit = None if arguments.limit is None else whole("--limit", arguments.limit, 1, 100_000)
    budget = whole("--max-new-tokens", arguments.max_new_tokens, 1, 1_000_000)
    out, model = clean(arguments.out), clean(arguments.model)
    methods, settings = names_in(arguments.methods), _settings(arguments.setting)
    from analysis.evaluate.evaluation import evaluate
    from analysis.evaluate.plan import make_plan

    plan = make_plan(
        read_questions(arguments.tasks, model, limit),
        methods,
        params=method_params(arguments.param),
        tuned=_tuned(arguments, methods, model) if arguments.tuned else None,
        settings=settings,
        sampling={"temperature": arguments.temperature, "top_p": arguments.top_p, "seed": arguments.seed},
        max_new_tokens=budget,
        record=arguments.record,
        traces=arguments.traces,
        baseline=not arguments.no_baseline,
    )
    flags = {name: getattr(arguments, name) and clean(getattr(arguments, name)) for name in MODEL_FLAGS}
    answers = _answers(arguments, flags)
    with resumable("after the finished questions") as progress:
        report = evaluate(plan, out, answers, flags, progress)
    print_report(report, arguments.json, _table)
    return 1 if report["failed"] == report["runs"] else 0


def _answers(arguments: argparse.Namespace, flags: Mapping[str, Any]) -> Answers:
    """Choose the engine or server that runs the questions."""
    from analysis.evaluate.evaluation import in_this_process

    if arguments.ray is None:
        if arguments.workers is not None or arguments.num_gpus is not None:
            raise ParamError("--workers and --num-gpus are for --ray: give it too, or leave them out")
        return in_this_process(load_engine(arguments))
    from analysis.evaluate.scale import Cluster, on_ray

    cluster = Cluster(
        None if arguments.ray == _LOCAL else clean(arguments.ray),
        whole("--workers", arguments.workers or "2", 1, 10_000),
        real("--num-gpus", arguments.num_gpus or "0", 0.0, 64.0),
        whole("--threads", arguments.threads or "1", 1, 1024),
    )
    return on_ray(cluster, flags["model"], {name: value for name, value in flags.items() if name != "model"})


def _tuned(arguments: argparse.Namespace, methods: list[str], model: str) -> dict[str, Mapping[str, JSON]]:
    """Return the fastest settings of the methods that have presets for this model and device."""
    device = device_of(arguments).partition(":")[0]
    tuned = [name for name in methods if name in METHODS and (tuned_preset(name, model, device))]
    return {name: METHODS[name].Params.presets[tuned_preset(name, model, device) or ""] for name in tuned}


def _settings(texts: list[str]) -> dict[str, tuple[str, Mapping[str, JSON]]]:
    """Parse several NAME:METHOD.P=V,METHOD.Q=W; a value may hold commas itself."""
    settings: dict[str, tuple[str, Mapping[str, JSON]]] = {}
    for text in texts:
        name, colon, rest = clean(text).partition(":")
        parts = re.split(r",(?=\w+\.\w+=)", rest)
        given = {parts[0].strip(): {}} if "=" not in rest else method_params(parts, "--setting")
        if not colon or len(given) != 1 or not rest.strip():
            raise ParamError(f"--setting must look like NAME:METHOD.P=V,METHOD.Q=W, not {clean(text)[:60]!r}")
        if name in settings:
            raise ParamError(f"--setting names {name[:40]!r} twice")
        settings[name] = next(iter(given.items()))
    return settings


def _table(paint: Paint, report: Mapping[str, JSON]) -> list[str]:
    rows = [
        (
            one_line(row["method"]),
            one_line(row["setting"]),
            str(row["runs"]),
            str(row["failed"]),
            number(row["mean_acceptance_length"], ".2f"),
            number(row["tokens_per_second"], ",.1f"),
            number(row["speedup_vs_autoregressive"], ".2f") + "×",
            number(row["same_texts"], ".0%"),
        )
        for row in report["rows"]
    ]
    size = (
        f"{report['questions']} questions, {report['runs']} runs, {report['steps']:,} steps, {report['nodes']:,} nodes"
    )
    lines = [size, *columns_of(paint, [_HEADS, *rows])]
    lines += [f"{each['runs']} failed: {one_line(each['sentence'])}" for each in report["errors"][:_ERRORS]]
    lines.append(f"saved in {one_line(report['folder'])}")
    return lines
