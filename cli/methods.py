"""`methods`: lists the methods and their parameters."""

from __future__ import annotations

import argparse
import json
import sys

from decoding.methods import METHODS, Method
from decoding.params import Params
from decoding.types import JSON

from .arguments import add_json_flag
from .paint import Paint

HELP = "list the decoding methods and their parameters"
EXAMPLE = "python -m decoding methods --json"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_json_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    """Print the methods."""
    if arguments.json:
        print(json.dumps([describe(method) for method in METHODS.values()]))
        return 0
    paint = Paint.for_stream(sys.stdout)
    for method in METHODS.values():
        needs = f"  needs {', '.join(sorted(method.needs))}" if method.needs else ""
        print(f"{paint.bold(method.name)}  {method.label}{paint.dim(needs)}")
        print(f"  {paint.dim(method.paper)}")
        for row in method.Params.describe():
            print(f"  {row['name']:20} {_default(row):>9}  {row['help']}{paint.dim(_bounds(row))}")
        if method.Params.presets:
            print(f"  {'presets':20} {'':9}  {', '.join(method.Params.presets)}")
        print()
    return 0


def describe(method: type[Method]) -> dict[str, JSON]:
    """Return the JSON object of a method."""
    return {
        "name": method.name,
        "label": method.label,
        "paper": method.paper,
        "lossless": method.Params().typical is None,
        "not_lossless": _lossy(method.Params),
        "needs": sorted(method.needs),
        "params": method.Params.describe(),
        "presets": {name: dict(values) for name, values in method.Params.presets.items()},
    }


def _lossy(kind: type[Params]) -> dict[str, list[str]]:
    """Return the choices, by parameter, with which sampled text does not have the target's distribution."""
    choices = {row["name"]: row["choices"] for row in kind.describe()}
    lossy = {name: [one for one in many if kind.parse({name: one}).typical] for name, many in choices.items()}
    return {name: choices for name, choices in lossy.items() if choices}


def _default(row: dict[str, JSON]) -> str:
    return str(row["default"]).lower() if isinstance(row["default"], bool) else str(row["default"])


def _bounds(row: dict[str, JSON]) -> str:
    if row["choices"]:
        return f" ({', '.join(row['choices'])})"
    return "" if row["min"] is None or row["max"] is None else f" ({row['min']} to {row['max']})"
