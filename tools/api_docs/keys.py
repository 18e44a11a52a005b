"""Write the keys of the commands' JSON, from their output for the toy model."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from cli.main import main

from ..markdown import code, table

_INTRO = """\
One JSON object (of `methods`: a list of them) and nothing else on stdout. These keys stay; more may be added. `[]`
stands for every item of a list, `.` for a key of an object; `null` may stand where a run has no value.
Every other command that has `--json` prints one object as well. An error is one line on stderr and exit code 2.

"""
# Objects whose keys belong to a method, a model or a file of tasks.
_FREE = {"params", "sampling", "presets", "parts", "versions", "not_lossless", "by_category", "texts"}
_TYPES = {str: "text", bool: "true or false", int: "number", float: "number", type(None): "null"}


def section(title: str) -> str:
    """Write the JSON keys of the commands that scripts call most."""
    threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, XDG_CACHE_HOME=folder):
        trace = str(Path(folder, "run.jsonl"))
        toy = ["--model", "toy", "--max-new-tokens", "8"]
        calls = {
            "methods": [],
            "run": ["--method", "draft_model", "--trace", trace, *toy],
            "bench": ["--limit", "1", "--methods", "autoregressive,jacobi", "--out", str(Path(folder, "b.json")), *toy],
            "cost": ["--model", "toy", "--contexts", "16", "--rounds", "1"],
            "tune": ["--method", "jacobi", "--limit", "1", *toy],
            "evaluate": ["--limit", "1", "--methods", "draft_model", "--out", str(Path(folder, "runs")), *toy],
            "rescore": [trace],
            "landscape": ["--from", trace, "--methods", "jacobi"],
            "trace export": [trace, "--format", "csv", "--out", str(Path(folder, "steps.csv"))],
        }
        parts = [_entry(name, _printed([*name.split(), *arguments])) for name, arguments in calls.items()]
    torch.set_num_threads(threads)  # the toy takes one
    return f"## {title}\n\n" + _INTRO + "".join(parts)


def _printed(arguments: list[str]) -> Any:
    out, complaint = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(complaint):
        status = main([*arguments, "--json"])
    if status:
        raise RuntimeError(f"{' '.join(arguments)}: {complaint.getvalue()}")
    return json.loads(out.getvalue())


def _entry(name: str, answer: Any) -> str:
    kinds: dict[str, list[str]] = {}
    for path, kind in _paths(answer):
        if kind not in kinds.setdefault(path, []):
            kinds[path].append(kind)
    rows = [
        (code(path), " or ".join(kind for kind in types if kind != "null") or "null") for path, types in kinds.items()
    ]
    return f"### `{name} --json`\n\n" + table(("key", "type"), rows)


def _paths(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every key below a value with its type."""
    if isinstance(value, dict):
        if path:
            yield path, "object"
        if path.rpartition(".")[2] not in _FREE:
            for key, inner in value.items():
                yield from _paths(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        if path:
            yield path, "list"
        for inner in value:
            if isinstance(inner, dict):
                yield from ((f"{path}[].{key}".removeprefix("[]."), kind) for key, kind in _paths(inner))
    else:
        yield path, _TYPES[type(value)]
