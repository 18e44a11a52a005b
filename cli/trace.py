"""`trace`: exports a recorded run for other tools."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from analysis.export import perfetto, steps_csv, vllm
from decoding.trace import read_trace
from decoding.types import Trace

from .arguments import add_json_flag, check_place, clean
from .paint import Paint, one_line

HELP = "export a recorded run for other tools"
EXAMPLE = "python -m decoding trace export --format perfetto --out run.json run.jsonl"
_FORMS: dict[str, Callable[[Trace], str]] = {
    "csv": steps_csv,
    "perfetto": lambda trace: json.dumps(perfetto(trace)) + "\n",
    "vllm": lambda trace: json.dumps(vllm(trace)) + "\n",
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("what", choices=["export"], metavar="export", help="export: write the trace in another format")
    parser.add_argument("trace", metavar="TRACE", help="trace written by run --trace")
    parser.add_argument(
        "--format",
        required=True,
        choices=sorted(_FORMS),
        help="csv: one row per step; perfetto: timeline for ui.perfetto.dev; vllm: per-request metrics",
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="file to write")
    parser.add_argument("--force", action="store_true", help="replace an existing FILE")
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Convert and report."""
    check_place("--out", arguments.out, replace=arguments.force)
    trace = read_trace(arguments.trace)
    text = _FORMS[arguments.format](trace)
    Path(arguments.out).write_text(text, encoding="ascii", newline="")
    if arguments.json:
        report = {
            "out": clean(arguments.out),
            "format": arguments.format,
            "steps": len(trace.steps),
            "bytes": len(text),
        }
        print(json.dumps(report))
    else:
        paint = Paint.for_stream(sys.stdout)
        print(f"{paint.bold(one_line(clean(arguments.out)))}: {len(trace.steps)} steps, {len(text):,} bytes")
    return 0
