"""`metrics`: reports metrics of the drafters in a run folder, and how they differ from another folder's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from decoding.errors import ParamError
from decoding.types import JSON

from .arguments import add_json_flag, clean, names_in
from .paint import Paint, one_line, print_report

if TYPE_CHECKING:
    from analysis.metrics import MetricResult, Selection

HELP = "report on a run folder: acceptance, drafter, guesses, time, and differences from another folder"
EXAMPLE = "python -m decoding metrics runs --against runs-before"
_MOST_METHODS = 200  # with settings, of one report
_MOST_ROWS = 20  # printed of a metric
_WIDEST = 64  # characters of a cell; the last one of a row may be longer
_LONGEST = 4096
_BASELINE = "autoregressive"

Named = tuple[str, str]  # method and setting


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="run folder written by `evaluate` or `import`")
    parser.add_argument("--list", action="store_true", help="list every metric with its formula and how to read it")
    parser.add_argument("--against", metavar="FOLDER", help="compare with another run folder on the same questions")
    parser.add_argument("--only", metavar="KEYS", help="show only these metrics (see --list), with their rows")
    parser.add_argument("--method", metavar="NAME", help="use only runs of this method")
    parser.add_argument("--setting", metavar="NAME", help="use only runs of this setting")
    parser.add_argument("--category", metavar="NAME", help="use only questions of this category")
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure and report."""
    from analysis.metrics import METRICS

    if arguments.list:
        about = [
            {name: getattr(m, name) for name in ("key", "title", "group", "formula", "look_for")}
            for m in METRICS.values()
        ]
        print_report({"metrics": about}, arguments.json, _listing)
        return 0
    if arguments.folder is None:
        raise ParamError("name a run folder, or add --list to see what is measured")
    keys = _keys(arguments.only, list(METRICS))
    chosen = _chosen(arguments, arguments.folder)
    pairs = _pairs(chosen, _chosen(arguments, arguments.against)) if arguments.against is not None else {}
    report = _report(chosen, pairs, keys)
    print_report(report, arguments.json, partial(_text, rows=arguments.only is not None))
    return 0


def _keys(text: str | None, available: list[str]) -> list[str]:
    keys = available if text is None else names_in(text)
    unknown = [key for key in keys if key not in available]
    if unknown or not keys:
        raise ParamError(f"--only must name metrics of {', '.join(available)}, not {', '.join(unknown)[:80]!r}")
    return [key for key in available if key in keys]


def _chosen(arguments: argparse.Namespace, path: str) -> dict[Named, Selection]:
    """Return the runs that the flags select in a folder, by method and setting."""
    from analysis.metrics import Selection
    from analysis.store.folder import read_folder

    recorded = Selection.from_folder(read_folder(clean(path)))
    method, setting, category = (
        None if text is None else clean(text) for text in (arguments.method, arguments.setting, arguments.category)
    )
    part = recorded.where(method=method, setting=setting, category=category)
    if not len(part.runs):
        raise ParamError("the folder has no run that these flags choose: leave some out")
    if len(part.methods) > _MOST_METHODS:
        raise ParamError(
            f"the folder has {len(part.methods):,} methods and settings: name one with --method or --setting"
        )
    return {named: part.where(method=named[0], setting=named[1]) for named in part.methods}


def _pairs(now: dict[Named, Selection], before: dict[Named, Selection]) -> dict[Named, Selection]:
    """Pair each method and setting with one of the other folder: the same, or the only other one that guesses."""
    guessing, other = ([each for each in side if each[0] != _BASELINE] for side in (now, before))
    same = {named: before[named] for named in guessing if named in before}
    if not same and len(guessing) == len(other) == 1:
        return {guessing[0]: before[other[0]]}
    if not same:
        raise ParamError("the two folders share no method and setting: name one of each with --method and --setting")
    return same


def _report(chosen: dict[Named, Selection], pairs: dict[Named, Selection], keys: Sequence[str]) -> dict[str, JSON]:
    from analysis.metrics import compared, measure

    parts = []
    for (method, setting), selection in chosen.items():
        counts = {name: len(getattr(selection, name)) for name in ("runs", "steps", "nodes")}
        row: dict[str, JSON] = {"method": method, "setting": setting, "questions": len(selection.questions), **counts}
        row["metrics"] = {key: measure(key, selection) for key in keys}
        row["against"] = compared(pairs[method, setting], selection) if (method, setting) in pairs else None
        parts.append(row)
    return {"selections": parts}


def _text(paint: Paint, report: dict[str, JSON], *, rows: bool) -> list[str]:
    from analysis.metrics import METRICS

    lines: list[str] = []
    for part in report["selections"]:
        name = part["method"] if part["setting"] == "default" else f"{part['method']}, {part['setting']}"
        counts = f"{part['questions']:,} questions, {part['steps']:,} steps, {part['nodes']:,} nodes"
        lines += [paint.dim("─" * paint.width), f"{paint.bold(one_line(name))}  {paint.dim(counts)}"]
        if part["against"] is not None:
            lines += ["", paint.bold("Against the other folder"), *_metric(paint, "", part["against"], rows=True)]
        group, lacking = "", dict[str, list[str]]()
        for key, result in part["metrics"].items():
            metric = METRICS[key]
            if result["reason"] is not None and not rows:
                lacking.setdefault(result["reason"], []).append(metric.title)
                continue
            if metric.group != group:
                group = metric.group
                lines += ["", paint.bold(group)]
            lines += _metric(paint, metric.title, result, rows=rows)
        if lacking:
            lines += ["", paint.bold("Not in this record")]
        for reason, titles in lacking.items():
            lines += paint.wrapped(f"{', '.join(titles)}: {one_line(reason)}", dim=True)
    return lines


def _metric(paint: Paint, title: str, result: MetricResult, *, rows: bool) -> list[str]:
    """Format a metric's sentence, and with `rows` the table below it."""
    sentence = result["sentence"] if result["reason"] is None else result["reason"]
    lines = paint.wrapped(f"{title}: {one_line(sentence)}" if title else one_line(sentence))
    if not rows or not result["rows"]:
        return lines
    cells = [[*map(_cell, row[:-1]), _cell(row[-1], _LONGEST)] for row in result["rows"][:_MOST_ROWS]]
    widths = [max(map(len, column)) for column in zip(result["columns"], *cells, strict=True)]
    numbers = [all(not isinstance(row[place], str) for row in result["rows"]) for place in range(len(widths))]

    def line(row: Sequence[str]) -> str:
        put = (
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(row, widths, numbers, strict=True)
        )
        return f"    {'  '.join(put)}".rstrip()

    lines += [paint.dim(line(result["columns"])), *map(line, cells)]
    if len(result["rows"]) > _MOST_ROWS:
        lines.append(paint.dim(f"    and {len(result['rows']) - _MOST_ROWS:,} more rows, which --json prints"))
    return lines


def _cell(value: JSON, widest: int = _WIDEST) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.1f}"
    if isinstance(value, int):
        return f"{value:,}"
    text = one_line(str(value))
    return text if len(text) <= widest else f"{text[: widest - 1]}…"


def _listing(paint: Paint, report: dict[str, JSON]) -> list[str]:
    lines = []
    for metric in report["metrics"]:
        lines += [f"{paint.bold(metric['key'])}  {metric['title']}", f"    {metric['formula']}"]
        lines.append(paint.dim(f"    {metric['look_for']}"))
    return lines
