"""Visit the page for half an hour as a mixed crowd: `make soak`, or `python -m tools.soak`.

Visitors run random methods with random settings on the page and by the API, leave in the middle, cancel and reload.
Every finished run must pass `rescore`. After a sixth of the time and at the end the crowd rests, and memory, threads
and open files are measured.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tools.page import Page, Visitor, serving

MINUTES, VISITORS = 30.0, 4
FLAGS = ("--model", "pocket", "--api", "--mcp")
_REST = 15.0  # seconds until unread runs have ended and caches are swept
_PROMPTS = ("The tide", "Monday: high tide at six, low tide at noon.\nTuesday:", "def f(x):\n    return", "é日本")


class Resources(NamedTuple):
    """The server's resources while nobody visits it."""

    megabytes: float
    threads: int
    handles: int

    @classmethod
    def of(cls, page: Page) -> Resources:
        return cls(page.megabytes, page.threads, page.handles)


@dataclass
class Soak:
    """A crowd, and the outcomes of its visits."""

    page: Page
    seed: int = 0
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def visit(self, seconds: float, visitors: int = VISITORS) -> None:
        """Let the crowd visit for `seconds`."""
        self.seed += 1
        until = time.monotonic() + seconds
        crowd = [threading.Thread(target=self._visit, args=(number, until)) for number in range(visitors)]
        for visitor in crowd:
            visitor.start()
        for visitor in crowd:
            visitor.join()

    def _visit(self, number: int, until: float) -> None:
        chance = random.Random(f"{self.seed} {number}")
        visits: tuple[Callable[[Visitor, random.Random], str], ...]
        visits = (self._run, self._leave_run, self._decode, self._leave_stream, self._chat, self._tool, _read)
        while time.monotonic() < until:
            visit = chance.choice(visits)
            try:
                outcome = visit(self.page.visitor(f"127.0.4.{number + 1}"), chance)
            except Exception as error:  # of any kind: the report names it
                outcome = f"wrong: {visit.__name__}: {error!r}"[:400]
            with self._lock:
                self.done[outcome if outcome.startswith("wrong") else f"{visit.__name__.strip('_')} {outcome}"] += 1
                if outcome.startswith("wrong"):
                    self.wrong.append(outcome)

    def _random_call(self, visitor: Visitor, chance: random.Random) -> dict[str, object]:
        """Choose a call: any method that the model can run, and any sampling."""
        [model] = [each for each in json.loads(visitor.ask("GET", "/v1/models").text)["data"] if each["id"] == "pocket"]
        sampling = {"temperature": chance.choice((0.0, 0.7, 1.3)), "seed": chance.randrange(1_000)}
        return {
            "prompt": chance.choice(_PROMPTS),
            "method": chance.choice(model["methods"]),
            "max_new_tokens": chance.randrange(1, 129),
            "sampling": sampling,
        }

    def _run(self, visitor: Visitor, chance: random.Random) -> str:
        call = self._random_call(visitor, chance)
        text = visitor.run(120, run_method=call["method"], run_length=call["max_new_tokens"])
        return _checked(text)

    def _leave_run(self, visitor: Visitor, chance: random.Random) -> str:
        visitor.join(run_method=self._random_call(visitor, chance)["method"], run_length=256)
        for number, _ in enumerate(visitor.stream(60)):
            if number >= chance.randrange(6):
                break
        return "left"

    def _decode(self, visitor: Visitor, chance: random.Random) -> str:
        return self._stored(visitor, visitor.program("/v1/decode", self._random_call(visitor, chance)).text)

    def _leave_stream(self, visitor: Visitor, chance: random.Random) -> str:
        call = {**self._random_call(visitor, chance), "stream": True}
        return str(visitor.leave("/v1/decode", call, chance.randrange(1, 900)))

    def _chat(self, visitor: Visitor, chance: random.Random) -> str:
        body = {"messages": [{"role": "user", "content": chance.choice(_PROMPTS)}], "max_tokens": 32}
        return self._stored(visitor, visitor.program("/v1/chat/completions", body).text)

    def _tool(self, visitor: Visitor, chance: random.Random) -> str:
        params = {"name": "decode", "arguments": self._random_call(visitor, chance)}
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        visitor.program("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        result = visitor.program("/mcp", call).json()["result"]
        return self._stored(visitor, json.dumps(result.get("structuredContent") or {"error": result["content"]}))

    def _stored(self, visitor: Visitor, text: str) -> str:
        """Return how a call ended, by opening the record of a finished run as the page does."""
        answer = json.loads(text)
        if "error" in answer:
            return "refused" if "waiting already" in text else f"wrong: {text}"
        record = answer.get("record") or answer["specscope"]["record"]
        return _checked(visitor.call("open_recording", record.partition("run=")[2]).json()["lines"])


def _read(visitor: Visitor, chance: random.Random) -> str:
    return str(visitor.ask("GET", chance.choice(("/", "/?screen=learn", "/healthz", "/?run=none"))).status)


def _checked(lines: str) -> str:
    """Return how a run ended, by its lines: the last one has the result of `rescore`."""
    if "waiting already" in lines:
        return "refused"
    last = json.loads(lines.splitlines()[-1])
    if "check" not in last or last["check"]["violations"]:
        return f"wrong: {json.dumps(last)}"
    return "passed the oracle"


def main() -> int:
    """Soak a server, and print its resources over time and the outcomes of the visits."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of visits (default: %(default)s)")
    seconds = 60 * parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "log", *FLAGS) as page:
        soak, measured = Soak(page), list[Resources]()
        for share in (1 / 6, 5 / 6):
            soak.visit(seconds * share)
            time.sleep(_REST)
            measured.append(Resources.of(page))
            sys.stderr.write(f"{measured[-1]}\n")
        log = (Path(folder) / "log").read_text()
    early, late = measured
    for outcome, count in sorted(soak.done.items()):
        sys.stdout.write(f"{count:6} {outcome}\n")
    sys.stdout.write(f"{early}\n{late}\nmemory: {100 * (late.megabytes / early.megabytes - 1):+.1f}%\n")
    sys.stdout.write(f"Tracebacks in the log: {log.count('Traceback')}; wrong: {len(soak.wrong)}.\n")
    return int(bool(soak.wrong) or late.megabytes > 1.03 * early.megabytes or "Traceback" in log)


if __name__ == "__main__":
    sys.exit(main())
