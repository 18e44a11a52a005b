"""AIPerf's `profile_export.jsonl`, exported at the level "records": one line a request.

Names as in AIPerf's docs/tutorials/spec-decode-metrics.md, its SpecDecodeAcceptanceRecord, and the metrics and
metadata of docs/tutorials/working-with-profile-exports.md.
"""

from __future__ import annotations

from .acceptance import from_vllm
from .cuts import TokenCount, add_steps
from .fields import Fields
from .records import Contents
from .tables import Imported, ImportedRows, speed

NAME, TITLE = "aiperf", "AIPerf's export"
NO_STEPS = (
    "some of these requests have no spec_decode_acceptance: the server must report it, and --export-level records"
)
_METADATA = ("benchmark_phase", "session_num", "x_request_id", "conversation_id", "request_start_ns")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}


def recognises(first: Fields) -> bool:
    """Return True if this is a request's record."""
    ours = any(each.spells(*_METADATA) for each in first.seen("metadata"))
    return ours and "metrics" in first and "choices" not in first


def read(contents: Contents) -> Imported:
    """Read a run from each request; those of the warm-up are left out."""
    tables = ImportedRows()
    for fields in contents.records():
        metadata = fields.at("metadata") or Fields({}, fields.where)
        if metadata.text("benchmark_phase") != "warmup":
            _add(tables, fields, metadata)
    return tables.finished(contents.name, NAME, TITLE, format=NAME)


def _add(tables: ImportedRows, fields: Fields, metadata: Fields) -> None:
    metrics, spec, error = fields.inside("metrics"), fields.at("spec_decode_acceptance"), fields.at("error")
    prompt = _count(metrics, "input_sequence_length")
    # The engine's own count comes first: AIPerf's is that of a tokenizer on the client.
    if spec and "completion_tokens" in spec:
        counted = TokenCount(spec, "completion_tokens")
    else:
        counted = TokenCount(metrics.at("output_sequence_length") or Fields({}, fields.where), "value")
    tokens = counted.fields.maybe_count(counted.name)
    first, whole = _seconds(metrics, "time_to_first_token"), _seconds(metrics, "request_latency")
    later = None if first is None or whole is None else max(0.0, whole - first)
    turn = metadata.maybe_count("turn_index")
    run = tables.add_run(
        fields.where,
        question=metadata.label("conversation_id") or metadata.label("x_request_id") or str(len(tables)),
        turn=1 if turn is None else turn + 1,
        method="speculative",
        engine=(spec.text("engine") if spec else None) or "unknown",
        finish="error" if error else None,
        error=error.text("message") if error else None,
        prompt_tokens=prompt,
        new_tokens=tokens,
        **speed(tokens, first, later),
    )
    if spec is None:
        tables.missing["steps"] = NO_STEPS
        return
    acceptance = from_vllm(spec)
    if tokens is None:
        tables.missing["steps.start"] = "the record does not count the tokens"
        tables.add_steps(spec.where, run, acceptance.accepted, drafts=acceptance.drafts, drafted=acceptance.drafted)
        return
    add_steps(tables, counted, run, acceptance, tokens, prompt)


def _count(metrics: Fields, name: str) -> int | None:
    metric = metrics.at(name)
    return metric.count("value") if metric else None


def _seconds(metrics: Fields, name: str) -> float | None:
    metric = metrics.at(name)
    if metric is None:
        return None
    unit = metric.text("unit") or "ms"
    if unit not in _UNITS:
        metric.refuse("unit", f"must be one of {', '.join(_UNITS)}, not {unit[:40]!r}")
    return metric.number("value") * _UNITS[unit]
