"""The progress of a job's work, as lines of the job's stream."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, TypeVar

from decoding.errors import ParamError
from viz.stream import play as player

from .runner import StartedJob
from .streaming import as_sentence

if TYPE_CHECKING:
    from analysis.reporting import Reporting

_Result = TypeVar("_Result")


def reported(
    work: Reporting[_Result], started: StartedJob, doing: str, late: str
) -> Generator[str, None, _Result | None]:
    """Finish the work, with a line for every part; returns None if the job was cancelled.

    Raises ParamError with the sentence `late` when the job's time is up.
    """
    while not started.is_over:
        try:
            what, share = next(work)
        except StopIteration as end:
            result: _Result = end.value
            return result
        yield player.state(doing, as_sentence(what), round(share, 3))
    work.close()
    if started.cancel.is_set():
        return None
    raise ParamError(late)
