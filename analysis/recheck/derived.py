"""Checks a record against itself, without its model: the header, the end, and the summary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from decoding.errors import ParamError, TraceError
from decoding.methods import METHODS
from decoding.parts import CAPABILITIES
from decoding.sampling_params import Sampling
from decoding.trace.metrics import summarise
from decoding.types import Step, Summary, Trace

from .contradiction import Contradiction, differs, first_of, summed_up
from .derived_step import check_step
from .derived_text import check_text

_EARLY = ("cancelled", "time", "error")
_ENDS = ("length", "end_of_text", "stop", *_EARLY)


def contradictions(trace: Trace) -> list[Contradiction]:
    """List the contradictions within a record."""
    return first_of(_all(trace))


def unchecked(trace: Trace) -> Iterator[str]:
    """Say what of a record cannot be checked because it ends early, or because its method is not known."""
    if trace.summary is None:
        yield "how the run ended: the record stops before its summary"
    if trace.header.method not in METHODS:
        yield f"settings, parts and guesses of the method {trace.header.method[:40]!r}, which is none of ours"


def refuse_contradictions(trace: Trace) -> None:
    """Raise TraceError if a record contradicts itself; one that was merely cut off does not."""
    if problems := contradictions(trace):
        raise TraceError(f"the trace contradicts itself: {summed_up(problems)}")


def _all(trace: Trace) -> Iterator[Contradiction]:
    yield from _settings(trace)
    yield from _end(trace)
    for step in trace.steps:
        yield from check_step(trace, step)
    if trace.summary is not None:
        yield from _summary(trace.summary, trace.steps)
        yield from check_text(trace, trace.summary.text)


def _settings(trace: Trace) -> Iterator[Contradiction]:
    """Check the header: settings against the method, and the parts that the method needs."""
    header, method = trace.header, METHODS.get(trace.header.method)
    try:
        sampling = Sampling.parse(header.sampling)
    except ParamError as error:
        yield Contradiction(None, "sampling", f"cannot be: {error}")
        return
    written = sampling.to_json()
    if "temperature" not in header.sampling or {**written, **header.sampling} != written:
        yield Contradiction(
            None, "sampling", "must hold the temperature, and every setting as the number that a run has"
        )
    vocabulary, context = header.model.vocabulary, header.model.context
    largest = max(header.prompt, default=-1)
    if largest >= vocabulary:
        yield Contradiction(None, "prompt", f"holds token {largest}, and the model has {vocabulary}")
    if not all(0 <= token < vocabulary for token in header.end_tokens):
        yield Contradiction(None, "end_tokens", f"hold a token that is none of the model's {vocabulary}")
    if header.prefill_chunk < 1:
        yield Contradiction(None, "prefill_chunk", "is 0, with which no prompt can be read")
    if header.ranks > 1 and header.record == "full":
        yield Contradiction(None, "ranks", f"are {header.ranks}, none of which has what a full record holds")
    if header.window is None and header.slots:
        yield differs(None, "slots", header.slots, "caches without a window", 0)
    if len(header.prompt) + header.max_new_tokens > context:
        yield differs(None, "max_new_tokens", header.max_new_tokens, "prompt and context", context - len(header.prompt))
    if method is None:
        return  # a user's own
    try:
        typical = method.Params.parse(header.params).typical
    except ParamError as error:
        yield Contradiction(None, "params", f"are not those of {header.method}: {error}")
        return
    lossless = typical is None or sampling.greedy
    if header.lossless != lossless:
        yield differs(None, "lossless", header.lossless, "the settings", lossless)
    parts = sorted(method.needs - CAPABILITIES - {"draft_model"})
    if sorted(header.parts) != parts and trace.steps:
        yield Contradiction(None, "parts", f"must be those of {header.method}: {', '.join(parts) or 'none'}")
    if ("draft_model" in method.needs) != (header.draft is not None):
        needs = "has a" if "draft_model" in method.needs else "has no"
        yield Contradiction(None, "method", f"is {header.method}, which {needs} draft model")
    names = method.Panel.__annotations__.keys()
    for step in trace.steps:
        if unknown := sorted(step.panel.keys() - names):
            yield Contradiction(
                step.index, "panel", f"holds {unknown[0][:40]!r}, which {header.method} does not record"
            )
            break
        if header.method == "autoregressive" and step.drafted:
            yield differs(step.index, "drafted", step.drafted, "autoregressive steps", 0)
            break


def _end(trace: Trace) -> Iterator[Contradiction]:
    """Check where the run ended, and why."""
    header, ids, summary = trace.header, trace.ids, trace.summary
    ends, most = set(header.end_tokens), header.max_new_tokens
    place = 0
    for step in trace.steps:
        for token in step.emitted:
            place += 1
            if token in ends and place < len(ids):
                yield Contradiction(step.index, "emitted", f"goes on after token {token}, which ends the text")
                return
    if len(ids) > most:
        yield differs(None, "max_new_tokens", most, "the steps", len(ids))
    if summary is None:
        return
    finish = summary.finish
    if finish not in _ENDS:
        yield Contradiction(None, "finish", f"must be one of {', '.join(_ENDS)}")
    elif ids and ids[-1] in ends:
        if finish != "end_of_text":
            yield differs(None, "finish", finish, "the end tokens", "end_of_text")
    elif finish == "end_of_text":
        yield Contradiction(None, "finish", "is end_of_text, but the last token ends no text")
    elif finish == "length" and len(ids) < most:
        yield Contradiction(None, "finish", f"is length, but {len(ids)} of {most} tokens are written")
    elif finish == "stop" and not header.stop:
        yield Contradiction(None, "finish", "is stop, but there is no stop string")
    elif finish in _EARLY and len(ids) == most:
        yield differs(None, "finish", finish, f"all {most} tokens", "length")


def _summary(summary: Summary, steps: Sequence[Step]) -> Iterator[Contradiction]:
    recorded, derived = asdict(summary), asdict(summarise(steps, summary.finish, summary.text))
    recorded |= {f"timing.{name}": value for name, value in recorded.pop("timing").items()}
    derived |= {f"timing.{name}": value for name, value in derived.pop("timing").items()}
    for name in derived.keys() - {"bandwidth"}:
        if not _same(recorded[name], derived[name]):
            yield differs(None, f"summary.{name}", recorded[name], "the steps", derived[name])


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    return one == other
