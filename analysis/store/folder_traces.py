"""Returns the trace of one run of a run folder: its own file, or one that is rebuilt from the tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isclose
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoding.errors import TraceError
from decoding.trace.file import parse_trace
from decoding.trace.json_line import show
from decoding.trace.lines import Limits
from decoding.trace.metrics import summarise
from decoding.types import Header, ModelCard, Role, Step, Timing, Trace

from .folder import RunFolder
from .schema import NODES, RUNS, STEPS
from .tables import SOURCE, RunIdentity, tables_of

if TYPE_CHECKING:
    from decoding.codec import Codec

_FILE = re.compile(r"traces/[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}\.jsonl(\.gz)?")
_ROLES = {"root": Role.ROOT, "verify": Role.VERIFY, "explore": Role.EXPLORE}
# Columns of runs that tell which run of an evaluation it is, and not what its trace holds.
_IDENTITY = {"question", "category", "turn", "setting", "engine", "reconstructed", "error", "trace", "prompt"}
_JSON = {"params", "sampling"}
_ROUNDED = 1e-3  # of times, and of rates of them, which a trace rounds
_UNKNOWN = 0  # a choice that no table has: the node has no child that would ask for it


class _LackingError(Exception):
    """What of a run the tables do not hold."""


def trace_of(folder: RunFolder, run: int, most_bytes: int, limits: Limits) -> tuple[Trace, bool]:
    """Return a run's trace, and whether it has its own file; raise TraceError if the tables lack too much."""
    row = _run_of(folder, run)
    if (named := row["trace"]) and _FILE.fullmatch(named):
        file = folder.path / named
        if file.is_file() and not file.is_symlink() and file.stat().st_size <= most_bytes:
            return parse_trace(file.read_bytes(), limits=limits, allow_partial=True), True
    try:
        return _rebuilt(folder, row), False
    except _LackingError as what:
        raise TraceError(f"this run has no trace, and its tables do not hold {what}{_way(row)}") from None


def refuse_differences(trace: Trace, folder: RunFolder, run: int) -> None:
    """Raise TraceError if a run's own trace differs from the folder's tables."""
    if difference := next(_differences(trace, folder, _run_of(folder, run)), None):
        raise TraceError(f"the run's trace and the folder's tables disagree: {difference}")


def _run_of(folder: RunFolder, run: int) -> dict[str, Any]:
    place = int(np.searchsorted(folder.runs["run"].to_numpy(), run))
    if place >= len(folder.runs) or folder.runs["run"][place].as_py() != run:
        raise TraceError("there is no such run in this folder")
    row: dict[str, Any] = folder.runs.slice(place, 1).to_pylist()[0]
    return row


def _differences(trace: Trace, folder: RunFolder, run: dict[str, Any]) -> Iterator[str]:
    """Yield the differences between the tables and a run's own trace, up to where a cut trace ends."""
    identity = RunIdentity(run=run["run"], error=run["error"])
    made = dict(zip((RUNS, STEPS, NODES), tables_of(trace, identity), strict=True))
    whole = trace.summary is not None
    for name, have in (
        (RUNS, [run]),
        (STEPS, _rows_of(folder.steps, run["run"])),
        (NODES, _rows_of(folder.nodes, run["run"])),
    ):
        rows = made[name].to_pylist()
        if name == RUNS and not whole:
            continue
        for row, theirs in zip(rows, have, strict=False):
            place = "".join(f"{key} {row[key]}, " for key in ("step", "node") if key in row)
            for column in row:
                if name == RUNS and column in _IDENTITY:
                    continue
                if theirs[column] is not None and not _agree(column, row[column], theirs[column]):
                    yield f"{place}{column} is {show(row[column])} in the trace and {show(theirs[column])} in {name}"
        if len(rows) > len(have) or (whole and len(rows) < len(have) and have):
            yield f"the trace makes {len(rows):,} rows of {name}, which has {len(have):,}"


def _agree(column: str, one: Any, other: Any) -> bool:
    if column in _JSON:
        return bool(json.loads(one) == json.loads(other))
    if isinstance(one, float) or isinstance(other, float):
        timed = column.endswith(("_ms", "seconds", "per_second"))
        return one is not None and isclose(one, other, rel_tol=1e-5, abs_tol=_ROUNDED if timed else 2e-6)
    return bool(one == other)


def with_texts(trace: Trace, codec_of: Callable[[Header], Codec | None]) -> Trace:
    """Add the texts of prompt tokens that the tables lack, as the model's tokenizer spells them.

    A tokenizer that spells a known token otherwise is that of another model with the same name.
    """
    lacking = set(trace.header.prompt) - trace.texts.keys()
    codec = codec_of(trace.header) if lacking else None
    if codec is None or any(codec.piece(token) != text for token, text in trace.texts.items()):
        return trace
    return replace(trace, texts={**trace.texts, **{token: codec.piece(token) for token in lacking}})


def _way(run: dict[str, Any]) -> str:
    """Describe how the run can be played anyway, if it can."""
    if run["engine"] == SOURCE:
        return ": evaluate with --traces to play it"
    if run["prompt_ids"] and run["ids"]:
        return ": import the record with --restore to play it"
    return ", nor did the record that they were made of"


