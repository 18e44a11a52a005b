"""What the worst files that pass the page's limits take of the machine, measured in a process of its own."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.server.limits import LIMITS
from tests import ROOT
from tests.tiers import slow

from .test_server_calls import GOLDEN, nodes

Lines = list[dict[str, Any]]
# What a full record adds to a step of two nodes.
FULL = {"p": [None, 0.00001], "q": [None, None], "top": [[[1000, 0.00001]], []]}
MEASURE = """
import base64, pathlib, sys
from app.state import AppState

def peak():
    # Not what getrusage says: that begins with the peak of the process that started this one.
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

def opened(path):
    return functions["open_trace"](base64.b64encode(pathlib.Path(path).read_bytes()).decode())

functions = {function.__name__: function for function in AppState().calls.functions()}
opened(sys.argv[1])
before = peak()
answer = opened(sys.argv[2])
assert "lines" in answer, answer
print(peak() - before)
"""


def plain() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a header that contradicts no step below, and a step with two nodes."""
    golden = [json.loads(line) for line in (GOLDEN / "lookahead.jsonl").read_text().splitlines()]
    step = next(line for line in golden if line["kind"] == "step")
    header = golden[0] | {"max_new_tokens": LIMITS.new_tokens, "record": "light"}
    header["model"] = header["model"] | {"vocabulary": 2**18, "context": 2**18}
    return header, nodes({**step, "tokens": [header["prompt"][-1]]}, 2)


def largest_steps() -> Lines:
    """Write as many nodes as may be, each with all that a full record holds."""
    header, small = plain()
    step, count = nodes(small, LIMITS.nodes), LIMITS.nodes
    step |= {"choices": [9] * count, "p": [None, *[0.123456] * (count - 1)], "q": [None] * count}
    step |= {"top": [[[1000 + token, 0.123456] for token in range(5)]] * count}
    step |= {"entropy": [3.123456] * count, "overlap": [0.123456] * count}
    return [header | {"record": "full"}, *[step] * LIMITS.new_tokens]


def most_alternatives() -> Lines:
    """Write as many values as may be, in a few nodes."""
    header, small = plain()
    best = [[1000 + token, 0.00001] for token in range(80_000)]
    return [header | {"record": "full"}, *[small | FULL | {"top": [best, []]}] * 8]


def most_panels() -> Lines:
    """Return lists of one number, the largest of values for what they take in a file."""
    header, small = plain()
    panel = {"panel": {"rows": [[1]] * 70_000}}
    return [header | {"record": "full"}, *[small | FULL | panel] * 2, *most_alternatives()[1:7]]


def most_texts() -> Lines:
    """Make a display text for every token that may have one, of characters that are long as JSON."""
    header, small = plain()
    got = [{str(token): "\u202e" * 7 for token in range(first, first + 16_384)} for first in range(0, 2**17, 16_384)]
    texts: Lines = [{"kind": "texts", "texts": each} for each in got]
    return [header | {"prompt": [*range(2**17 - 1), header["prompt"][-1]]}, *texts, small]


def longest_strings() -> Lines:
    """Return strings that Python holds with four bytes for every character."""
    header, small = plain()
    return [header, *[small | {"sources": ["root", "\U0001f600" + "a" * 1_900_000]}] * 7]


MOST = [largest_steps, most_alternatives, most_panels, most_texts, longest_strings]


@slow  # a process of its own
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read where Linux tells it")
@pytest.mark.parametrize("make", MOST)
def test_a_dropped_file_takes_less_than_150_megabytes(make: Callable[[], Lines], tmp_path: Path) -> None:
    """Reading, replaying and answering together; one file is read at a time."""
    lines, k = list[str](), 0
    for line in make():
        if line["kind"] == "header":
            first = len(line["prompt"])
        elif line["kind"] == "step":
            line = line | {"index": k, "start": first + k}
            k += 1
        lines.append(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    file = tmp_path / "dropped.gz"
    file.write_bytes(gzip.compress("".join(lines).encode(), 1))
    assert file.stat().st_size < LIMITS.upload_bytes
    command = [sys.executable, "-c", MEASURE, str(GOLDEN / "lookahead.jsonl"), str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert 20 < float(done.stdout) < 150
