"""Restores the rejected guesses of imported runs: drafts again wherever a recorded step began.

Greedy text does not depend on the drafter. So the recorded tokens are kept, and cut where the record says that a step
ended. At every cut the method drafts again, in the state that it had there. If it gets more or fewer tokens right than
the record says, the drafter is another one than recorded, or one of the two is wired wrongly: that is a finding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.trace.metrics import summarise
from decoding.types import JSON, Trace

from ..imports.cuts import UNORDERED
from ..imports.tables import Imported, lacking
from ..store.folder import as_table
from ..store.schema import NODES, RUNS, STEPS
from ..store.tables import RunIdentity, RunTables, joined, tables_of
from .restoring_loop import Comparison, Cuts, Sessions

_SPARE = 256  # tokens of budget after a text that did not end at its budget, so that drafts have their full length
_LISTED = 1000  # findings that a summary lists
_RECORDED = ("run", "step", "start", "drafted", "accepted", "written", "total_ms")
# Columns of a run that stay as recorded, even null: drafting again would fill in those of another machine.
_THEIRS = (
    *("trace", "model", "device", "dtype", "attention", "experts", "lossless", "fed"),
    *("prefill_seconds", "decode_seconds", "tokens_per_second"),
)
_OURS = ("method", "params", "sampling", "steps", "drafted", "accepted", "mean_acceptance_length", "reconstructed")


def restore(
    imported: Imported,
    engine: Engine,
    method: str | None = None,
    params: Mapping[str, JSON] | None = None,
    progress: Callable[[str, float], None] = lambda what, share: None,
) -> Imported:
    """Return the same runs with guesses drafted by `method`, by default the record's own.

    ParamError if a run was sampled, or lacks its tokens or its steps. What disagrees is in the summary.
    """
    if UNORDERED in imported.summary["missing"].values():
        raise ParamError(f"these records cannot be restored: {UNORDERED}, so their cuts are unknown")
    recorded = imported.steps.select(_RECORDED).to_pylist()
    by_run: dict[int, list[dict[str, Any]]] = {}
    for step in recorded:
        by_run.setdefault(step["run"], []).append(step)
    rows, made, comparisons = imported.runs.to_pylist(), list[RunTables](), list[Comparison]()
    for number, row in enumerate(rows):
        progress("drafting again", number / len(rows))
        settings = params
        if method is None and params is None and row["params"]:
            settings = json.loads(row["params"])
        tables, comparison = _restored(engine, row, by_run.get(row["run"], []), method or row["method"], settings)
        made.append(tables)
        comparisons.append(comparison)
    whole = joined(made)
    runs = as_table([_merged(row, ours) for row, ours in zip(rows, whole.runs.to_pylist(), strict=True)], RUNS)
    steps = as_table(_with_their_times(whole.steps.to_pylist(), by_run), STEPS)
    named = {RUNS: runs, STEPS: steps, NODES: whole.nodes}
    missing = lacking(runs, steps, whole.nodes, "the engine")
    theirs = imported.summary["missing"].items()
    missing |= {key: why for key, why in theirs if not key.startswith(f"{NODES}.") and _is_missing(key, named)}
    report = _report(engine, comparisons, ", ".join(dict.fromkeys(runs["method"].to_pylist())))
    return Imported(runs, steps, whole.nodes, imported.summary | {"missing": missing, "restored": report})


def _restored(
    engine: Engine,
    row: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    method: str,
    params: Mapping[str, JSON] | None,
) -> tuple[RunTables, Comparison]:
    """Draft one run again, given by its rows."""
    _check(engine, row, steps)
    ids, prompt = row["ids"], row["prompt_ids"]
    room = engine.model.card.context - len(prompt)
    budget = len(ids) if row["finish"] == "length" else max(len(ids), min(len(ids) + _SPARE, room))
    run = engine.decode(prompt, method, params, {"temperature": 0}, budget, record="full", memory={})
    with Sessions(engine, run.request) as loop:
        loop.ids = ids
        comparison = loop.compare(row["run"], Cuts(row, steps))
    text = engine.codec.continuation(prompt, ids)
    texts = {
        token: engine.codec.piece(token) for token in sorted({*prompt}.union(*(step.used for step in comparison.steps)))
    }
    trace = Trace(
        run.header, tuple(comparison.steps), summarise(comparison.steps, row["finish"] or "length", text), texts
    )
    place = RunIdentity(row["run"], row["question"], row["category"], row["turn"], reconstructed=True)
    return tables_of(trace, place), comparison


def _check(engine: Engine, row: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> None:
    """Raise ParamError if a run cannot be drafted again."""
    where = f"run {row['run']} cannot be restored: "
    if not row["ids"] or not row["prompt_ids"]:
        raise ParamError(f"{where}the record lacks its tokens, which vLLM and SGLang give on request")
    if not steps:
        raise ParamError(f"{where}the record does not say how many guesses each of its steps accepted")
    if row["sampling"] and json.loads(row["sampling"]).get("temperature", 0) != 0:
        raise ParamError(f"{where}it was sampled, and only greedy text stays the same whatever is drafted")
    card, largest = engine.model.card, max(*row["ids"], *row["prompt_ids"])
    if largest >= card.vocabulary:
        raise ParamError(f"{where}it holds token {largest}, and {card.name} has {card.vocabulary}: load its own model")


def _merged(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's recorded row with what drafting again has added."""
    filled = {name: ours[name] if value is None and name not in _THEIRS else value for name, value in theirs.items()}
    return filled | {name: ours[name] for name in _OURS}


