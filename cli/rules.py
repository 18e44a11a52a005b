"""`rules`: replays other stop rules on a record: draft lengths, thresholds, tree sizes and adaptive verification."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from decoding.errors import ParamError
from decoding.types import JSON

from .arguments import add_json_flag, clean, real
from .bench import columns_of, number
from .paint import Paint, one_line, print_report

if TYPE_CHECKING:
    from analysis.metrics import Selection

HELP = "replay other draft lengths, thresholds and tree sizes on a record, and name the fastest on a device"
EXAMPLE = "python -m decoding rules runs --costs cpu-2-cores"
_MOST_TRACES = 1000


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("record", nargs="+", metavar="RECORD", help="run folder, or trace files")
    parser.add_argument(
        "--costs",
        metavar="DEVICE",
        help="what passes cost: a device of assets/costs, as DEVICE or DEVICE:MODEL, or a file of `cost --out`",
    )
    parser.add_argument(
        "--draft-ms",
        metavar="X",
        help="milliseconds to draft one guess on that device; for trees and for methods without a drafter, to draft a "
        "whole step (default: in proportion to the recorded passes)",
    )
    parser.add_argument("--method", metavar="NAME", help="use only runs of this method")
    parser.add_argument("--setting", metavar="NAME", help="use only runs of this setting")
    parser.add_argument("--all", action="store_true", help="print every rule, not only the ten fastest")
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Replay and report."""
    from analysis.stop_rules.report import rules_report

    draft_ms = None if arguments.draft_ms is None else real("--draft-ms", arguments.draft_ms, 0.0, 1e6)
    if draft_ms is not None and arguments.costs is None:
        raise ParamError("--draft-ms is for --costs: give that too, or leave it out")
    method, setting = (None if text is None else clean(text) for text in (arguments.method, arguments.setting))
    whole = _selection([clean(each) for each in arguments.record])
    chosen = whole.where(method=method, setting=setting)
    if not len(chosen.runs):
        raise ParamError("the record has no run that these flags choose: leave some out")
    costs = None if arguments.costs is None else clean(arguments.costs)
    report = rules_report(chosen, costs=costs, draft_ms=draft_ms)
    print_report(report, arguments.json, partial(_text, every=arguments.all))
    return 0


def _selection(paths: list[str]) -> Selection:
    """Read a run folder, or traces as the runs of one."""
    from analysis.metrics import Selection
    from analysis.store.folder import read_folder
    from analysis.store.tables import RunIdentity, joined, tables_of
    from decoding.trace import read_trace

    if len(paths) == 1 and not Path(paths[0]).is_file():
        return Selection.from_folder(read_folder(paths[0]))
    if len(paths) > _MOST_TRACES:
        raise ParamError(f"name at most {_MOST_TRACES:,} traces, or a run folder")
    traces = [read_trace(path, allow_partial=True) for path in paths]
    tables = [tables_of(trace, RunIdentity(place, f"trace {place}")) for place, trace in enumerate(traces)]
    return Selection.of(*joined(tables))


def _text(paint: Paint, report: dict[str, JSON], *, every: bool) -> list[str]:
    lines = list[str]()
    if (costs := report["costs"]) is not None:
        measured = f"{costs['device']}, {costs['model']}, after {costs['context']:,} tokens"
        most = f"{costs['rows']:,} tokens a pass"
        lines += paint.wrapped(f"Passes cost as measured on {one_line(measured)}, for up to {most}.")
    for part in report["selections"]:
        name = part["method"] if part["setting"] == "default" else f"{part['method']}, {part['setting']}"
        lines += [paint.dim("─" * paint.width), f"{paint.bold(one_line(name))}  {part['steps']:,} steps"]
        if part["reason"] is not None:
            lines += paint.wrapped(f"Not replayed: {one_line(part['reason'])}.")
            continue
        lines += _table(paint, part["rows"], every)
        lines += paint.wrapped(part["sentence"] or f"No speed-up: {part['unpriced']}.")
        if part["best"]:
            lines.append(f"  {paint.bold(part['rows'][part['best']]['flags'])}")
        for because in dict.fromkeys(row["because"] for row in part["rows"]):
            kinds = dict.fromkeys(row["certainty"] for row in part["rows"] if row["because"] == because)
            lines += paint.wrapped(f"{', '.join(kinds)}: {because}", dim=True)
        for each in part["unsaid"]:
            lines += paint.wrapped(f"cannot be said: {one_line(each['rules'])} ({each['because']})", dim=True)
    return lines


def _table(paint: Paint, rows: list[dict[str, JSON]], every: bool) -> list[str]:
    """Format the recorded rule and the fastest others."""
    others = sorted(rows[1:], key=lambda row: (-(row["speedup"] or 0.0), -row["tokens_per_step"]))
    shown = [rows[0], *(others if every else others[:10])]
    cells = [["", "tokens", "guesses", "speedup", "steps", "rule"]]
    for row in shown:
        steps = f"{row['steps']:,.0f}"
        if row["certainty"] == "bounded":
            steps = f"{row['fewest_steps']:,}–{row['most_steps']:,}"
        numbers = (number(row[name], ".2f") for name in ("tokens_per_step", "verified_per_step", "speedup"))
        named = one_line(row["rule"]) + (" (recorded)" if row["recorded"] else "")
        cells.append([row["certainty"], *numbers, steps, named])
    lines = columns_of(paint, cells)
    lines.append(paint.dim("tokens that a step writes after the first, guesses that the target reads in it"))
    if len(shown) < len(rows):
        lines.append(paint.dim(f"and {len(rows) - len(shown)} other rules, which --all prints"))
    return lines
