"""Use the first minutes on a CUDA device: `make gpu-first` measures and tests in one call.

Every stage is a process with its own time limit, so that one that hangs costs the others nothing. All output is in one
folder; a line for each stage comes last.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

_PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "--tb=short", "--all"]
_COMPILED = "--ignore=tests/gpu/test_compilation.py"  # compiles for devices that are elsewhere


def stages(device: str, shapes: str, out: Path) -> list[tuple[str, int, list[str]]]:
    """List the stages: a name, the time limit in seconds, and the arguments of Python."""
    measure = ["-m", "benchmarks.gpu", "--device", device, "--out"]
    compared = "as usual,overlapping launches,all kernels of ours,all overlapping"
    settings = ["--settings", compared, "--probe"]
    small = ["--contexts", "40", "--nodes", "1,8"] if device == "cpu" else []
    return [
        ("speed", 240, [*measure, str(out / "speed"), "--shapes", shapes, "--models", "none", *settings, *small]),
        ("tests", 150, [*_PYTEST, _COMPILED, "tests/gpu", "-n", str(min(12, os.cpu_count() or 1))]),
        ("methods", 60, [*measure, str(out / "methods"), "--shapes", "none", "--models", "pocket", "--limit", "3"]),
    ]


def run(name: str, seconds: int, arguments: Sequence[str], out: Path) -> str:
    """Run a stage, with its output in a file; return a line on how it ended."""
    begin = time.monotonic()
    with (out / f"{name}.log").open("w", encoding="utf-8") as log:
        try:
            ended = subprocess.run(
                [sys.executable, *arguments], stdout=log, stderr=subprocess.STDOUT, timeout=seconds, check=False
            )
            how = "ended well" if ended.returncode == 0 else f"ended with {ended.returncode}"
        except subprocess.TimeoutExpired:
            how = "ran out of time"
    return f"{name}: {how} after {time.monotonic() - begin:.0f} s"


def main(argv: Sequence[str] | None = None) -> None:
    """Run all stages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_first", description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: a rehearsal")
    parser.add_argument("--shapes", default="135M,1B,7B", help="as in benchmarks.gpu")
    parser.add_argument("--only", default="", help="some of the stages, separated by commas")
    parser.add_argument("--out", type=Path, default=Path("gpu-first"), help="the folder for all that is written")
    arguments = parser.parse_args(argv)
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no CUDA device on this machine; rehearse with --device cpu --shapes tiny")
    arguments.out.mkdir(parents=True, exist_ok=True)
    names = arguments.only.split(",") if arguments.only else None
    lines = []
    for name, seconds, command in stages(arguments.device, arguments.shapes, arguments.out):
        if names is None or name in names:
            lines.append(run(name, seconds, command, arguments.out))
            log = (arguments.out / f"{name}.log").read_text(encoding="utf-8", errors="replace")
            print(log[-5000:], flush=True)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
