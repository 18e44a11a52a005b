"""Runs an evaluation, from the start or from where it was stopped, to a finished run folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.model.session import ProgressCallback
from decoding.types import JSON

from ..store.folder import PARTS, SUMMARY, make_folder, read_summary, write_summary
from ..store.tables import SOURCE
from .parts import finished_questions, merge, remove_parts, write_part
from .plan import EvaluationPlan
from .question import Answered, answer_question, check_engine, warm_up
from .report import report

# Gives the answers of questions, in any order: (plan, their numbers) -> (number, answer) pairs.
Answers = Callable[[EvaluationPlan, Sequence[int]], Iterable[tuple[int, Answered]]]
_LIGHT = "the runs were recorded without probabilities: evaluate again with --record full"
_NEED_FULL = ("p", "q", "rank", "entropy", "overlap")
_OTHERWISE = "name another folder with --out, or give the same settings to resume this one"


def evaluate(
    plan: EvaluationPlan,
    folder: str | Path,
    answers: Answers,
    about: Mapping[str, JSON],
    progress: ProgressCallback | None = None,
) -> dict[str, JSON]:
    """Run what the folder lacks of the plan, finish the folder, and return its report.

    `about` describes what the plan does not: the model and how it is held. A folder with other values is refused.
    """
    path, announce = Path(folder), progress or (lambda what, share: None)
    summary = _begin(path, plan, about)
    if not summary["finished"]:
        done = finished_questions(path)
        waiting = [number for number in range(len(plan.tasks)) if number not in done]
        clock = _TimeLeft(len(plan.tasks), len(waiting))
        announce(clock.sentence(), clock.share)
        for number, answered in answers(plan, waiting) if waiting else ():
            write_part(path, number, answered)
            clock.finished += 1
            announce(clock.sentence(), clock.share)
        merge(path)
        write_summary(path, summary | {"finished": True})
    remove_parts(path)
    return report(path)


def in_this_process(engine: Engine) -> Answers:
    """Answer one question after the other, on an engine of this process."""

    def answers(plan: EvaluationPlan, numbers: Sequence[int]) -> Iterator[tuple[int, Answered]]:
        check_engine(engine, plan)
        warm_up(engine, plan)
        for number in numbers:
            yield number, answer_question(engine, plan, number)

    return answers


def _begin(folder: Path, plan: EvaluationPlan, about: Mapping[str, JSON]) -> dict[str, Any]:
    """Return the summary of a new folder, or of one that the same evaluation has begun."""
    settings = {**about, **plan.settings()}
    make_folder(folder)
    if not (folder / SUMMARY).exists():
        if strangers := sorted(path.name for path in folder.iterdir() if not path.name.startswith(f".{SUMMARY}.")):
            raise ParamError(
                f"the folder {str(folder)!r} holds {strangers[0][:60]!r} and no evaluation: name a new one"
            )
        missing = {} if plan.record == "full" else dict.fromkeys(_NEED_FULL, _LIGHT)
        write_summary(
            folder, {"source": SOURCE, "name": folder.name, "finished": False, "missing": missing, "settings": settings}
        )
    summary = read_summary(folder)
    begun = summary.get("settings")
    if summary["source"] != SOURCE or not isinstance(begun, dict):
        raise ParamError(f"the folder {str(folder)!r} holds no evaluation of ours: name another with --out")
    if differing := sorted(key for key in begun.keys() | settings.keys() if begun.get(key) != settings.get(key)):
        raise ParamError(f"the folder {str(folder)!r} was begun with other {' and '.join(differing)}: {_OTHERWISE}")
    if summary["finished"] is False and not (folder / PARTS).is_dir():
        make_folder(folder / PARTS)
    return summary


class _TimeLeft:
    """The progress of an evaluation, and the time that the rest takes at this speed."""

    def __init__(self, questions: int, waiting: int) -> None:
        self._questions, self._waiting, self._begun = questions, waiting, time.monotonic()
        self.finished = 0  # since the beginning of this process

    @property
    def share(self) -> float:
        return 1.0 - (self._waiting - self.finished) / self._questions

    def sentence(self) -> str:
        """Describe the progress."""
        left, done = self._waiting - self.finished, self._questions - self._waiting + self.finished
        progress = f"{done} of {self._questions} questions"
        if not self.finished or not left:
            return progress
        return f"{progress}, {duration((time.monotonic() - self._begun) / self.finished * left)} left"


def duration(seconds: float) -> str:
    """Format a length of time: "40 s", "3 min", "2 h 05 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
