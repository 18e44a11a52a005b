"""Finds a method's fastest settings for an engine and prompts, by a race that candidates leave early.

All candidates decode a short piece of the first prompt. Those that are far slower than the fastest drop out, at least
half of them; the others decode a longer piece of the next prompt, and so on until two are left. These two decode all
prompts beside autoregressive decoding, which wins where neither is faster.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from decoding.codec import Prompt
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods import METHODS, find_method
from decoding.params import check_count
from decoding.types import JSON

from .bench.disturbance import Disturbance
from .bench.methods import BenchEntry, base_entry, method_entry
from .candidates import CANDIDATES
from .measured_here import file_here, machine_facts, read_here, write_here
from .reporting import Reporting, finish
from .tuned import TUNED_HERE

_FIRST = 16  # tokens that every candidate decodes
_FINALISTS = 2
_BEHIND = 0.8  # of the fastest candidate's speed: slower ones drop out
_AGAIN = 2  # runs that other processes disturbed are repeated at most so often


@dataclass(slots=True)
class Racer:
    """A candidate with its runs, and how far it came."""

    entry: BenchEntry
    rounds: int = 0
    speeds: list[float] = field(default_factory=list)  # tokens per second in each round
    by_prompt: list[float] = field(default_factory=list)  # and in the last one, for each prompt

    @property
    def speed(self) -> float:
        """Return the tokens per second of its last round."""
        return self.speeds[-1]


def tune(
    engine: Engine,
    method: str,
    prompts: Sequence[Prompt],
    *,
    max_new_tokens: int = 64,
    progress: Callable[[str, float], None] | None = None,
) -> dict[str, JSON]:
    """Find the settings with the most tokens per second: the report that `tune --json` prints.

    They are saved for this model and machine; `read_tuned` then returns them.
    """
    return finish(tuning(engine, method, prompts, max_new_tokens), progress or (lambda what, share: None))


def tuning(engine: Engine, method: str, prompts: Sequence[Prompt], max_new_tokens: int) -> Reporting[dict[str, JSON]]:
    """Do what `tune` does, and tell before each run how far it is."""
    begin, budget = time.perf_counter(), check_count("max_new_tokens", max_new_tokens, 2, 1_000_000)
    ids = _fitting(engine, prompts, budget)
    entries = [method_entry(engine, method, params) for params in candidates(method)]
    engine.prepare(method, lambda what, share: None)
    race = _Race(engine, ids)
    racers = yield from race.heats([Racer(entry) for entry in entries], budget)
    base = Racer(base_entry(engine))
    finalists = [base, *racers[:_FINALISTS]]
    yield from race.final(finalists, budget)
    best = max(finalists[1:], key=lambda racer: racer.speed)
    speculate = best.speed > base.speed
    report: dict[str, JSON] = {
        "model": engine.model.card.name,
        **machine_facts(engine),
        "date": str(datetime.date.today()),
        "method": method,
        "prompts": len(ids),
        "max_new_tokens": budget,
        "speculate": speculate,
        "fastest": method if speculate else "autoregressive",
        "params": dict(best.entry.params),
        "tokens_per_second": best.speed,
        "autoregressive_tokens_per_second": base.speed,
        "speedup_vs_autoregressive": best.speed / base.speed,
        "faster_on": sum(one > other for one, other in zip(best.by_prompt, base.by_prompt, strict=True)),
        "disturbed_runs": race.disturbed,
        "tokens": race.tokens,
        "grid_tokens": len(entries) * len(ids) * budget,
        "seconds": time.perf_counter() - begin,
        "rows": [_row(racer) for racer in sorted(race.racers, key=_place)],
    }
    path = file_here(engine, TUNED_HERE)
    kept = ("params", "speculate", "speedup_vs_autoregressive", "date")
    about = {name: report[name] for name in ("model", *machine_facts(engine))}
    write_here(path, read_here(path) | about | {method: {name: report[name] for name in kept}})
    return report | {"saved": str(path) if path is not None and path.is_file() else None}


def candidates(method: str) -> list[dict[str, JSON]]:
    """List the settings that are tried: the method's defaults, its presets and those that suit a CPU, each once."""
    params, listed = find_method(method).Params, list[dict[str, JSON]]()
    if method not in CANDIDATES:
        raise ParamError(f"{method} has no settings to choose: name one of {', '.join(CANDIDATES)}")
    for settings in ({}, *params.presets.values(), *CANDIDATES[method]):
        checked = params.parse(dict(settings))
        if checked.typical is None and checked.to_json() not in listed:  # typical acceptance writes another text
            listed.append(checked.to_json())
    return listed


