"""Measures methods side by side on the same prompts, in one process and in turn, against autoregressive decoding.

A machine's speed drifts; measured in turn, prompt by prompt, every method has the same drift. The time of the
first step, which reads the prompt, is measured separately: speed is that of all later steps, by the wall clock.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from decoding.codec import Prompt
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods import METHODS, find_method
from decoding.model.bandwidth import cache_bytes, slowest_read
from decoding.params import check_count
from decoding.request import DecodeOptions
from decoding.types import JSON, Step

from ..prompts.tasks import Task
from .disturbance import Disturbance
from .measured import MeasuredRun, Peer, Runner

_WARM_UP = 16  # tokens of each method's first, unmeasured run
_BASE = "autoregressive"


@dataclass(slots=True)
class BenchEntry:
    """A method or a peer, with its measured runs."""

    name: str
    params: Mapping[str, JSON]
    runner: Runner
    process: int | None = None  # the one it runs in, if that is not this one
    memory: dict[str, Any] = field(default_factory=dict)  # what the method keeps from run to run: no other entry's
    runs: list[MeasuredRun] = field(default_factory=list)
    disturbed: int = 0  # runs in which other processes held the cores

    @property
    def speed(self) -> float | None:
        """Tokens per second, prefill excluded."""
        seconds = sum(run.decode_seconds for run in self.runs)
        return sum(run.decode_tokens for run in self.runs) / seconds if seconds > 0 else None

    @property
    def step_seconds(self) -> float | None:
        """Mean time of a step, prefill excluded."""
        steps = sum(run.steps - 1 for run in self.runs)
        return sum(run.decode_seconds for run in self.runs) / steps if steps else None

    @property
    def prefill_seconds(self) -> float:
        """Mean time of the step that reads the prompt."""
        return sum(run.prefill_seconds for run in self.runs) / len(self.runs)


def bench(
    engine: Engine,
    tasks: Sequence[Task],
    methods: Sequence[str],
    *,
    params: Mapping[str, Mapping[str, JSON]] | None = None,
    peers: Mapping[str, Peer] | None = None,
    max_new_tokens: int = 128,
    ignore_end: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> dict[str, JSON]:
    """Measure greedy decoding: the report that `bench --json` prints. `params` holds settings by method.

    Autoregressive decoding always runs, as the base of the comparison, and its answers go into a later turn's
    prompt for all. Turns that do not fit the model's context are left out for all and named under "skipped".
    """
    budget = check_count("max_new_tokens", max_new_tokens, 1, 1_000_000)
    base = base_entry(engine)
    rows = [base, *_entries(engine, [name for name in methods if name != _BASE], params or {})]
    rivals = [BenchEntry(name, {}, peer.runner, peer.process) for name, peer in (peers or {}).items()]
    devices = set(engine.model.devices)
    before = slowest_read(devices)
    kinds, skipped = measure_entries(engine, tasks, [*rows, *rivals], budget, ignore_end, progress)
    bandwidth = [each for each in (before, slowest_read(devices)) if each is not None]
    questions = len(tasks) - sum(left_out["turn"] == 1 for left_out in skipped)
    report = _report(engine, rows, rivals, peers or {})
    for row, entry in zip(report["rows"], rows, strict=True):
        row |= {"questions": questions, "by_category": _by_category(entry, kinds)}
    report |= {"pass_bytes": engine.model.card.pass_bytes, "cache": cache_bytes(devices), "bandwidth": bandwidth}
    return report | {"skipped": skipped}


def measure_entries(
    engine: Engine,
    tasks: Sequence[Task],
    entries: Sequence[BenchEntry],
    budget: int,
    ignore_end: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> tuple[list[str], list[dict[str, JSON]]]:
    """Run every entry on every turn; the first entry's answers go into later turns.

    Gives the kind of every turn that was measured, and the turns that were left out.
    """
    base, announce = entries[0], progress or (lambda what, share: None)
    ends = frozenset[int]() if ignore_end else engine.codec.end_tokens
    kinds, skipped = list[str](), list[dict[str, JSON]]()
    for number, task in enumerate(tasks):
        chat: list[tuple[str, str]] = []
        for turn, question in enumerate(task.turns, start=1):
            chat.append(("user", question))
            ids = engine.encode(as_prompt(engine, chat))
            if len(ids) + budget > engine.model.card.context:
                skipped.append({"question": task.id, "turn": turn, "prompt_tokens": len(ids)})
                break  # later turns are longer still
            if not base.runs:
                for entry in entries:
                    announce(f"warming up {entry.name}", 0.0)
                    if entry.name in METHODS:
                        engine.prepare(entry.name, announce)
                    entry.runner(ids, min(_WARM_UP, budget), ends)
                    entry.memory.clear()  # of the beginning of an answer that is still to be measured
            for index, entry in enumerate(entries):
                turns = turn - 1 + index / len(entries)
                announce(f"measuring {entry.name}", (number + turns / len(task.turns)) / len(tasks))
                others = Disturbance(entry.process)
                entry.runs.append(entry.runner(ids, budget, ends))
                entry.disturbed += bool(others.disturbed)
            kinds.append(task.category)
            chat.append(("assistant", engine.codec.continuation(ids, base.runs[-1].ids)))
    if not base.runs:
        raise ParamError(f"no prompt leaves room for {budget} new tokens: lower max_new_tokens or use other tasks")
    return kinds, skipped


def base_entry(engine: Engine) -> BenchEntry:
    """Make the entry for autoregressive decoding, the base of every comparison."""
    return method_entry(engine, _BASE, {})


def method_entry(engine: Engine, name: str, params: Mapping[str, JSON]) -> BenchEntry:
    """Make the entry for a method, with its settings checked."""
    settings = find_method(name).Params.parse(params).to_json()
    memory = dict[str, Any]()
    return BenchEntry(name, settings, partial(timed_run, engine, name, settings, memory), memory=memory)


def _entries(engine: Engine, names: Sequence[str], params: Mapping[str, Mapping[str, JSON]]) -> list[BenchEntry]:
    """Make the entries of the methods to measure, with their settings checked."""
    for name in (*names, *params):
        find_method(name)
    if strangers := sorted(params.keys() - set(names)):
        raise ParamError(f"there are settings for {', '.join(strangers)}, which is not among the methods measured")
    return [method_entry(engine, name, params.get(name, {})) for name in dict.fromkeys(names)]


def timed_run(
    engine: Engine,
    method: str,
    params: Mapping[str, JSON],
    memory: dict[str, Any],
    ids: Sequence[int],
    budget: int,
    ends: frozenset[int],
    seconds: float = math.inf,
) -> MeasuredRun:
    """Run a method once, for at most `seconds` seconds after the prompt is read."""
    begin = time.perf_counter()
    options: DecodeOptions = {"end_tokens": sorted(ends), "record": "off", "memory": memory}
    with contextlib.closing(engine.decode(ids, method, params, None, budget, **options)) as run:
        first = next(run)
        middle = end = time.perf_counter()
        later = list[Step]()
        while end - middle < seconds and (step := next(run, None)):
            later.append(step)
            end = time.perf_counter()
    tokens = sum(len(step.emitted) for step in later)
    emitted = (*first.emitted, *(token for step in later for token in step.emitted))
    return MeasuredRun(emitted, 1 + len(later), middle - begin, end - middle, tokens)


def as_prompt(engine: Engine, chat: Sequence[tuple[str, str]]) -> Prompt:
    """Format messages with the model's template, or line by line if it has none."""
    if not engine.codec.has_chat_template:
        return "\n".join(text for _, text in chat)
    return [{"role": role, "content": text} for role, text in chat]


