"""Runs llama.cpp in a separate process: sends a line of JSON for every text, and receives one with ids and times."""

from __future__ import annotations

import json
import subprocess
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from decoding.errors import ModelError

PYTHON = Path(__file__).parents[4] / ".llama-cpp" / "bin" / "python"  # of the environment that `make llama-cpp` makes
_SCRIPT = Path(__file__).with_name("serve.py")
_CONTEXT = 8192


class Process:
    """A model in llama.cpp. It gets prompts as ids, so its own tokenizer is not used."""

    def __init__(self, file: Path, threads: int) -> None:
        if not PYTHON.is_file():
            raise ModelError("llama.cpp is not on this machine: compile it with `make llama-cpp`, or leave it out")
        self._process = subprocess.Popen(
            [str(PYTHON), str(_SCRIPT), str(file), str(threads), str(_CONTEXT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.id = self._process.pid
        weakref.finalize(self, _end, self._process)
        self._read()  # it is ready

    def decode(self, ids: Sequence[int], budget: int, ends: frozenset[int]) -> tuple[list[int], list[float]]:
        """Return greedy ids, and the seconds from the start to each of them."""
        assert self._process.stdin is not None
        line = json.dumps({"ids": list(ids), "budget": budget, "ends": sorted(ends)})
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError:
            self._read()  # raises what went wrong
        answer = self._read()
        return answer["ids"], answer["seconds"]

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer = json.loads(line) if line.startswith("{") else {"error": "it has ended"}
        if "error" in answer:
            _end(self._process)
            reason = " ".join(str(answer["error"]).split())[:160]
            raise ModelError(f"llama.cpp cannot run this model ({reason}): leave it out of the peers")
        return answer


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
