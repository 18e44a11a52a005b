"""Runs one question of an evaluation: every turn with every entry, in turn, so that all have the same conditions."""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from decoding.engine import Engine
from decoding.errors import ParamError, SpecscopeError
from decoding.run import Run
from decoding.trace import write_trace
from decoding.types import Trace

from ..bench.methods import as_prompt
from ..store.folder import TRACES
from ..store.tables import RunIdentity, RunTables, failed, joined, tables_of
from .plan import EvaluationPlan, MethodSetting

_WARM_UP = 16  # tokens of each entry's first, unrecorded run


class Answered(NamedTuple):
    """A question's rows, its runs numbered from 0, and its traces as files by their names."""

    tables: RunTables
    traces: Mapping[str, bytes]


def check_engine(engine: Engine, plan: EvaluationPlan) -> None:
    """Raise ParamError if the engine lacks what a method needs."""
    for method in dict.fromkeys(entry.method for entry in plan.entries):
        if missing := engine.lacks(method):
            raise ParamError(f"{method} needs {missing}")


def warm_up(engine: Engine, plan: EvaluationPlan) -> None:
    """Make every method's parts, and run each for a few tokens, since a first run also pays for one-time work."""
    try:
        ids = engine.encode(as_prompt(engine, [("user", plan.tasks[0].turns[0])]))
        budget = min(_WARM_UP, plan.max_new_tokens)
        for entry in plan.entries:
            engine.generate(ids, entry.method, entry.params, plan.sampling, budget, record=plan.record, memory={})
    except Exception:  # an error occurs again in the question's own run, which records it
        return


def answer_question(engine: Engine, plan: EvaluationPlan, number: int) -> Answered:
    """Run the question of this number; a run that fails has a row with its error, and the others go on.

    What a method learns from one run for the next lasts for the turns of this question: so the outcome depends neither
    on the questions before it nor on the process that they ran in.
    """
    task, chat = plan.tasks[number], list[tuple[str, str]]()
    memories: list[dict[str, Any]] = [{} for _ in plan.entries]
    rows, traces = list[RunTables](), dict[str, bytes]()
    for turn, text in enumerate(task.turns, start=1):
        chat.append(("user", text))
        first: Trace | None = None
        prompt = _encoded(engine, chat)
        for entry, memory in zip(plan.entries, memories, strict=True):
            place = RunIdentity(len(rows), str(task.id), task.category, turn, entry.method, entry.setting, text)
            if isinstance(prompt, str):
                rows.append(failed(replace(place, error=prompt), entry.params, plan.sampling))
                continue
            trace, error = _run(engine, plan, entry, prompt, memory)
            place = replace(place, error=error)
            if trace is None:
                rows.append(failed(place, entry.params, plan.sampling))
                continue
            if plan.traces:
                name = f"{TRACES}/{number:05}-{turn}-{entry.method}-{entry.setting}.jsonl.gz"
                place, traces[name] = replace(place, trace=name), _packed(trace)
            rows.append(tables_of(trace, place))
            if entry is plan.entries[0] and error is None:
                first = trace
        if first is None:
            break  # without an answer there is no conversation that a later turn could go on with
        chat.append(("assistant", engine.codec.continuation(first.header.prompt, first.ids)))
    return Answered(joined(rows), traces)


def _encoded(engine: Engine, chat: Sequence[tuple[str, str]]) -> list[int] | str:
    """Encode a prompt; return the error's sentence if that fails."""
    try:
        return engine.encode(as_prompt(engine, chat))
    except Exception as error:
        return _sentence(error)


def _run(
    engine: Engine, plan: EvaluationPlan, entry: MethodSetting, prompt: Sequence[int], memory: dict[str, Any]
) -> tuple[Trace | None, str | None]:
    """Run an entry; return what was recorded, and the sentence of an error of any kind, also of a user's own method."""
    run: Run | None = None
    try:
        run = engine.decode(
            prompt, entry.method, entry.params, plan.sampling, plan.max_new_tokens, record=plan.record, memory=memory
        )
        for _ in run:
            pass
    except Exception as error:
        return None if run is None else run.trace, _sentence(error)
    return run.trace, None


def _sentence(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    return lines[0][:300] if isinstance(error, SpecscopeError) else f"{type(error).__name__}: {lines[0][:300]}"


def _packed(trace: Trace) -> bytes:
    text = io.StringIO()
    write_trace(trace, text)
    return gzip.compress(text.getvalue().encode("ascii"), mtime=0)
