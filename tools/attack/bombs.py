"""Make traces that are small as files and huge when unpacked."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from tools import ROOT

GOLDEN = ROOT / "tests" / "golden" / "lookahead.jsonl"


def of_lists() -> str:
    """Make a trace whose first step holds thirty megabytes of empty lists in a panel of no method."""
    header, step = _lines()
    step["panel"] = {"bomb": []}
    bomb = json.dumps(step).replace('"bomb": []', '"bomb": [' + "[]," * 1_900_000 + "0]")
    text = f"{json.dumps(header)}\n{bomb}\n"
    return base64.b64encode(gzip.compress(text.encode(), 9)).decode()


def of_nodes(steps: int = 2_048, count: int = 700) -> str:
    """Make a trace of `steps` steps with `count` nodes each; the defaults exceed what the page reads."""
    header, first = _lines()
    token, start, lines = header["prompt"][-1], len(header["prompt"]), [json.dumps(header)]
    for index in range(steps):
        pending = 0 if index else first["pending"]
        step = {
            **first,
            "index": index,
            "start": start + index,
            "pending": pending,
            "tokens": [token] * count,
            "parents": [-1, *range(count - 1)],
            "roles": [0, *[1] * (count - 1)],
            "sources": [""] * count,
            "path": [0],
            "emitted": [token],
            "accepted": 0,
            "drafted": count - 1,
            "fed": count + pending,
            "panel": {},
        }
        step |= {name: [] for name in ("choices", "p", "q", "top", "draft_top", "ranks") if name in first}
        lines.append(json.dumps(step))
    return base64.b64encode(gzip.compress("\n".join(lines).encode() + b"\n", 9)).decode()


def _lines() -> tuple[Any, Any]:
    """Return the header and the first step of an honest trace."""
    lines = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    return lines[0], next(line for line in lines if line["kind"] == "step")
