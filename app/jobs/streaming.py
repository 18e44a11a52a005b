"""Writes the lines that a run streams to the page: for the player, and for the page around the player."""

from __future__ import annotations

import logging
import re
from collections.abc import Generator
from typing import Any

from decoding.errors import ModelError, ParamError, SpecscopeError
from viz.stream import play as player
from viz.stream.lines import line

from ..server.limits import LIMITS
from ..server.run_queue import FullError
from ..store.trace_store import new_id

_log = logging.getLogger(__name__)
FAILED = "the run failed on this machine: try again, or choose another method or model"
_PLAIN_WORD = re.compile(r"\A[a-z]+(?!\w|\.\w)")  # at the beginning: not vLLM, top_p or config.json
EVICTED = (
    f"To store this run, your oldest one was deleted: the server stores {LIMITS.stored_runs_each} runs, and "
    f"{LIMITS.stored_bytes_each >> 20} MB, of each visitor. Download the runs that you want to keep."
)
Lines = Generator[str, None, None]  # "" if there is nothing new


class UnbegunError(SpecscopeError):
    """A job was over before it began."""

    def __init__(self, sentence: str = "stopped before it began") -> None:
        super().__init__(sentence)


class ModerationError(ParamError):
    """The guardrails of the page refused a prompt or an answer."""


def page_line(**fields: Any) -> str:
    """Return a line for the page around the player: a job's id, address and title, or a notice."""
    return line("host", **fields)


def refusal_line(sentence: str) -> str:
    """Return the line that says why there is no job; a new number makes it differ from the last one."""
    return line("refused", sentence=as_sentence(sentence), number=new_id())


def failure_line(error: Exception, lane: int | None = None) -> str:
    """Return the line that ends a job, or a lane of a race, which raised `error`.

    A refusal is counted; an unexpected error is logged, and its text not shown.
    """
    report_refusal(error)
    if isinstance(error, SpecscopeError):
        return player.fault(as_sentence(error), lane)
    _log.error("a run failed", exc_info=error)
    return player.fault(as_sentence(FAILED), lane)


def report_refusal(error: Exception) -> None:
    """Log that a job, or a lane of a race, was refused, if `error` means that.

    The error's text may quote a visitor's, so it is left out.
    """
    reasons: tuple[tuple[type[Exception], str], ...] = (
        (FullError, "queue"),
        (ModerationError, "guardrails"),
        (ParamError, "settings"),
        (ModelError, "model"),
    )
    reason = next((reason for kind, reason in reasons if isinstance(error, kind)), None)
    if reason is not None:
        _log.info("a job was refused: %s", reason, extra={"facts": {"event": "refusal", "reason": reason}})


def as_sentence(error: object) -> str:
    """Make an error message a sentence: a full stop, and a capital letter unless a name such as vLLM comes first."""
    return _PLAIN_WORD.sub(lambda word: word[0].capitalize(), str(error).rstrip(".")) + "."
