"""Runs a recorded run again with its own settings, and compares step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.model.session import ProgressCallback
from decoding.request import build_request
from decoding.run import Run
from decoding.types import Step, Trace

from .contradiction import Contradiction, first_of
from .derived_step import ROUNDED

_OURS = ("timing", "exchanged")  # of this machine
_TREE = ("start", "pending", "tokens", "parents", "roles", "sources", "path", "emitted", "accepted", "drafted")
_SLACK = 1e-4  # of a probability, relative: between step shapes and machines


def run_again(
    engine: Engine, trace: Trace, progress: ProgressCallback | None = None
) -> tuple[list[Contradiction], str | None]:
    """Return where a run with the record's settings differs, or why that says nothing about the record.

    ParamError if this engine cannot run it.
    """
    memory = dict[str, Any]()
    header = trace.header
    if header.method not in METHODS:
        raise ParamError(f"the method {header.method[:40]!r} is none of ours, so the run cannot be repeated")
    if header.ranks > 1:
        raise ParamError(f"{header.ranks} processes read this run's trees, so one cannot repeat it")
    _check_drafter(engine, trace)
    options: dict[str, Any] = {"stop": header.stop, "end_tokens": header.end_tokens, "record": header.record}
    options |= {"reference": header.reference or None, "prefill_chunk": header.prefill_chunk, "memory": memory}
    request = build_request(
        engine,
        header.prompt,
        header.method,
        header.params,
        header.sampling,
        header.max_new_tokens,
        options,  # type: ignore[arg-type]
    )
    for name, part in request.parts.items():
        if header.parts.get(name) != part.about:
            raise ParamError(f"the run's {name} is {header.parts.get(name, '')[:80]!r}: name it with --{name}")
    run = Run(replace(request, branch=header.branch), engine)
    problems = first_of(_compared(run, trace, progress))
    if problems and any(memory.values()):
        return [], "the drafts: this method remembers earlier runs, which the record does not hold"
    return problems, None


def _check_drafter(engine: Engine, trace: Trace) -> None:
    recorded, ours = trace.header.draft, engine.draft
    if recorded is not None and (ours is None or ours.card.hash != recorded.hash):
        raise ParamError(f"the run's drafter is {recorded.name[:80]!r}: name it with --draft")


def _compared(run: Run, trace: Trace, progress: ProgressCallback | None) -> Iterator[Contradiction]:
    count = len(trace.steps)
    for recorded in trace.steps:
        step = next(run, None)
        if step is None:
            yield Contradiction(recorded.index, "step", "is taken, but the run ends before it when it is run again")
            return
        if progress is not None:
            progress("running again", (step.index + 1) / count)
        other = False
        for name in (field.name for field in fields(Step)):
            why = None if name in _OURS else _difference(getattr(recorded, name), getattr(step, name))
            if why is not None:
                yield Contradiction(recorded.index, f"{name}{why}", "differs from the step when it is run again")
                other |= name in _TREE
        if other:
            run.close()
            return  # from here on the runs go different ways
    summary = trace.summary
    if summary is None or summary.finish in ("cancelled", "time", "error"):
        run.close()
    elif next(run, None) is not None:
        run.close()
        yield Contradiction(count - 1, "step", "is the last one, but the run goes on when it is run again")
    elif run.finish != summary.finish:
        yield Contradiction(None, "finish", f"is {summary.finish}, but {run.finish} when it is run again")


def _difference(recorded: Any, ours: Any) -> str | None:
    """Return the path to the first difference inside two values, "" if they are no lists; None if they agree."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        if recorded.keys() != ours.keys():
            return ""
        inner = ((f"[{name!r}]", _difference(recorded[name], ours[name])) for name in ours)
        return next((place + why for place, why in inner if why is not None), None)
    if isinstance(recorded, list | tuple) and isinstance(ours, list | tuple):
        return _of_lists(recorded, ours)
    if isinstance(recorded, float) and isinstance(ours, float):
        return None if math.isclose(recorded, ours, rel_tol=_SLACK, abs_tol=2 * ROUNDED) else ""
    return None if recorded == ours else ""


def _of_lists(recorded: Sequence[Any], ours: Sequence[Any]) -> str | None:
    if len(recorded) != len(ours):
        return ""
    inner = enumerate(map(_difference, recorded, ours))
    return next((f"[{place}]{why}" for place, why in inner if why is not None), None)