def _rebuilt(folder: RunFolder, run: dict[str, Any]) -> Trace:
    """Build a trace from the tables: without the method's own view, and without the best alternatives."""
    for name, what in (("prompt_ids", "the prompt's tokens"), ("ids", "the new tokens")):
        if not run[name]:
            raise _LackingError(what)
    rows = {name: _rows_of(table, run["run"]) for name, table in (("steps", folder.steps), ("nodes", folder.nodes))}
    if not rows["nodes"]:
        raise _LackingError("its guesses one by one")
    nodes: dict[int, list[dict[str, Any]]] = {}
    for row in rows["nodes"]:
        nodes.setdefault(row["step"], []).append(row)
    texts, steps = dict[int, str](), list[Step]()
    ids, committed = list(run["ids"]), len(run["prompt_ids"])
    for index, row in enumerate(rows["steps"]):
        done = committed - len(run["prompt_ids"])
        emitted = tuple(ids[done : done + row["written"]])
        if row["step"] != index or len(emitted) != row["written"] or not nodes.get(index):
            raise _LackingError("all of its steps in order")
        steps.append(_step(row, nodes[index], emitted, committed, texts))
        committed += row["written"]
    texts = _texts(folder, run, set(run["prompt_ids"]) - texts.keys()) | texts
    return Trace(
        _header(run, committed), tuple(steps), summarise(steps, run["finish"] or "length", run["text"] or ""), texts
    )


def _rows_of(table: Any, run: int) -> list[dict[str, Any]]:
    first, last = np.searchsorted(table["run"].to_numpy(), [run, run + 1])
    rows: list[dict[str, Any]] = table.slice(int(first), int(last - first)).to_pylist()
    return rows


def _texts(folder: RunFolder, run: dict[str, Any], tokens: set[int]) -> dict[int, str]:
    """Collect texts of a prompt's tokens from the guesses of all runs of the same model."""
    runs, nodes = folder.runs, folder.nodes
    same = runs["run"].filter(pc.equal(runs["model"], run["model"])) if run["model"] else pa.array([run["run"]])
    wanted = pa.array(sorted(tokens), pa.int64())
    texts = dict[int, str]()
    for token, text in (("token", "text"), ("wanted", "wanted_text")):
        rows = pc.and_(pc.is_in(nodes[token], value_set=wanted), pc.is_in(nodes["run"], value_set=same))
        spelt = nodes.select([token, text]).filter(rows).drop_null()
        for each in spelt.group_by(token).aggregate([(text, "min")]).to_pylist():
            texts.setdefault(each[token], each[f"{text}_min"])
    return texts


def _step(
    row: dict[str, Any], nodes: list[dict[str, Any]], emitted: tuple[int, ...], start: int, texts: dict[int, str]
) -> Step:
    places = {node["node"]: place for place, node in enumerate(nodes)}
    choices, path = [_UNKNOWN] * len(nodes), [0]
    for place, node in enumerate(nodes):
        for token, text in ((node["token"], node["text"]), (node["wanted"], node["wanted_text"])):
            if token is not None and text is not None:
                texts.setdefault(token, text)
        if node["token"] is None or (node["parent"] >= 0 and node["parent"] not in places):
            raise _LackingError("the tokens of its guesses")
        if node["parent"] >= 0 and node["wanted"] is not None:
            choices[places[node["parent"]]] = node["wanted"]
        if node["accepted"] and node["role"] == "verify":
            path.append(place)
    for place, token in zip(path, emitted, strict=False):
        choices[place] = token
    names = [f"{node['source']}:{node['detail']}" if node["detail"] else node["source"] for node in nodes]
    timing = {f"{phase}_ms": row[f"{phase}_ms"] or 0.0 for phase in ("draft", "forward", "accept", "commit", "total")}
    drafted = sum(node["role"] == "verify" for node in nodes)
    detailed = any(node["p"] is not None for node in nodes)
    return Step(
        index=row["step"],
        start=start,
        pending=max(0, (row["fed"] or len(nodes)) - len(nodes)),
        emitted=emitted,
        accepted=row["accepted"],
        drafted=drafted,
        fed=row["fed"] or len(nodes),
        timing=Timing(**timing),
        tokens=tuple(node["token"] for node in nodes),
        parents=tuple(places.get(node["parent"], -1) for node in nodes),
        roles=tuple(_ROLES[node["role"]] for node in nodes),
        sources=tuple(names),
        path=tuple(path),
        choices=tuple(choices),
        p=tuple(node["p"] for node in nodes) if detailed else (),
        q=tuple(node["q"] for node in nodes) if detailed else (),
        experts=row["experts"],
    )


def _header(run: dict[str, Any], length: int) -> Header:
    tokens = [*run["prompt_ids"], *run["ids"]]
    card = ModelCard(run["model"] or "a model", "", "", 0, max(tokens) + 1, length + 1, experts=run["experts"])
    sampling = json.loads(run["sampling"]) if run["sampling"] else {}
    return Header(
        method=run["method"],
        params=json.loads(run["params"]) if run["params"] else {},
        sampling=sampling,
        prompt=tuple(run["prompt_ids"]),
        max_new_tokens=max(1, len(run["ids"])),
        stop=(),
        end_tokens=(),
        reference=(),
        prefill_chunk=512,
        model=card,
        draft=None,
        device=run["device"] or "unknown",
        dtype=run["dtype"] or "unknown",
        attention=run["attention"] or "unknown",
        record="light",
        versions={},
        lossless=run["lossless"] is not False,
    )
