"""Finds a method's fastest settings for an engine and prompts, by a race that slow candidates leave early.

All candidates decode the beginning of an answer. Those that are far slower than the fastest drop out, at least half of
them; the others decode a longer piece of another answer, and so on until three are left. These answer some prompts
beside autoregressive decoding, and the fastest one further prompts, until it is clear whether it is faster than that or
a third of the prompts is answered.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decoding.codec import Prompt
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods import METHODS, find_method
from decoding.params import check_count
from decoding.types import JSON

from .bench.disturbance import Disturbance
from .bench.measured import MeasuredRun
from .bench.methods import timed_run
from .candidates import CANDIDATES
from .measured_here import file_here, machine_facts, read_here, write_here
from .reporting import Reporting, finish
from .tuned import TUNED_HERE

_FIRST = 16  # tokens of the first heat, at least
_FIRST_SHARE = 1 / 64  # of the tokens of all answers, which the first heat has if that is more
_FINALISTS = 3
_BEHIND = 0.7  # of the fastest candidate's speed: slower ones drop out
_SLOWEST = 2.0  # times what autoregressive decoding takes: a candidate's run is cut off then, before the final
_FEWEST = 4  # prompts that all finalists answer, if there are so many
_FEWEST_SHARE = 1 / 6  # of the prompts, which all answer if that is more
_MOST_SHARE = 1 / 3  # of the prompts, after which the final is over, clear or not
_SURE = 3.0  # standard errors by which the final's winner is ahead once the final is over
_CLOSE = 2.0  # standard errors: with less the report calls it too close
_AGAIN = 2  # runs that other processes disturbed are repeated at most so often
_PLAIN = "autoregressive"


@dataclass(slots=True)
class Racer:
    """A method with settings, and its runs so far, one for each prompt."""

    method: str
    params: Mapping[str, JSON]
    memory: dict[str, Any] = field(default_factory=dict)
    runs: list[MeasuredRun] = field(default_factory=list)

    def speed(self, last: int = 0) -> float:
        """Return the tokens per second of its last runs, or of all."""
        return _speed(self.runs[-last:])


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


def tuning(
    engine: Engine, method: str, prompts: Sequence[Prompt], max_new_tokens: int, seconds: float = math.inf
) -> Reporting[dict[str, JSON]]:
    """Tune as `tune` does, and report the progress before each run.

    It races no more candidates than fit into about `seconds`.
    """
    begin, budget = time.perf_counter(), check_count("max_new_tokens", max_new_tokens, 2, 1_000_000)
    ids = _fitting(engine, prompts, budget)
    every = candidates(method)
    engine.prepare(method, lambda what, share: None)
    race, base = _Race(engine, ids, budget), Racer(_PLAIN, {})
    yield "warming up", 0.0
    room = race.warm_up(base, seconds)
    racers = [Racer(method, params) for params in _thinned(every, room)]
    finalists = yield from race.heats(racers)
    best, compared = yield from race.final(finalists, base)
    speed, plain = best.speed(compared), base.speed(compared)
    if not plain:
        raise ParamError("every answer ends with its first token: choose other prompts")
    gains = _gains(best, base, compared)
    report: dict[str, JSON] = {
        "model": engine.model.card.name,
        **machine_facts(engine),
        "date": str(datetime.date.today()),
        "method": method,
        "prompts": len(ids),
        "compared": compared,
        "max_new_tokens": budget,
        "candidates": len(every),
        "speculate": speed > plain,
        "fastest": method if speed > plain else _PLAIN,
        "params": dict(best.params),
        "tokens_per_second": speed,
        "autoregressive_tokens_per_second": plain,
        "speedup_vs_autoregressive": speed / plain,
        "faster_on": sum(gain > 0 for gain in gains),
        "too_close": len(gains) > 1 and (_lead(gains) if speed > plain else -_lead(gains)) < _CLOSE,
        "disturbed_runs": race.disturbed,
        "tokens": race.tokens,
        "grid_tokens": len(racers) * len(ids) * budget,
        "seconds": time.perf_counter() - begin,
        "rows": [_row(racer) for racer in sorted(racers, key=lambda racer: (-len(racer.runs), -racer.speed()))],
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


def _thinned(settings: list[dict[str, JSON]], room: float) -> list[dict[str, JSON]]:
    """Return all settings or, if there is room for fewer only, the defaults and some of the others."""
    kept = int(min(len(settings), max(_FINALISTS, room)))
    return settings if kept == len(settings) else [settings[0], *random.Random(0).sample(settings[1:], kept - 1)]


def _fitting(engine: Engine, prompts: Sequence[Prompt], budget: int) -> list[list[int]]:
    ids = [list(engine.encode(prompt)) for prompt in prompts]
    if fitting := [each for each in ids if len(each) + budget <= engine.model.card.context]:
        random.Random(0).shuffle(fitting)  # suites go kind by kind, and the race may end before it has met all
        return fitting
    raise ParamError(f"no prompt leaves room for {budget} new tokens: lower max_new_tokens or use other tasks")


class _Race:
    """Lets racers answer one prompt after the other, and counts what that takes."""

    def __init__(self, engine: Engine, ids: Sequence[list[int]], budget: int) -> None:
        self._engine, self._ids, self._budget, self._turn = engine, ids, budget, 0
        share = round(_FIRST_SHARE * self._budget * len(self._ids))
        self._first = min(max(_FIRST, share), self._budget)  # tokens of the first heat
        self._slowest = math.inf  # seconds for a token
        self.tokens = self.disturbed = 0

    def warm_up(self, base: Racer, seconds: float) -> float:
        """Time autoregressive decoding; return how many racers fit into `seconds`."""
        for _ in range(2):
            plain = self._run(base, self._ids[0], self._first, math.inf)
        if not plain.decode_tokens:
            return math.inf
        token = plain.decode_seconds / plain.decode_tokens
        self._slowest = _SLOWEST * token
        final = _FEWEST * (1 + _FINALISTS) * (self._budget * token + plain.prefill_seconds)
        return (seconds - final) / (4 * self._first * token + 2 * plain.prefill_seconds)  # in all of its heats

    def heats(self, racers: Sequence[Racer]) -> Reporting[list[Racer]]:
        """Run heats with fewer racers and more tokens each; return those that are left."""
        length, number = self._first, 1
        if self._engine.model.device.type != "cpu":  # every new shape of a step is compiled first
            for racer in racers:
                self._run(racer, self._ids[0], length, math.inf)
        while len(racers) > _FINALISTS:
            what, left = f"heat {number}: {len(racers)} settings", length
            for _ in self._ids:  # most answers are longer than a heat
                if self._turn % len(self._ids) == 0:
                    _forget(racers)
                left -= yield from self._answer(what, racers, left, self._slowest * left)
                if left < _FIRST // 2:
                    break
            racers = sorted(racers, key=lambda racer: -racer.speed())
            near = [racer for racer in racers if racer.speed() >= _BEHIND * racers[0].speed()]
            racers = racers[: max(_FINALISTS, min(len(near), len(racers) // 2))]
            length, number = min(2 * length, self._budget), number + 1
        return list(racers)

    def final(self, racers: Sequence[Racer], base: Racer) -> Reporting[tuple[Racer, int]]:
        """Compare racers with autoregressive decoding; return the fastest, and on how many prompts it was compared."""
        _forget(racers)
        fewest, most = (max(_FEWEST, round(share * len(self._ids))) for share in (_FEWEST_SHARE, _MOST_SHARE))
        for compared in range(1, min(most, len(self._ids)) + 1):
            what = f"the fastest beside autoregressive decoding: prompt {compared}"
            yield from self._answer(what, [base, *racers], self._budget, math.inf)
            if compared >= fewest:
                racers = [max(racers, key=Racer.speed)]
                if abs(_lead(_gains(racers[0], base, compared))) >= _SURE:
                    break
        return max(racers, key=Racer.speed), compared

    def _answer(self, what: str, racers: Sequence[Racer], tokens: int, seconds: float) -> Reporting[int]:
        """Let each racer answer the next prompt; return how long the answer is."""
        ids, longest = self._ids[self._turn % len(self._ids)], 0
        self._turn += 1
        for place, racer in enumerate(racers):
            yield what, place / len(racers)
            run = self._measured(racer, ids, tokens, seconds)
            racer.runs.append(run)
            longest = max(longest, len(run.ids))
        return longest

    def _measured(self, racer: Racer, ids: list[int], tokens: int, seconds: float) -> MeasuredRun:
        """Run a racer, again if other processes disturbed it."""
        for again in reversed(range(1 + _AGAIN)):
            memory, others = copy.deepcopy(racer.memory), Disturbance()
            run = self._run(racer, ids, tokens, seconds)
            if not others.disturbed:
                return run
            if again:
                racer.memory.clear()
                racer.memory.update(memory)
        self.disturbed += 1
        return run

    def _run(self, racer: Racer, ids: list[int], tokens: int, seconds: float) -> MeasuredRun:
        ends = self._engine.codec.end_tokens
        run = timed_run(self._engine, racer.method, racer.params, racer.memory, ids, tokens, ends, seconds)
        self.tokens += len(run.ids)
        return run


def _forget(racers: Sequence[Racer]) -> None:
    """Empty what racers remember: it may hold beginnings of answers that are still to be measured."""
    for racer in racers:
        racer.memory.clear()


def _speed(runs: Sequence[MeasuredRun]) -> float:
    seconds = sum(run.decode_seconds for run in runs)
    return sum(run.decode_tokens for run in runs) / seconds if seconds else 0.0


def _gains(racer: Racer, base: Racer, last: int) -> list[float]:
    """Return by prompt the logarithm of the speed over autoregressive decoding's."""
    pairs = zip(racer.runs[-last:], base.runs[-last:], strict=True)
    return [math.log(_speed([run]) / _speed([plain])) for run, plain in pairs if run.decode_tokens]


def _lead(gains: Sequence[float]) -> float:
    """Return the mean gain in standard errors; 0 for a single gain."""
    if len(gains) < 2:
        return 0.0
    mean, error = statistics.fmean(gains), statistics.stdev(gains) / math.sqrt(len(gains))
    return mean / error if error else math.copysign(math.inf, mean) if mean else 0.0


def _row(racer: Racer) -> dict[str, JSON]:
    return {"params": dict(racer.params), "answers": len(racer.runs), "tokens_per_second": racer.speed()}


def read_tuned(engine: Engine, methods: Sequence[str]) -> dict[str, dict[str, JSON]]:
    """Return by method the settings that were found for this model on this machine."""
    saved, settings = read_here(file_here(engine, TUNED_HERE)), dict[str, dict[str, JSON]]()
    for method in methods:
        with contextlib.suppress(KeyError, TypeError, ParamError):  # not tuned, or by another version
            settings[method] = METHODS[method].Params.parse(saved[method]["params"]).to_json()
    return settings