def _fitting(engine: Engine, prompts: Sequence[Prompt], budget: int) -> list[list[int]]:
    ids = [list(engine.encode(prompt)) for prompt in prompts]
    if fitting := [each for each in ids if len(each) + budget <= engine.model.card.context]:
        return fitting
    raise ParamError(f"no prompt leaves room for {budget} new tokens: lower max_new_tokens or use other tasks")


class _Race:
    """Runs rounds, and counts what they took."""

    def __init__(self, engine: Engine, ids: Sequence[list[int]]) -> None:
        self._ids, self._ends = ids, engine.codec.end_tokens
        self.tokens = self.disturbed = 0
        self.racers: list[Racer] = []

    def heats(self, racers: list[Racer], budget: int) -> Reporting[list[Racer]]:
        """Run rounds with fewer candidates and more tokens each; return those that are left, the fastest first."""
        self.racers, length, number = racers, min(_FIRST, budget), 0
        racers[0].entry.runner(self._ids[0], length, self._ends)  # warms up
        while True:
            what = f"round {number + 1}: {len(racers)} settings"
            yield from self._round(what, racers, [self._ids[number % len(self._ids)]], length)
            racers = sorted(racers, key=lambda racer: -racer.speed)
            if len(racers) <= _FINALISTS:
                return racers
            near = [racer for racer in racers if racer.speed >= _BEHIND * racers[0].speed]
            racers = racers[: max(_FINALISTS, min(len(near), len(racers) // 2))]
            if len(racers) <= _FINALISTS:
                return racers
            length, number = min(2 * length, budget), number + 1

    def final(self, racers: Sequence[Racer], budget: int) -> Reporting[None]:
        """Run the last candidates and autoregressive decoding on all prompts."""
        yield from self._round("the fastest beside autoregressive decoding", racers, self._ids, budget)

    def _round(self, what: str, racers: Sequence[Racer], prompts: Sequence[list[int]], length: int) -> Reporting[None]:
        """Measure racers in turn, prompt by prompt, as they would be on new prompts."""
        tokens, seconds = dict.fromkeys(range(len(racers)), 0), dict.fromkeys(range(len(racers)), 0.0)
        for racer in racers:
            racer.entry.memory.clear()  # it may hold the beginning of an answer that is still to be measured
            racer.by_prompt.clear()
        for at, ids in enumerate(prompts):
            for place, racer in enumerate(racers):
                yield what, (at + place / len(racers)) / len(prompts)
                run = self._measured(racer.entry, ids, length)
                tokens[place] += run[0]
                seconds[place] += run[1]
                racer.by_prompt.append(_speed(*run))
        for place, racer in enumerate(racers):
            racer.rounds += 1
            racer.speeds.append(_speed(tokens[place], seconds[place]))

    def _measured(self, entry: BenchEntry, ids: list[int], length: int) -> tuple[int, float]:
        """Return tokens and seconds of a run, repeated where other processes disturbed it."""
        for attempt in range(1 + _AGAIN):
            memory, others = copy.deepcopy(entry.memory), Disturbance()
            run = entry.runner(ids, length, self._ends)
            self.tokens += len(run.ids)
            if not others.disturbed or attempt == _AGAIN:
                self.disturbed += bool(others.disturbed)
                break
            entry.memory.clear()
            entry.memory.update(memory)
        return run.decode_tokens, run.decode_seconds


def _speed(tokens: int, seconds: float) -> float:
    return tokens / seconds if seconds else 0.0


def _place(racer: Racer) -> tuple[int, float]:
    return -racer.rounds, -racer.speed


def _row(racer: Racer) -> dict[str, JSON]:
    return {"params": dict(racer.entry.params), "rounds": racer.rounds, "tokens_per_second": racer.speed}


def read_tuned(engine: Engine, methods: Sequence[str]) -> dict[str, dict[str, JSON]]:
    """Return by method the settings that were found for this model on this machine."""
    saved, settings = read_here(file_here(engine, TUNED_HERE)), dict[str, dict[str, JSON]]()
    for method in methods:
        with contextlib.suppress(KeyError, TypeError, ParamError):  # not tuned, or by another version
            settings[method] = METHODS[method].Params.parse(saved[method]["params"]).to_json()
    return settings
