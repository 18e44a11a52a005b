"""`bench`: measures methods side by side on the same prompts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from analysis.bench.methods import bench
from analysis.bench.peers import PEERS, find_peers
from analysis.prompts.tasks import ENGLISH, Task, find_tasks, read_tasks, spread, suite
from analysis.prompts.toy import TASKS
from analysis.tuned import tuned_params
from analysis.tuning import read_tuned
from decoding import embedded, smollm2
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.toy import NOTE
from decoding.trace.metrics import may_be_cached
from decoding.types import JSON

from .arguments import add_json_flag, add_model_flags, check_place, clean, load_engine, names_in, pairs, whole
from .paint import Paint, one_line, print_report
from .progress import ProgressBar

HELP = "measure methods and autoregressive decoding on the same prompts, greedily and in turn"
EXAMPLE = "python -m decoding bench --methods lookahead,prompt_lookup --limit 20 --peers transformers"
DEFAULT_OUT = "bench.json"
_HEADS = ("method", "tokens/step", "tokens/s", "speedup", "step cost", "prefill ms", "same text")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser)
    parser.add_argument("--methods", metavar="A,B", help="methods (default: all that can run)")
    add_question_flags(parser)
    parser.add_argument("--ignore-end", action="store_true", help="continue after an end-of-text token")
    parser.add_argument(
        "--peers", default="", metavar="A,B", help=f"other implementations to measure: {', '.join(PEERS)}"
    )
    parser.add_argument(
        "--out", default=DEFAULT_OUT, metavar="FILE", help=f"file for the JSON (default: {DEFAULT_OUT})"
    )
    add_json_flag(parser)


def add_question_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of commands that run methods on questions."""
    parser.add_argument(
        "--tasks",
        metavar="FILE",
        help='"english", "long", Spec-Bench questions, JSON lines with a prompt or turns, or a folder of .txt files',
    )
    parser.add_argument("--limit", metavar="N", help="use only N tasks, spread over their kinds")
    parser.add_argument("--max-new-tokens", default="128", metavar="N")
    parser.add_argument(
        "--param", action="append", default=[], metavar="METHOD.NAME=VALUE", help="such as lookahead.W=8; repeatable"
    )
    parser.add_argument(
        "--tuned", action="store_true", help="use the settings that are fastest on a CPU, unless --param sets others"
    )


def main(arguments: argparse.Namespace) -> int:
    """Measure and report."""
    limit = None if arguments.limit is None else whole("--limit", arguments.limit, 1, 100_000)
    budget = whole("--max-new-tokens", arguments.max_new_tokens, 1, 1_000_000)
    params = method_params(arguments.param)
    check_place("--out", arguments.out)
    tasks = read_questions(arguments.tasks, arguments.model, limit)
    engine = load_engine(arguments)
    runnable = [name for name in METHODS if engine.lacks(name) is None]
    methods = runnable if arguments.methods is None else names_in(arguments.methods)
    if arguments.tuned:
        params = tuned_params(engine, methods) | read_tuned(engine, methods) | params
    with ProgressBar() as progress:
        rivals = names_in(arguments.peers)
        if rivals:
            progress("loading the peers", 0.0)
        measured = bench(
            engine,
            tasks,
            methods,
            params=params,
            peers=find_peers(rivals, engine, arguments.model, arguments.draft),
            max_new_tokens=budget,
            ignore_end=arguments.ignore_end,
            progress=progress,
        )
    document = {
        "tasks": clean(arguments.tasks or "built-in"),
        "tuned": arguments.tuned,
        "max_new_tokens": budget,
        **measured,
    }
    Path(arguments.out).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print_report(document, arguments.json, table)
    if not arguments.json:
        print(f"saved in {one_line(clean(arguments.out))}")
    return 0


def read_questions(file: str | None, model: str, limit: int | None) -> tuple[Task, ...]:
    """Read the tasks of the file or suite of that name, by default those of the model."""
    if file is not None:
        return spread(read_tasks(find_tasks(clean(file))), limit)
    if model == "toy":
        return spread(TASKS, limit)
    if model in embedded.FOLDERS:
        return spread(read_tasks(suite(embedded.TARGET)), limit)
    if model == smollm2.NAME:
        return spread(read_tasks(suite(ENGLISH)), limit)
    raise ParamError("this model has no tasks of its own: use --tasks english, or name a file of prompts with --tasks")


