"""The whole measurement of a model on this machine, in parts that are saved one by one."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from decoding.codec import Prompt
from decoding.engine import Engine
from decoding.methods import METHODS
from decoding.types import JSON, Step

from ..bench.disturbance import Disturbance
from ..measured_here import file_here, machine_facts, read_here, write_here
from ..tuned import tuned_params
from .passes import PassTimes, WrongTree, measure_passes

CONTEXTS = (128, 512, 2048)
ROWS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64, 128, 256)
K, W = (1, 2, 4, 8), (1, 2, 4, 8)  # N-Grammys: rows of a batch, and the guesses of each
_TREES_UP_TO = 1024  # tokens of context, so that the whole takes less than a minute
ROUNDS, _AGAIN = 2, 2
_TOKENS, _WARM_UP = 24, 4  # that a method writes of an answer
_ROOM = 512  # positions that a measurement takes beyond its context
_PARTS = ("shapes", "trees", "prefill", "methods")


def sweep(
    engine: Engine,
    name: str,
    prompts: Sequence[Prompt],
    *,
    contexts: Sequence[int] = CONTEXTS,
    rounds: int = ROUNDS,
    anew: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> dict[str, JSON]:
    """Measure c(T), trees of k by w, prefill and drafting; the report is what `cost --json` prints.

    Each part is saved when it is measured, and is not measured again unless `anew`.
    """
    saved_in = file_here(engine, "costs")
    report = {} if anew else read_here(saved_in)
    if not report:
        report = {"model": name, **machine_facts(engine), "date": str(datetime.date.today())}
    for part in _PARTS:
        report.setdefault(part, [])
    announce = progress or (lambda what, share: None)
    work = _work(engine, name, prompts, contexts, rounds, report)
    for number, (what, measure) in enumerate(work):
        announce(f"measuring {what}", number / len(work))
        for part, entries in measure().items():
            report[part] += entries
        write_here(saved_in, report)
    for part in ("shapes", "trees", "prefill"):
        report[part].sort(key=lambda entry: entry.get("context", entry.get("tokens")))
    return report | {"saved": str(saved_in) if saved_in is not None and saved_in.is_file() else None}


Entries = dict[str, list[dict[str, JSON]]]


def _work(
    engine: Engine,
    name: str,
    prompts: Sequence[Prompt],
    contexts: Sequence[int],
    rounds: int,
    report: dict[str, Any],
) -> list[tuple[str, Callable[[], Entries]]]:
    """List the parts that the report lacks."""
    work = list[tuple[str, Callable[[], Entries]]]()
    for context in sorted(contexts):
        fits = context + _ROOM <= engine.model.card.context
        for part, measure in (("shapes", _chains), ("trees", _batches)):
            if (
                fits
                and (part == "shapes" or context <= _TREES_UP_TO)
                and context not in [entry["context"] for entry in report[part]]
            ):
                what = f"{'passes' if part == 'shapes' else 'trees'} after {context:,} tokens"
                work.append((what, partial(measure, engine, name, context, rounds)))
    measured = {entry["method"] for entry in report["methods"]}
    for method in METHODS:
        if engine.lacks(method) is None and method not in measured:
            work.append((method, partial(_drafting, engine, name, method, prompts)))
    return work


def _chains(engine: Engine, name: str, context: int, rounds: int) -> Entries:
    """Measure c(T), and the first passes on the way."""
    trees = [WrongTree(1, rows - 1) for rows in ROWS]
    times = measure_passes(engine, context, trees, rounds, _AGAIN)
    entry = _entry(engine, name, times) | {
        "rows": [*ROWS],
        "milliseconds": [times.milliseconds(tree) for tree in trees],
        "noisy": [tree.rows for tree in times.noisy],
    }
    tokens = times.prefill[0][0]
    prefill = {"shape": name, "tokens": tokens, "milliseconds": round(min(took for _, took in times.prefill), 4)}
    return {"shapes": [entry], "prefill": [prefill]}


def _batches(engine: Engine, name: str, context: int, rounds: int) -> Entries:
    """Measure the slow-down by k and w: what a pass over k chains of w guesses costs in passes over one row."""
    times = measure_passes(engine, context, [WrongTree(1, 0), *(WrongTree(k, w) for k in K for w in W)], rounds, _AGAIN)
    single = times.milliseconds(WrongTree(1, 0))
    entry = _entry(engine, name, times) | {
        "k": [*K],
        "w": [*W],
        "single_milliseconds": single,
        "milliseconds": [[times.milliseconds(WrongTree(k, w)) for w in W] for k in K],
        "noisy": [[tree.k, tree.w] for tree in times.noisy],
    }
    return {"trees": [entry]}


def _entry(engine: Engine, name: str, times: PassTimes) -> dict[str, JSON]:
    return {
        "shape": name,
        "parameters": engine.model.card.parameters,
        "context": times.context,
        "rounds": times.rounds,
        "disturbed_rounds": times.disturbed,
    }


def _drafting(engine: Engine, name: str, method: str, prompts: Sequence[Prompt]) -> Entries:
    """Measure a method's steps after the first, with the settings that suit this machine."""
    params = tuned_params(engine, [method]).get(method, {})
    engine.prepare(method, lambda what, share: None)
    for _ in engine.decode(prompts[0], method, params, None, _WARM_UP, record="light"):
        pass  # warming up
    steps, memory, others = list[Step](), dict[str, Any](), Disturbance()
    for prompt in prompts:
        steps += [*engine.decode(prompt, method, params, None, _TOKENS, record="light", memory=memory)][1:]
    disturbed = bool(others.disturbed)
    return {"methods": [_means(name, method, params, steps) | {"disturbed": disturbed}]} if steps else {}


def _means(name: str, method: str, params: dict[str, JSON], steps: Sequence[Step]) -> dict[str, JSON]:
    def mean(values: Sequence[float]) -> float:
        return round(sum(values) / len(values), 4)

    return {
        "shape": name,
        "method": method,
        "params": params,
        "steps": len(steps),
        "tokens_per_step": mean([len(step.emitted) for step in steps]),
        "rows_per_step": mean([step.fed for step in steps]),
        "step_milliseconds": mean([step.timing.total_ms for step in steps]),
        "draft_milliseconds": mean([step.timing.draft_ms for step in steps]),
        "forward_milliseconds": mean([step.timing.forward_ms for step in steps]),
    }
