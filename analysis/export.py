"""Exports a trace for other tools: a table of its steps, a timeline for Perfetto, vLLM's per-request metrics.

All functions are pure. Token texts are hostile: they leave this file inside JSON strings of plain ASCII only, so that
no spreadsheet takes one for a formula and no viewer for markup.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence

from decoding.trace.metrics import summarise
from decoding.types import JSON, TIME_PARTS, Step, Trace

_TIMES = (*(f"{part}_ms" for part in TIME_PARTS), "total_ms")
COLUMNS = (
    *("step", "start", "pending", "nodes", "fed", "drafted", "accepted", "written"),
    *("new_tokens", "text", "sources", *_TIMES, "seconds"),
)
_PROCESS, _STEPS, _PARTS = 1, 1, 2  # of the timeline: one process, a track for steps and one for their phases


def steps_csv(trace: Trace) -> str:
    """Write one row a step; texts and the accepted guesses' sources are JSON, `seconds` is the engine's time at its
    end.
    """
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    written, seconds = 0, 0.0
    for step in trace.steps:
        written += len(step.emitted)
        seconds += step.timing.total_ms / 1000
        counts = (step.index, step.start, step.pending, len(step.tokens), step.fed, step.drafted, step.accepted)
        sources = json.dumps(" ".join(step.sources[node] for node in step.path[1:]))
        times = [round(getattr(step.timing, name), 4) for name in _TIMES]
        table.writerow([*counts, len(step.emitted), written, _text(trace, step), sources, *times, round(seconds, 6)])
    return out.getvalue()


def perfetto(trace: Trace) -> dict[str, JSON]:
    """Write the trace-event form that Perfetto and chrome://tracing open: steps, phases in order, and counters."""
    header = trace.header
    events: list[JSON] = [
        _name("process_name", 0, f"{header.method} on {header.model.name}, {header.device} {header.dtype}"),
        _name("thread_name", _STEPS, "steps"),
        _name("thread_name", _PARTS, "phases"),
    ]
    begun, written = 0.0, 0
    for step in trace.steps:
        length = step.timing.total_ms * 1000
        written += len(step.emitted)
        label = f"step {step.index}" if step.index else "step 0, reads the prompt"
        details = {"accepted": step.accepted, "drafted": step.drafted, "fed": step.fed, "text": _text(trace, step)}
        events.append(_block(label, _STEPS, begun, length, details))
        at = begun
        for phase in TIME_PARTS[:-1]:
            part = getattr(step.timing, f"{phase}_ms") * 1000
            events.append(_block(phase, _PARTS, at, part, {"step": step.index}))
            at += part
        events.append(_count("tokens of the step", begun, {"tokens": len(step.emitted)}))
        events.append(_count("fed rows", begun, {"rows": step.fed}))
        begun += length
        events.append(_count("tokens written", begun, {"tokens": written}))
    about = {"method": header.method, "params": json.dumps(dict(header.params)), "model": header.model.name}
    return {"displayTimeUnit": "ms", "otherData": about, "traceEvents": events}


def vllm(trace: Trace) -> dict[str, JSON]:
    """Write vLLM's answer to a request with per-request metrics, their speculative part "detailed".

    As there, a step without a guess is no speculative step, and a tree's draft length is the number of its guesses.
    Token ids are where `return_token_ids` puts them; what vLLM has no field for is in `specscope`.
    """
    header, summary = trace.header, trace.summary or summarise(trace.steps, "cancelled", "")
    tokens, first, later = summary.new_tokens, summary.prefill_seconds, summary.decode_seconds
    seconds, gaps = first + later, tokens - 1
    return {
        "object": "text_completion",
        "model": header.model.name,
        "choices": [
            {
                "index": 0,
                "finish_reason": _finish(summary.finish),
                "text": summary.text,
                "prompt_token_ids": list(header.prompt),
                "token_ids": list(trace.ids),
            }
        ],
        "usage": {
            "prompt_tokens": len(header.prompt),
            "completion_tokens": tokens,
            "total_tokens": len(header.prompt) + tokens,
        },
        "metrics": {
            "time_to_first_token_ms": _rounded(first * 1000) if trace.steps else None,
            "generation_time_ms": _rounded(later * 1000) if trace.steps else None,
            "queue_time_ms": None,  # the record knows the engine's time only
            "mean_itl_ms": _rounded(later * 1000 / gaps) if gaps > 0 else None,
            "tokens_per_second": _rounded(tokens / seconds) if seconds > 0 else None,
            "speculative_decoding": _speculative(trace.steps) if header.method != "autoregressive" else None,
        },
        "specscope": {
            "method": header.method,
            "params": dict(header.params),
            "sampling": dict(header.sampling),
            "draft": header.draft.name if header.draft else None,
            "written": [len(step.emitted) for step in trace.steps],
            "spec_steps": [step.index for step in trace.steps if step.drafted],
        },
    }


def _speculative(steps: Sequence[Step]) -> dict[str, JSON]:
    outcomes = [(step.drafted, step.accepted) for step in steps if step.drafted]
    drafted, accepted = sum(k for k, _ in outcomes), sum(j for _, j in outcomes)
    longest = max((k for k, _ in outcomes), default=0)
    return {
        "mean_acceptance_length": 1 + accepted / len(outcomes) if outcomes else 1.0,
        "draft_acceptance_rate": accepted / drafted if drafted else 0.0,
        "acceptance_histogram": _histogram([j for _, j in outcomes], longest),
        "acceptance_histogram_by_draft_length": {
            str(length): _histogram([j for k, j in outcomes if k == length], length)
            for length in sorted({k for k, _ in outcomes})
        },
        "num_spec_steps": len(outcomes),
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": drafted,
        "num_spec_tokens": longest,
        "per_step_accepted": [j for _, j in outcomes],
        "per_step_drafted": [k for k, _ in outcomes],
    }


def _histogram(accepted: Sequence[int], most: int) -> list[int]:
    counts = Counter(accepted)
    return [counts[j] for j in range(most + 1)]


def _finish(finish: str) -> str:
    """Return vLLM's word for why a text ended."""
    return {"length": "length", "end_of_text": "stop", "stop": "stop"}.get(finish, "abort")


def _text(trace: Trace, step: Step) -> str:
    return json.dumps("".join(trace.texts.get(token, f"<{token}>") for token in step.emitted))


def _rounded(value: float) -> float:
    return round(value, 4)


def _name(kind: str, track: int, name: str) -> dict[str, JSON]:
    return {"ph": "M", "pid": _PROCESS, "tid": track, "ts": 0, "name": kind, "args": {"name": name}}


def _block(name: str, track: int, begun: float, length: float, details: dict[str, JSON]) -> dict[str, JSON]:
    place = {"pid": _PROCESS, "tid": track, "ts": round(begun, 3), "dur": round(length, 3)}
    return {"ph": "X", "cat": "decoding", "name": name, **place, "args": details}


def _count(name: str, at: float, values: dict[str, JSON]) -> dict[str, JSON]:
    return {"ph": "C", "pid": _PROCESS, "ts": round(at, 3), "name": name, "args": values}
