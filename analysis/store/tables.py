"""Makes the rows of the three tables from a trace."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from decoding.trace.metrics import summarise
from decoding.tree import depths
from decoding.types import JSON, TIME_PARTS, Role, Step, Trace

from .schema import NODES, NODES_SCHEMA, RUNS, RUNS_SCHEMA, STEPS, STEPS_SCHEMA

SOURCE = "specscope"
_TIMES = (*(f"{part}_ms" for part in TIME_PARTS), "total_ms")
# Lists of a panel with a probability for every guess. In a chain it is that of the drafter's likeliest token, which is
# the guess itself where nothing is drawn; a tree's guesses are taken by rank, and each has its own.
_CONFIDENCES = ("chances", "confidence")
_RANKED = ("branch", "place")
_ROLES = {role: role.name.lower() for role in Role}


class RunTables(NamedTuple):
    """Rows of the three tables that belong together."""

    runs: pa.Table
    steps: pa.Table
    nodes: pa.Table


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Which run of an evaluation it is."""

    run: int = 0
    question: str = ""
    category: str = ""
    turn: int = 1
    method: str | None = None  # None: the trace's
    setting: str = "default"
    prompt: str | None = None  # as it was asked; None: what the trace's tokens spell
    reconstructed: bool = False
    error: str | None = None
    trace: str | None = None  # its file, relative to the folder


def tables_of(trace: Trace, place: RunIdentity | None = None) -> RunTables:
    """Make a run's rows."""
    place = place or RunIdentity()
    steps: dict[str, list[Any]] = {name: [] for name in STEPS_SCHEMA.names}
    nodes: dict[str, list[Any]] = {name: [] for name in NODES_SCHEMA.names}
    texts = {token: _writable(text) for token, text in trace.texts.items()}
    greedy = trace.header.sampling.get("temperature") == 0
    for step in trace.steps:
        _add_step(steps, place.run, step, texts)
        _add_nodes(nodes, place.run, step, texts, greedy)
    return RunTables(
        pa.Table.from_pylist([_run(trace, place, texts)], schema=RUNS_SCHEMA),
        pa.table(steps, schema=STEPS_SCHEMA),
        pa.table(nodes, schema=NODES_SCHEMA),
    )


def failed(place: RunIdentity, params: Mapping[str, JSON], sampling: Mapping[str, JSON]) -> RunTables:
    """Make the rows of a run that could not begin."""
    row = _place(place) | {"method": place.method, "finish": "error", "prompt": _optional(place.prompt)}
    row |= {"params": json.dumps(dict(params)), "sampling": json.dumps(dict(sampling))}
    return RunTables(
        pa.Table.from_pylist([row], schema=RUNS_SCHEMA), STEPS_SCHEMA.empty_table(), NODES_SCHEMA.empty_table()
    )


def joined(tables: Iterable[RunTables]) -> RunTables:
    """Join the rows of several runs, as one chunk each."""
    columns = [*zip(*tables, strict=True)] or [(), (), ()]
    schemas = (RUNS_SCHEMA, STEPS_SCHEMA, NODES_SCHEMA)
    pairs = zip(schemas, columns, strict=True)
    return RunTables(*(pa.concat_tables([schema.empty_table(), *each]).combine_chunks() for schema, each in pairs))


def by_name(tables: RunTables) -> dict[str, pa.Table]:
    """Return the tables by their names."""
    return dict(zip((RUNS, STEPS, NODES), tables, strict=True))


def _place(place: RunIdentity) -> dict[str, Any]:
    return {
        "run": place.run,
        "question": _writable(place.question),
        "category": _writable(place.category),
        "turn": place.turn,
        "setting": _writable(place.setting),
        "engine": SOURCE,
        "reconstructed": place.reconstructed,
        "error": _optional(place.error),
        "trace": place.trace,
    }


def _run(trace: Trace, place: RunIdentity, texts: Mapping[int, str]) -> dict[str, Any]:
    header, steps = trace.header, trace.steps
    summary = trace.summary or summarise(steps, "cancelled", "")
    prompt = place.prompt if place.prompt is not None else _spelt(texts, header.prompt)
    return {
        **_place(place),
        "method": _writable(place.method or header.method),
        "params": json.dumps(dict(header.params)),
        "sampling": json.dumps(dict(header.sampling)),
        "model": _writable(header.model.name),
        "draft": _optional(header.draft.name if header.draft else None),
        "device": _writable(header.device),
        "dtype": _writable(header.dtype),
        "attention": _writable(header.attention),
        "experts": header.model.experts,
        "lossless": header.lossless,
        "finish": "error" if place.error is not None else _writable(summary.finish),
        "prompt": _writable(prompt),
        "text": _writable(summary.text),
        "prompt_ids": header.prompt,
        "ids": trace.ids,
        "prompt_tokens": len(header.prompt),
        "new_tokens": summary.new_tokens,
        "steps": summary.steps,
        "drafted": sum(step.drafted for step in steps),
        "accepted": sum(step.accepted for step in steps),
        "fed": sum(step.fed for step in steps),
        "mean_acceptance_length": summary.mean_acceptance_length,
        "prefill_seconds": summary.prefill_seconds,
        "decode_seconds": summary.decode_seconds,
        "tokens_per_second": summary.tokens_per_second,
    }


