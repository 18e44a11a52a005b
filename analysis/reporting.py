"""Work that reports its progress: a generator, so that its caller can stop it between two parts."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

_Result = TypeVar("_Result")
Reporting = Generator[tuple[str, float], None, _Result]  # tells what is being done, and its share; close it to stop


def finish(work: Reporting[_Result], report: Callable[[str, float], None]) -> _Result:
    """Do the work to its end, reporting its progress."""
    while True:
        try:
            report(*next(work))
        except StopIteration as end:
            result: _Result = end.value
            return result
