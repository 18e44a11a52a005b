"""The sample files, as bytes and as records that a test may change."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests import ROOT

FOLDER = ROOT / "assets" / "samples"
FORMATS = {
    "vllm.jsonl": "vllm",
    "vllm_summary.json": "vllm",
    "sglang.jsonl": "sglang",
    "llama_cpp.jsonl": "llama-cpp",
    "aiperf.jsonl": "aiperf",
    "acceptance.csv": "speculators",
    "speculation_profile.json": "specdec_bench",
    "vllm_vcr.jsonl": "vllm-vcr",
    "specdecode_bench.jsonl": "specdecode-bench",
    "spec_bench.jsonl": "spec-bench",
}


def sample(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


def changed(name: str, line: int, change: Callable[[Any], object]) -> bytes:
    """Change one record of a sample: `line` counts from 1."""
    rows = [json.loads(row) for row in sample(name).splitlines()]
    change(rows[line - 1])
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def whole(name: str, change: Callable[[Any], object]) -> bytes:
    """Change a sample that is one document."""
    data = json.loads(sample(name))
    change(data)
    return json.dumps(data, indent=1).encode()