def _report(
    engine: Engine, rows: list[BenchEntry], rivals: list[BenchEntry], peers: Mapping[str, Peer]
) -> dict[str, JSON]:
    base = rows[0]
    return {
        "device": ",".join(map(str, engine.model.devices)),
        "dtype": engine.model.precision,
        "attention": engine.model.attention,
        "threads": torch.get_num_threads(),
        "model": engine.model.card.name,
        "draft": engine.draft.card.name if engine.draft else None,
        "rows": [_row(entry, base) for entry in rows],
        "peers": [
            {
                "name": rival.name,
                "precision": peers[rival.name].precision,
                "tokens_per_second": rival.speed,
                "speedup_vs_autoregressive": _ratio(rival.speed, base.speed),
                "prefill_seconds": rival.prefill_seconds,
                "identical_to_autoregressive": _same(rival, base),
                "same_texts": _share(rival, base),
                "disturbed_runs": rival.disturbed,
            }
            for rival in rivals
        ],
    }


def _row(entry: BenchEntry, base: BenchEntry) -> dict[str, Any]:
    tokens = sum(len(run.ids) for run in entry.runs)
    return {
        "method": entry.name,
        "params": dict(entry.params),
        "turns": len(entry.runs),
        "new_tokens": tokens,
        "steps": sum(run.steps for run in entry.runs),
        "mean_acceptance_length": tokens / sum(run.steps for run in entry.runs),
        "tokens_per_second": entry.speed,
        "speedup_vs_autoregressive": _ratio(entry.speed, base.speed),
        "step_cost": _ratio(entry.step_seconds, base.step_seconds),
        "prefill_seconds": entry.prefill_seconds,
        "identical_to_autoregressive": _same(entry, base),
        "same_texts": _share(entry, base),
        "disturbed_runs": entry.disturbed,
    }


def _by_category(entry: BenchEntry, kinds: Sequence[str]) -> dict[str, float]:
    """Compute tokens per step for every kind of question; one kind with long answers dominates the overall mean."""
    tokens, steps = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
    for kind, run in zip(kinds, entry.runs, strict=True):
        tokens[kind] += len(run.ids)
        steps[kind] += run.steps
    return {kind: tokens[kind] / steps[kind] for kind in tokens}


def _same(entry: BenchEntry, base: BenchEntry) -> bool:
    return [run.ids for run in entry.runs] == [run.ids for run in base.runs]


def _share(entry: BenchEntry, base: BenchEntry) -> float:
    """Return the share of texts that equal those of autoregressive decoding."""
    return sum(run.ids == other.ids for run, other in zip(entry.runs, base.runs, strict=True)) / len(base.runs)


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