def table(paint: Paint, document: dict[str, JSON]) -> list[str]:
    """Format the report for a terminal."""
    threads, tasks = _count(document["threads"], "thread"), _count(document["rows"][0]["questions"], "task")
    head = f"{document['model']}, {document['device']}, {document['dtype']}, {threads}"
    settings = "tuned settings" if document["tuned"] else "the papers' settings"
    lines = [one_line(f"{head}; {tasks} ({document['tasks']}); {settings}")]
    if document["model"] == "toy":
        lines.append(paint.dim(f"toy: {NOTE}"))
    cells = [_HEADS, *(_cells(row) for row in document["rows"]), *(_cells(peer) for peer in document["peers"])]
    lines += columns_of(paint, cells)
    lines.append(
        paint.dim("tokens/step counts the target's own token; prefill is measured separately; step cost is in steps")
    )
    lines.append(paint.dim("of autoregressive decoding: tokens/step divided by step cost is about the speedup"))
    if document["bandwidth"] and document["pass_bytes"]:
        lines.append(paint.dim(one_line(_memory(document))))
    if len(kinds := list(document["rows"][0]["by_category"])) > 1:
        lines += columns_of(
            paint,
            [
                ["tokens/step", *(one_line(clean(kind))[:16] for kind in kinds), "their mean"],
                *map(_kinds, document["rows"]),
            ],
        )
    entries = [*document["rows"], *document["peers"]]
    if disturbed := sum(entry["disturbed_runs"] for entry in entries):
        runs = len(entries) * document["rows"][0]["turns"]
        lines.append(one_line(f"other processes held the cores in {disturbed} of {runs} runs: measure those again"))
    for turn in document["skipped"]:
        lines.append(one_line(f"left out: question {turn['question']} from turn {turn['turn']} on, too long a prompt"))
    return lines


def _memory(document: dict[str, JSON]) -> str:
    """Return a line on the share of the memory's bandwidth that autoregressive decoding uses, which bounds it."""
    fastest, each = max(document["bandwidth"]), document["pass_bytes"]
    speed = f"memory is read at {fastest / 1e9:.0f} GB/s; a token reads {each / 1e9:.2f} GB of weights"
    if may_be_cached(each, document["cache"]):
        return f"{speed}, which the processor's cache may hold"
    share = each * document["rows"][0]["tokens_per_second"] / fastest
    return f"{speed}: autoregressive decoding uses {share:.0%} of it"


def columns_of(paint: Paint, cells: Sequence[Sequence[str]]) -> list[str]:
    """Format rows of cells under a bold head."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in cells
    ]
    return [paint.bold(rows[0]), *rows[1:]]


def _kinds(row: dict[str, JSON]) -> list[str]:
    kinds = list(row["by_category"].values())
    return [row["method"], *(number(value, ".2f") for value in [*kinds, sum(kinds) / len(kinds)])]


def _cells(row: dict[str, JSON]) -> tuple[str, ...]:
    return (
        row["method"] if "method" in row else f"{row['name']} ({row['precision']})",
        number(row.get("mean_acceptance_length"), ".2f"),
        number(row["tokens_per_second"], ",.1f"),
        number(row["speedup_vs_autoregressive"], ".2f") + "×",
        number(row.get("step_cost"), ".2f"),
        number(1000 * row["prefill_seconds"], ".1f"),
        "yes" if row["identical_to_autoregressive"] else f"{row['same_texts']:.0%}",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def number(value: float | None, form: str) -> str:
    """Format a number for a table; a dash for None."""
    return "-" if value is None else format(value, form)


def method_params(texts: Sequence[str], flag: str = "--param") -> dict[str, dict[str, JSON]]:
    """Parse several METHOD.NAME=VALUE into settings by method."""
    params: dict[str, dict[str, JSON]] = {}
    for name, value in pairs(texts, flag).items():
        method, dot, setting = name.partition(".")
        if not dot:
            raise ParamError(f"{flag} must look like METHOD.NAME=VALUE, not {name[:40]!r}")
        params.setdefault(method, {})[setting] = value
    return params
