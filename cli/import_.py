"""`import`: makes a run folder of other engines' records; `import` is a keyword of Python, hence the underscore."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decoding.embedded import FOLDERS, SMOLLM2
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.parts import NAMED_PARTS
from decoding.trace import read_trace
from decoding.trace.file import write_trace
from decoding.types import JSON, Trace

from .arguments import add_json_flag, add_model_flags, clean, load_engine, pairs
from .paint import Paint, one_line
from .progress import ProgressBar

if TYPE_CHECKING:
    import pyarrow as pa

    from analysis.imports import Imported

HELP = "convert other engines' records to a run folder"
EXAMPLE = "python -m decoding import assets/samples/vllm.jsonl --out imported"
_NAMED = 4  # columns that lack for one reason; --json names all
_METHODS = {"draft": "draft_model"} | {name: part.method for name, part in NAMED_PARTS.items()}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="records or traces, compressed or not")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="folder to write")
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="format of the files, such as vllm (default: recognised by the first record; a wrong name lists all)",
    )
    parser.add_argument("--name", metavar="TEXT", help="name of the folder (default: the first file's name)")
    again = parser.add_argument_group("rejected guesses")
    again.add_argument(
        "--restore",
        action="store_true",
        help="draft them again with --model and a drafter (greedy runs with token ids only)",
    )
    again.add_argument(
        "--method",
        metavar="NAME",
        help="method that drafts (default: the record's, or the one that uses --draft, --eagle, ...)",
    )
    again.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="setting of the method; repeatable"
    )
    add_model_flags(parser, model=None)
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read, restore, write and report."""
    from analysis.imports import merged, read_any
    from analysis.store.folder import make_folder, write_folder

    out = Path(clean(arguments.out))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ParamError(f"--out must name a new or empty folder, not {clean(arguments.out)[:200]!r}")
    parts = [read_any(clean(file), arguments.format) for file in arguments.files]
    name = clean(arguments.name) if arguments.name else str(parts[0].summary["name"])
    imported, traces = merged(parts, name), _own_traces(arguments.files, parts)
    imported = imported._replace(runs=_naming(imported.runs, traces))
    if arguments.restore:
        imported = _restored(arguments, imported)
    elif arguments.method or arguments.param:
        raise ParamError("--method and --param say what drafts again: give --restore as well")
    write_folder(out, *imported)
    for number, trace in traces.items():
        place = out / _place(number)
        make_folder(place.parent)
        write_trace(trace, place)
    formats = [*dict.fromkeys(str(part.summary["format"]) for part in parts)]
    report: dict[str, JSON] = {
        "out": clean(arguments.out),
        "formats": formats,
        "source": imported.summary["source"],
        "runs": len(imported.runs),
        "steps": len(imported.steps),
        "nodes": len(imported.nodes),
        "missing": imported.summary["missing"],
        "restored": imported.summary.get("restored"),
        "unchecked": [each for part in parts for each in part.summary.get("unchecked", ())],
    }
    print(json.dumps(report)) if arguments.json else _show(report)
    return 0


def _own_traces(files: Sequence[str], parts: Sequence[Imported]) -> dict[int, Trace]:
    """Read those files that are traces, which the page plays, by the numbers of their runs in the folder."""
    traces, number = {}, 0
    for file, part in zip(files, parts, strict=True):
        if part.summary["format"] == "trace":
            traces[number] = read_trace(clean(file), allow_partial=True)
        number += len(part.runs)
    return traces


def _naming(runs: pa.Table, traces: Mapping[int, Trace]) -> pa.Table:
    """Return the runs with the paths of their traces."""
    import pyarrow as pa

    places = [_place(number) if number in traces else None for number in range(len(runs))]
    column = runs.schema.get_field_index("trace")
    return runs.set_column(column, runs.schema.field(column), pa.array(places, pa.string()))


def _place(number: int) -> str:
    from analysis.store.folder import TRACES

    return f"{TRACES}/{number:05}.jsonl.gz"


def _restored(arguments: argparse.Namespace, imported: Imported) -> Imported:
    """Draft the records' guesses again, with the engine of the flags."""
    from analysis.restoring.restore import restore

    named = {model for model in imported.runs["model"].to_pylist() if model}
    model = arguments.model or (named.pop() if len(named) == 1 and named <= {"toy", SMOLLM2, *FOLDERS} else None)
    if model is None:  # what a file names must not make this machine fetch anything
        raise ParamError("--restore needs the model that wrote the records: name it with --model")
    method = arguments.method or next((name for flag, name in _METHODS.items() if getattr(arguments, flag)), None)
    unknown = {name for name in imported.runs["method"].to_pylist() if name not in METHODS}
    if method is None and unknown:
        raise ParamError(
            f"the records call their method {min(unknown)[:40]!r}: say with --method which of ours that is"
        )
    engine = load_engine(arguments, model)
    with ProgressBar() as progress:
        return restore(imported, engine, method, pairs(arguments.param) or None, progress)


def _show(report: dict[str, JSON]) -> None:
    from analysis.imports import FORMATS
    from analysis.store.schema import NODES, RUNS, STEPS

    paint, formats = Paint.for_stream(sys.stdout), (FORMATS[name].title for name in report["formats"])
    counts = ", ".join(f"{name} {report[name]:,}" for name in (RUNS, STEPS, NODES))
    print(f"{paint.bold(one_line(report['out']))}: {counts}, from {' and '.join(formats)}")
    if report["restored"]:
        print(report["restored"]["sentence"])
    if report["unchecked"]:
        print(paint.fit(f"not checked: {one_line('; '.join(dict.fromkeys(report['unchecked'])))}"))
    by_reason: dict[str, list[str]] = {}
    for key, reason in report["missing"].items():
        if not key.startswith(f"{NODES}.") or report["nodes"]:
            by_reason.setdefault(reason, []).append(key)
        else:
            by_reason[reason] = ["the guesses one by one"]
    for reason, keys in by_reason.items():
        more = [f"{len(keys) - _NAMED} more columns"] if len(keys) > _NAMED + 1 else keys[_NAMED:]
        print(paint.fit(paint.dim(f"without {', '.join([*keys[:_NAMED], *more])}: {one_line(reason)}")))