def _add_step(columns: Mapping[str, list[Any]], run: int, step: Step, texts: Mapping[int, str]) -> None:
    row = {
        "run": run,
        "step": step.index,
        "start": step.start,
        "drafted": step.drafted,
        "accepted": step.accepted,
        "written": len(step.emitted),
        "fed": step.fed,
        "nodes": len(step.tokens) or None,
        "experts": step.experts,
        "text": _spelt(texts, step.emitted),
        "entropy": step.entropy[0] if step.entropy else None,
        **{name: getattr(step.timing, name) for name in _TIMES},
    }
    for name, column in columns.items():
        column.append(row[name])


def _add_nodes(columns: Mapping[str, list[Any]], run: int, step: Step, texts: Mapping[int, str], greedy: bool) -> None:
    """Add a row a node; what was recorded of the distributions at a node is in the rows of its children."""
    count = len(step.tokens)
    rows = {"run": [run] * count, "step": [step.index] * count, "node": range(count)}
    rows |= _tree(step, texts) | _fates(step) | _wanted(step, texts) | _probabilities(step, greedy)
    for name, column in columns.items():
        column.extend(rows[name])


def _tree(step: Step, texts: Mapping[int, str]) -> dict[str, Sequence[Any]]:
    """Return the columns of what was fed."""
    sources = [_source(source) for source in step.sources]
    return {
        "parent": step.parents,
        "depth": depths(step.parents),
        "role": [_ROLES[role] for role in step.roles],
        "source": [kind for kind, _ in sources],
        "detail": [detail for _, detail in sources],
        "token": step.tokens,
        "text": [texts.get(token) for token in step.tokens],
    }


def _fates(step: Step) -> dict[str, Sequence[Any]]:
    """Return the columns of what became of each guess."""
    guesses = [(role is Role.VERIFY, at) for role, at in zip(step.roles, step.parents, strict=True)]
    # After a text that was cut nothing was decided any more.
    accepted, judging = set(step.path), set(step.path[: len(step.emitted)])
    siblings = defaultdict[int, Iterator[int]](itertools.count)
    return {
        "accepted": [node in accepted for node in range(len(step.tokens))],
        "judged": [guess and at in judging for guess, at in guesses],
        "sibling": [next(siblings[at]) if guess else None for guess, at in guesses],
    }


def _wanted(step: Step, texts: Mapping[int, str]) -> dict[str, Sequence[Any]]:
    """Return the columns of the token that the target chose where a node was guessed."""
    written = dict(zip(step.path, step.emitted, strict=False))  # node of the path -> what was written after it
    choices = [written.get(node, choice) for node, choice in enumerate(step.choices or [None] * len(step.tokens))]
    wanted = [None if at < 0 else choices[at] for at in step.parents]
    listed = [[token for token, _, _ in best] for best in step.draft_top]
    lacks = _undraftable(step)
    return {
        "wanted": wanted,
        "wanted_text": [None if token is None else texts.get(token) for token in wanted],
        "rank": [
            listed[at].index(token) if at >= 0 and listed and token in listed[at] else None
            for at, token in zip(step.parents, wanted, strict=True)
        ],
        "draftable": [None if lacks is None or token is None else token not in lacks for token in wanted],
    }


def _probabilities(step: Step, greedy: bool) -> dict[str, Sequence[Any]]:
    """Return the columns of what target and drafter gave each guess."""
    unknown = [None] * len(step.tokens)
    q, parents = step.q or unknown, step.parents
    pairs = zip(q, _confidences(step, greedy), strict=True)
    return {
        "p": step.p or unknown,
        "q": q,
        "confidence": [confidence if share is None else share for share, confidence in pairs],
        "entropy": [step.entropy[at] if at >= 0 and step.entropy else None for at in parents],
        "overlap": [step.overlap[at] if at >= 0 and step.overlap else None for at in parents],
    }


def _undraftable(step: Step) -> set[int] | None:
    """Return the tokens of a step that its drafter cannot draft; None if it can draft all, or does not say."""
    tokens = step.panel.get("unsayable")
    if not step.panel.get("vocabulary") or not isinstance(tokens, list):  # a panel from a file may hold anything
        return None
    return {token for token in tokens if type(token) is int}


@lru_cache(maxsize=4096)
def _source(source: str) -> tuple[str, str | None]:
    """Return the kind of a source, and its detail."""
    kind, _, detail = source.partition(":")
    return _writable(kind), _optional(detail or None)


def _confidences(step: Step, greedy: bool) -> list[float | None]:
    """Return the confidences in the method's own panel; a panel from a file may hold anything."""
    confidences: list[float | None] = [None] * len(step.tokens)
    shares = next((step.panel[name] for name in _CONFIDENCES if step.panel.get(name)), ())
    if isinstance(shares, list):
        for index, share in enumerate(shares[: len(confidences) - 1], start=1):
            ranked = greedy or step.sources[index].startswith(_RANKED)
            if ranked and type(share) in (int, float) and 0.0 <= share <= 1.0:
                confidences[index] = float(share)
    return confidences


def _spelt(texts: Mapping[int, str], tokens: Sequence[int]) -> str:
    return "".join(texts.get(token, f"<{token}>") for token in tokens)


def _optional(text: str | None) -> str | None:
    return None if text is None else _writable(text)


def _writable(text: str) -> str:
    """Return text that UTF-8 can hold: a trace's may have lone surrogates."""
    return text.encode(errors="replace").decode()
