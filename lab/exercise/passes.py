"""Times passes of a model over several rows, and whole answers by the number of guesses, for the notebook."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from decoding import Builder, Context, Draft, Engine, Method, Params, Verdict, param

_WARM_UP = 2  # steps


@dataclass(frozen=True, slots=True)
class _RowsParams(Params):
    rows: int = param(1, label="Rows", help="Rows of every pass", min=1, max=256)


class _Rows(Method):
    """Has the target read the same token in every row, so that a step costs what its rows cost."""

    name, label, paper = "rows", "Rows", "none"
    Params = _RowsParams

    def __init__(self, context: Context, params: _RowsParams) -> None:
        self._context, self._rows = context, params.rows

    def propose(self) -> Draft:
        """Propose a chain of one token."""
        token = self._context.text[-1]
        tree = Builder(token)
        tree.chain([token] * (self._rows - 1), ["same"] * (self._rows - 1))
        return tree.draft()

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Learn nothing."""


def pass_ms(engine: Engine, rows: int, context: int = 256, steps: int = 6) -> float:
    """Time one pass over `rows` rows, after a text of `context` tokens: the median of a few, after a warm-up."""
    text = [1 + position % 97 for position in range(context)]
    budget = rows * (steps + _WARM_UP) + 1  # tokens, should every row be accepted
    run = engine.decode(text, _Rows, {"rows": rows}, None, budget, record="off", end_tokens=())
    times = [next(run).timing.forward_ms for _ in range(steps + _WARM_UP + 1)]
    return statistics.median(times[_WARM_UP + 1 :])


def sweep_seconds(
    engine: Engine, method: type[Method], prompt: str, gammas: Sequence[int], new_tokens: int, rounds: int = 3
) -> dict[int, float]:
    """Time an answer after its first step, by the number of guesses, 0 for none: medians of rounds taken in turn."""
    times: dict[int, list[float]] = {gamma: [] for gamma in (0, *gammas)}
    for _ in range(rounds):
        for gamma, taken in times.items():
            guessing, params = (method, {"gamma": gamma}) if gamma else ("autoregressive", None)
            run = engine.generate(engine.as_turn(prompt), guessing, params, None, new_tokens, record="off")
            taken.append(run.summary.decode_seconds)
    return {gamma: statistics.median(taken) for gamma, taken in times.items()}
