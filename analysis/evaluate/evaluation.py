"""An evaluation from its beginning, or from where it was ended, to a finished run folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.model.session import ProgressCallback
from decoding.types import JSON

from ..store.folder import PARTS, SUMMARY, make_folder, read_summary, read_table, write_summary
from ..store.schema import NODES, RUNS, STEPS
from ..store.tables import SOURCE
from .parts import finished_questions, merge, remove_parts, write_part
from .plan import BASE, DEFAULT, EvaluationPlan
from .question import Answered, answer, check_engine, warm_up

# Gives the answers of questions, in any order: (plan, their numbers) -> (number, answer) pairs.
Answers = Callable[[EvaluationPlan, Sequence[int]], Iterable[tuple[int, Answered]]]
_LIGHT = "the runs were recorded without probabilities: evaluate again with --record full"
_NEED_FULL = ("p", "q", "rank", "entropy", "overlap")
_OTHERWISE = "name another folder with --out, or give the same settings to go on with this one"


def evaluate(
    plan: EvaluationPlan,
    folder: str | Path,
    answers: Answers,
    about: Mapping[str, JSON],
    progress: ProgressCallback | None = None,
) -> dict[str, JSON]:
    """Run what the folder lacks of the plan, finish the folder, and return its report.

    `about` says what the plan does not: the model and how it is held; with other values the folder is refused.
    """
    place, announce = Path(folder), progress or (lambda what, share: None)
    summary = _begin(place, plan, about)
    if not summary["finished"]:
        done = finished_questions(place)
        waiting = [number for number in range(len(plan.tasks)) if number not in done]
        clock = _TimeLeft(len(plan.tasks), len(waiting))
        announce(clock.sentence(), clock.share)
        for number, answered in answers(plan, waiting) if waiting else ():
            write_part(place, number, answered)
            clock.finished += 1
            announce(clock.sentence(), clock.share)
        merge(place)
        write_summary(place, summary | {"finished": True})
    remove_parts(place)
    return report(place)


def in_this_process(engine: Engine) -> Answers:
    """Answer one question after the other, on an engine of this process."""

    def answers(plan: EvaluationPlan, numbers: Sequence[int]) -> Iterator[tuple[int, Answered]]:
        check_engine(engine, plan)
        warm_up(engine, plan)
        for number in numbers:
            yield number, answer(engine, plan, number)

    return answers


def report(folder: Path) -> dict[str, JSON]:
    """Return the numbers of every method and setting of a finished folder, side by side."""
    steps, nodes = (pq.read_metadata(folder / f"{name}.parquet").num_rows for name in (STEPS, NODES))
    runs = (
        read_table(folder / f"{RUNS}.parquet", RUNS)
        .select(
            ["question", "turn", "method", "setting", "finish", "new_tokens", "steps", "ids"]
            + ["prefill_seconds", "decode_seconds", "tokens_per_second"]
        )
        .to_pylist()
    )
    entries = dict.fromkeys((run["method"], run["setting"]) for run in runs)
    by_entry = {entry: [run for run in runs if (run["method"], run["setting"]) == entry] for entry in entries}
    base = by_entry.get((BASE, DEFAULT), [])
    rows = [_row(method, setting, by_entry[method, setting], base) for method, setting in entries]
    return {
        "folder": str(folder),
        "questions": len({run["question"] for run in runs}),
        "runs": len(runs),
        "failed": sum(run["finish"] == "error" for run in runs),
        "steps": steps,
        "nodes": nodes,
        "rows": rows,
    }


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
            folder,
            {"source": SOURCE, "name": folder.name, "finished": False, "missing": missing, "settings": settings},
        )
    summary = read_summary(folder)
    had = summary.get("settings")
    if summary["source"] != SOURCE or not isinstance(had, dict):
        raise ParamError(f"the folder {str(folder)!r} holds no evaluation of ours: name another with --out")
    if differing := sorted(key for key in had.keys() | settings.keys() if had.get(key) != settings.get(key)):
        raise ParamError(f"the folder {str(folder)!r} was begun with other {' and '.join(differing)}: {_OTHERWISE}")
    if summary["finished"] is False and not (folder / PARTS).is_dir():
        make_folder(folder / PARTS)
    return summary


class _TimeLeft:
    """How far an evaluation is, and how long the rest will take if it goes on like this."""

    def __init__(self, questions: int, waiting: int) -> None:
        self._questions, self._waiting, self._begun = questions, waiting, time.monotonic()
        self.finished = 0  # since the beginning of this process

    @property
    def share(self) -> float:
        return 1.0 - (self._waiting - self.finished) / self._questions

    def sentence(self) -> str:
        """Describe how far it is."""
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


def _row(method: str, setting: str, runs: list[dict[str, Any]], base: list[dict[str, Any]]) -> dict[str, JSON]:
    good, usual = _good(runs), _good(base)
    shared = good.keys() & usual.keys()
    tokens, steps, speed = _sum(good.values(), "new_tokens"), _sum(good.values(), "steps"), _speed(good.values())
    alike, other = (_speed(each[key] for key in shared) for each in (good, usual))
    return {
        "method": method,
        "setting": setting,
        "runs": len(runs),
        "failed": len(runs) - len(good),
        "new_tokens": tokens,
        "steps": steps,
        "mean_acceptance_length": tokens / steps if steps else None,
        "tokens_per_second": speed,
        "speedup_vs_autoregressive": alike / other if alike and other else None,
        "prefill_seconds": _sum(good.values(), "prefill_seconds") / len(good) if good else None,
        "same_texts": sum(good[key]["ids"] == usual[key]["ids"] for key in shared) / len(shared) if shared else None,
    }


def _good(runs: Iterable[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the runs that did not fail, by question and turn."""
    return {(run["question"], run["turn"]): run for run in runs if run["finish"] != "error"}


def _speed(runs: Iterable[dict[str, Any]]) -> float | None:
    """Return tokens per second, without each run's first step."""
    timed = [run for run in runs if run["tokens_per_second"] is not None]
    seconds = _sum(timed, "decode_seconds")
    return sum(run["tokens_per_second"] * run["decode_seconds"] for run in timed) / seconds if seconds else None


def _sum(runs: Iterable[dict[str, Any]], name: str) -> Any:
    return sum(run[name] for run in runs if run[name] is not None)
