"""Measure how a hostile visitor affects everybody else: `python -m tools.attack`.

It starts a server on loopback, an attacker at 127.0.0.2, and two visitors at 127.0.0.1: one times the page repeatedly,
the other runs a prompt during each attack. For every attack the table has the page's p95 for the others, how many of
their runs finished, the server's memory, the bytes left on the disk and in the log, and the number of answers that no
request may get. Everything is bounded in number and time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.load import PAGES, RUNS, fifty_pages
from tools.markdown import table
from tools.page import Page, serving

from .attack import FLAGS, FORMS, KEY, Attack
from .attacks import ATTACKS, cancelled_runs, long_sessions, mixed_nonsense, tiny_traces
from .files import make_models
from .others import Others
from .queries import hostile_queries

_REST = 12.0  # seconds between an attack and measuring memory, in which unread runs end and caches are swept


@dataclass(frozen=True)
class AttackResult:
    """How an attack affected the others and the server."""

    name: str
    seconds: float
    statuses: Counter[int]
    p95_ms: float
    finished: str  # runs of another visitor, of those begun
    before: float  # megabytes
    after: float
    disk: int  # bytes
    log: int

    @property
    def wrong(self) -> int:
        """Count the answers that a request may not get."""
        return sum(count for status, count in self.statuses.items() if status >= 500 and status != 503)


def measure(page: Page, temporary: Path, attack: Callable[[Attack], None], scale: float) -> AttackResult:
    """Run one attack while two others visit."""
    attacker = Attack(page, scale)
    before, log, begin = page.megabytes, page.log.stat().st_size, time.monotonic()
    others = Others(page)
    attack(attacker)
    seconds = time.monotonic() - begin
    others.stop()
    time.sleep(_REST)
    _settle(page)
    return AttackResult(
        attack.__name__,
        seconds,
        attacker.statuses,
        others.p95_ms,
        others.finished,
        before,
        page.megabytes,
        sum(file.stat().st_size for file in temporary.rglob("*") if file.is_file()),
        page.log.stat().st_size - log,
    )


def _warm_up(page: Page) -> None:
    """Start the threads and fill the small caches, as on a server after its first day."""
    for attack in (long_sessions, tiny_traces, mixed_nonsense, cancelled_runs, hostile_queries):
        attack(Attack(page, 0.05))
    for _ in range(3):
        page.visitor().run(60, run_length=128)
    time.sleep(_REST)


def _settle(page: Page) -> None:
    """Run once as another visitor, to evict an attack's entries from small caches."""
    page.visitor().run(60, run_length=8)


HEADS = ["attack", "seconds", "answers", "page p95 of others, ms", "their runs", "memory, MB", "left on disk"]
HEADS += ["log, KB", "5xx"]


def row(each: AttackResult) -> list[str]:
    """Write an attack's line of the table."""
    answers = ", ".join(f"{count} x {status or 'closed'}" for status, count in sorted(each.statuses.items()))
    cells = [each.name.replace("_", " "), f"{each.seconds:.0f}", answers, f"{each.p95_ms:.0f}", each.finished]
    return [*cells, f"{each.before:.0f} to {each.after:.0f}", str(each.disk), f"{each.log / 1024:.0f}", str(each.wrong)]


def main() -> int:
    """Run the attacks and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.attack", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of requests (default: 1)")
    parser.add_argument("--form", choices=FORMS, default="cpu", help="of the Space that is attacked (default: cpu)")
    parser.add_argument("--only", default="", help="attacks whose name holds this text")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / "tmp"
        temporary.mkdir()
        flags = (*FLAGS, "--bring-your-own", str(make_models(Path(folder) / "models")))
        environment = {"TMPDIR": str(temporary), "SPECSCOPE_API_KEY": KEY}
        with serving(Path(folder) / "log", *flags, module=FORMS[given.form], **environment) as page:
            _warm_up(page)
            rows = []
            for attack in ATTACKS:
                if given.only in attack.__name__:
                    rows.append(row(measure(page, temporary, attack, given.scale)))
                    sys.stderr.write(" | ".join(rows[-1]) + "\n")
            load = fifty_pages(page)
        log = (Path(folder) / "log").read_text()
    sys.stdout.write(f"{table(HEADS, rows)}\nTracebacks in the log: {log.count('Traceback')}.\n")
    sys.stdout.write(f"{PAGES} pages at once beside {RUNS} live runs: p95 {load:.0f} ms.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
