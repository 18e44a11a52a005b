"""Writes the lines that a run streams to the page: for the player, and for the page around the player."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from decoding.errors import SpecscopeError
from viz.stream import play as player
from viz.stream.play import Play

from ..server.limits import LIMITS
from ..store.trace_store import new_id

if TYPE_CHECKING:
    from decoding.engine import Engine
    from decoding.run import Run
    from decoding.types import Step

    from ..models.model_pool import Loading
    from ..server.run_queue import Ticket

_log = logging.getLogger(__name__)
_POLL = 0.25  # seconds between two checks while waiting: in between it is noticed that a visitor has left
_FIRST_BATCH = 0.1  # seconds: a reader does not notice a shorter delay
_FAILED = "the run failed on this machine: try again, or choose another method or model"
_PLAIN_WORD = re.compile(r"\A[a-z]+(?!\w|\.\w)")  # at the beginning: not vLLM, top_p or config.json
EVICTED = (
    f"To store this run, your oldest one was deleted: the server stores {LIMITS.stored_runs_each} runs, and "
    f"{LIMITS.stored_bytes_each >> 20} MB, of each visitor. Download the runs that you want to keep."
)
Lines = Generator[str, None, None]  # "" where there is nothing new


def page_line(**fields: Any) -> str:
    """A line for the page around the player: a run's id, address and title, a notice, or the end of a race."""
    return json.dumps({"kind": "host", **fields}, ensure_ascii=True, separators=(",", ":")) + "\n"


def fault_lines(sentence: str) -> str:
    """The lines of a run that could not start. A new id makes them differ from those of the same fault before."""
    return page_line(run=new_id()) + player.fault(as_sentence(sentence))


def refusal_line(sentence: str) -> str:
    """The line for settings that no run can be made of: what is shown stays. A new number makes each differ."""
    return page_line(refused=as_sentence(sentence), number=new_id())


def failure_line(error: Exception) -> str:
    """The line that ends a run which raised `error`; an unexpected error is logged, and its text is not shown."""
    if isinstance(error, SpecscopeError):
        return player.fault(as_sentence(error))
    _log.error("a run failed", exc_info=error)
    return player.fault(as_sentence(_FAILED))


def as_sentence(error: object) -> str:
    """An error message as a sentence: a full stop, and a capital letter unless a name such as vLLM comes first."""
    return _PLAIN_WORD.sub(lambda word: word[0].capitalize(), str(error).rstrip(".")) + "."


def wait_for_turn(ticket: Ticket, cancel: threading.Event) -> Lines:
    """Wait in the queue, and report each change of the position."""
    shown = -1
    while (ahead := ticket.wait(_POLL if shown >= 0 else 0.0)) and not cancel.is_set():
        if ahead == shown:
            yield ""
        else:
            shown = ahead
            yield player.state("queued", f"{'1 run is' if ahead == 1 else f'{ahead} runs are'} before yours.")


def wait_for_engine(loading: Loading, cancel: threading.Event) -> Generator[str, None, Engine | None]:
    """Wait until an engine is loaded, and report the progress; returns None once the run is cancelled."""
    phase, share, engine = "", -1.0, loading.wait(0.02)
    while engine is None and not cancel.is_set():
        if loading.phase != phase or loading.share - share >= 0.05:
            phase, share = loading.phase, loading.share
            yield player.state("loading", as_sentence(phase), round(share, 3))
        else:
            yield ""
        engine = loading.wait(_POLL)
    return None if cancel.is_set() else engine


def batches(run: Iterator[Step], gap: float) -> Iterator[list[Step]]:
    """Group the steps of a run by time, one batch for each update of the page; the last batch may be empty.

    Work between two forward passes slows the next pass, by a tenth where a pass takes three milliseconds and by three
    tenths at the beginning of a run. So steps are collected: `gap` seconds for each batch, less for the first one.
    """
    batch: list[Step] = []
    since = time.monotonic() + min(_FIRST_BATCH, gap) - gap
    for step in run:
        batch.append(step)
        if time.monotonic() - since >= gap:
            yield batch
            batch, since = [], time.monotonic()
    yield batch


def in_lane(lane: int, lines: str) -> str:
    """Lines of a run in a race, with the number of its lane added."""
    return "".join(f'{{"lane":{lane},{text[1:]}' for text in lines.splitlines(keepends=True))


class RunWriter:
    """Writes the player's lines of a run; `play` can write a step, or its details, again later."""

    def __init__(self, run: Run, run_id: str, max_bytes: int) -> None:
        self.run, self.play = run, Play(run.header, run_id, max_bytes)
        self._begun = False

    def lines(self, steps: Sequence[Step]) -> str:
        """The lines of some steps; in front of the first ones stand the lines that open the play."""
        begin = "" if self._begun else self.play.begin(self.run.texts())
        self._begun = True
        return begin + "".join(self.play.step(step, self.run.texts(step)) for step in steps)