def _with_their_times(
    steps: list[dict[str, Any]], recorded: Mapping[int, Sequence[Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Replace the times of restored steps by recorded ones where the steps are the same, else by null."""
    counts: dict[int, int] = {}
    for row in steps:
        counts[row["run"]] = counts.get(row["run"], 0) + 1
    for row in steps:
        theirs = recorded.get(row["run"], ())
        row.update({name: None for name in row if name.endswith("_ms") or name in ("fed", "experts")})
        if len(theirs) == counts[row["run"]]:
            row["total_ms"] = theirs[row["step"]]["total_ms"]
    return steps


def _is_missing(key: str, tables: Mapping[str, pa.Table]) -> bool:
    """Return whether a reason is about something that is still missing."""
    table, _, column = key.partition(".")
    if table not in tables or column not in tables[table].column_names:
        return True
    rows = tables[table][column]
    return bool(rows.null_count == len(rows))


def _report(engine: Engine, comparisons: Sequence[Comparison], method: str) -> dict[str, JSON]:
    """Describe the restored guesses for the summary."""
    findings = [each for made in comparisons for each in made.findings]
    steps, lengths = sum(made.compared for made in comparisons), sum(made.other_lengths for made in comparisons)
    others, left = sum(made.other_choices for made in comparisons), sum(made.left for made in comparisons)
    sentence = f"Of {steps} steps with guesses, {steps - len(findings)} accept as many as recorded"
    if findings:
        first = findings[0]
        sentence += f" and {len(findings)} do not, the first being step {first.step} of run {first.run}, "
        sentence += f"which accepted {first.recorded} and now {first.accepted}"
    if lengths:
        sentence += f"; {lengths} have another number of guesses than recorded"
    if left:
        sentence += f"; for {left} steps of the record no text was left"
    if others:
        sentence += f"; this target would have chosen {others} of the tokens otherwise: is it the same model?"
    return {
        "method": method,
        "model": engine.model.card.name,
        "steps": steps,
        "disagreements": len(findings),
        "other_lengths": lengths,
        "other_choices": others,
        "left": left,
        "sentence": sentence.rstrip("?.") + ("?" if others else "."),
        "findings": [each.to_json() for each in findings[:_LISTED]],
    }
