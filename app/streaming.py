"""What a run tells from its place in the line to its last step, piece by piece; nothing here waits for the page."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from decoding.errors import SpecscopeError
from viz.stream import play as stream

from .hosting import spoken
from .model_pool import Loading
from .run_queue import Ticket

if TYPE_CHECKING:
    from decoding.engine import Engine
    from decoding.run import Run
    from decoding.types import Step

_log = logging.getLogger(__name__)
_FAILED = "the run failed on this machine: try again, or choose another method or model"
_LOOK = 0.25  # seconds between two looks at a queue or a loading: a visitor who left is noticed in between
_SOON = 0.1  # seconds that a reader takes for none
Pieces = Generator[str, None, None]


def led(opening: str, pieces: Pieces) -> Pieces:
    """The same pieces, the first of them behind an opening: each that is told apart costs the page a picture."""
    with closing(pieces):
        yield opening + next(pieces, "")
        yield from pieces


def guarded(pieces: Pieces) -> Pieces:
    """The same pieces; an error becomes a sentence, never a stack trace on the page."""
    try:
        yield from pieces
    except SpecscopeError as error:
        yield stream.fault(spoken(error))
    except Exception:
        _log.exception("a run failed")
        yield stream.fault(spoken(_FAILED))


def turn(ticket: Ticket, cancel: threading.Event) -> Pieces:
    """Wait in the line."""
    told = -1
    while (before := ticket.wait(_LOOK if told >= 0 else 0.0)) and not cancel.is_set():
        piece = ""
        if before != told:
            runs = "1 run is" if before == 1 else f"{before} runs are"
            piece, told = stream.state("queued", f"{runs} before yours."), before
        yield piece


def arrival(loading: Loading, cancel: threading.Event) -> Generator[str, None, Engine | None]:
    """Tell how a loading goes on, until it is done or the visitor has enough."""
    told, engine = ("", -1.0), loading.wait(0.02)
    while engine is None and not cancel.is_set():
        piece = ""
        if loading.what != told[0] or loading.share - told[1] >= 0.05:
            told = (loading.what, loading.share)
            piece = stream.state("loading", spoken(loading.what), round(loading.share, 3))
        yield piece
        engine = loading.wait(_LOOK)
    return None if cancel.is_set() else engine


def bursts(run: Run, gap: float) -> Iterator[list[Step]]:
    """The steps of a run: what came soon, or the first if it came later, then what came in every `gap` seconds.

    Telling each between its pass and the next slowed the next: by a tenth where a pass takes three milliseconds. The
    first steps of a run were slowed the most, by three tenths: a fast run has them behind it before any is told.
    """
    gathered: list[Step] = []
    since = time.monotonic() + min(_SOON, gap) - gap
    for step in run:
        gathered.append(step)
        if time.monotonic() - since >= gap:
            yield gathered
            gathered, since = [], time.monotonic()
    yield gathered
