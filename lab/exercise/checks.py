"""Checks of the notebook docs/lab_speculation.ipynb: each says in one sentence what is wrong, and never the answer."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from decoding import Engine, Method, SpecscopeError
from decoding.types import JSON

Distribution = Sequence[float]
Accept = Callable[[Distribution, Distribution, int, float], bool]
Residual = Callable[[Distribution, Distribution], Sequence[float]]

P, Q = (0.6, 0.4), (0.9, 0.1)  # the two letters of the lesson "Why is the text the same, and chance still fair?"
QUESTIONS = ("c(8)", "alpha", "tokens per step", "speed-up", "best gamma")
_DRAWS = 1000  # values of u for which a rule is tried
_CLOSE = 3  # percent of time within which two numbers of guesses are as good
_BUSY = 0.5  # of the cores, from which on times say little


class ExerciseError(SpecscopeError):
    """A task whose check failed."""


def predictions(**given: object) -> dict[str, float]:
    """Task 0: return the five predictions, by c8, alpha, tokens_per_step, speedup and best_gamma."""
    names = ("c8", "alpha", "tokens_per_step", "speedup", "best_gamma")
    lacking = [name for name in names if not isinstance(given.get(name), int | float)]
    _demand(not lacking, f"write a number for {', '.join(lacking)}: a guess is enough, and no guess is not")
    return dict(zip(QUESTIONS, (float(str(given[name])) for name in names), strict=True))


def check_cost(cost: Mapping[int, float]) -> str:
    """Task 1: check c(T); what only a busy machine explains is a warning."""
    _demand({1, 2, 4, 8, 16} <= cost.keys(), "cost has no entry for some of 1, 2, 4, 8 and 16 rows")
    _demand(abs(cost[1] - 1) < 1e-9, f"c(1) is {cost[1]:.2f}: divide each time by that of the pass over one row")
    _demand(max(cost.values()) < 60, "some c(T) is above 60: are these milliseconds, and not yet passes?")
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    if not 0.9 <= cost[8] <= 3 or cost[16] < 0.9 * cost[2]:
        return f"c(8) = {cost[8]:.2f} is unusual; other work may hold the cores (load {load:.1f} each). Measure again."
    warning = " Other work holds the cores, so measure again later." if load > 1 + _BUSY else ""
    return f"Task 1 holds: c(8) = {cost[8]:.2f}.{warning}"


def check_acceptance(accept: Accept, residual: Residual) -> str:
    """Task 2: check the two functions by the letters that they write, over all guesses and many values of u."""
    chances = [_kept(accept, P, Q, letter) for letter in (0, 1)]
    _demand(min(chances) < 1, "accept keeps every guess: then the drafter writes the text, with 90 As in 100")
    exact = abs(chances[0] - P[0]) < 0.01 and abs(chances[1] - P[1]) < 0.01
    _demand(not exact, "accept keeps a guess only as often as p alone would write it: more can be kept, fairly")
    rest = residual(P, Q)
    _demand(abs(sum(rest) - 1) < 1e-9, f"residual returns numbers whose sum is {sum(rest):.2f}, so no distribution")
    _demand(abs(rest[0] - P[0]) > 1e-9, "residual returns p: what was kept already is then drawn again, too often")
    share = 100 * _written(accept, residual, P, Q)[0]
    _demand(abs(share - 60) < 0.3, f"with your rule A is written in {share:.1f} of 100 texts, and it should be 60")
    dice = random.Random(0)
    for _ in range(20):
        p, q = (_normalised([dice.random() for _ in range(5)]) for _ in range(2))
        off = max(abs(a - b) for a, b in zip(_written(accept, residual, p, q), p, strict=True))
        _demand(off < 0.01, f"it holds for two letters, but for five tokens some probability is off by {off:.2f}")
    return "Task 2 holds: what is written has the target's distribution."


def check_method(
    method: type[Method], engine: Engine, prompts: Sequence[str], params: Mapping[str, JSON], budgets: int = 20
) -> str:
    """Task 3: check that a method writes the same text as decoding without guesses, and reads no row too many."""
    for prompt in prompts:
        plain = engine.generate(engine.as_turn(prompt), max_new_tokens=budgets).ids
        for budget in (*range(1, budgets), budgets) if prompt is prompts[0] else (budgets,):
            run = engine.decode(engine.as_turn(prompt), method, dict(params), None, budget)
            steps = list(run)
            where = f"on {prompt[:30]!r} with {budget} new tokens"
            _demand(tuple(run.ids) == tuple(plain[:budget]), f"{where} your method's text differs from the plain one")
            rows = all(step.fed == 1 + step.drafted for step in steps[1:])
            _demand(rows, f"{where} some pass reads other rows than the root and your guesses")
    _demand(any(step.drafted for step in steps[1:]), "your method never guesses")
    return "Task 3 holds: the same text, with every number of new tokens."


def check_sweep(passes: Mapping[int, int], engine: Engine, prompt: str, new_tokens: int) -> str:
    """Task 4: check the passes by the number of guesses against those of the method that ships."""
    for gamma in (1, max(passes)):
        run = engine.generate(engine.as_turn(prompt), "draft_model", {"gamma": gamma}, None, new_tokens)
        steps, yours = run.summary.steps, passes[gamma]
        _demand(
            yours != steps - 1, f"with {gamma} guesses you count {yours} passes: the pass over the prompt is one too"
        )
        _demand(yours == steps, f"with {gamma} guesses the shipped method does not need {yours} passes, as yours does")
    return "Task 4 holds: as many passes as the method that ships."


def check_formulas(tokens: Callable[[int, float], float], speedup: Callable[[int, float, float, float], float]) -> str:
    """Task 5: check the expected tokens of a step, and the expected speed-up with c and d, against exact fractions."""
    for gamma in (1, 3, 6):
        for alpha in (Fraction(1, 4), Fraction(7, 10)):
            exact = sum(alpha**depth for depth in range(gamma + 1))
            given, setting = tokens(gamma, float(alpha)), f"with {gamma} guesses kept at {float(alpha)}"
            fault = f"{setting} you expect {given:.3f} tokens: a guess counts only where all before it were kept"
            _demand(abs(given - float(exact)) < 1e-9, fault)
            faster = speedup(gamma, float(alpha), 1.2, 0.3)
            fault = f"{setting}, c = 1.2 and d = 0.3 your speed-up is {faster:.3f}: a step takes both c and d"
            _demand(abs(faster - float(exact / Fraction(15, 10))) < 1e-9, fault)
    return "Task 5 holds: both formulas are exact."


def check_best(derived: int, seconds: Mapping[int, float]) -> str:
    """Task 5: compare the derived number of guesses with the fastest that was measured; a miss is a warning."""
    _demand(derived in seconds, f"{derived} guesses were not measured: derive one of {', '.join(map(str, seconds))}")
    fastest = min((gamma for gamma in seconds if gamma), key=lambda gamma: seconds[gamma])
    loss = 100 * (seconds[derived] / seconds[fastest] - 1)
    measured = f"with {derived} guesses, as derived, it takes {loss:.1f}% longer than with {fastest}, the fastest"
    if loss <= _CLOSE:
        return f"Task 5 holds: {measured}."
    return f"Look again: {measured}. Is c or d off, or did other work hold the cores meanwhile?"


def check_order(order: Sequence[str], methods: Mapping[str, tuple[float, float, float]]) -> str:
    """Task 6: check an order of methods, the fastest first; of each its tokens per step, c and d on that machine."""
    _demand(sorted(order) == sorted(methods), "name each method of the table once")
    speeds = [methods[name][0] / (methods[name][1] + methods[name][2]) for name in order]
    wrong = next((at for at in range(1, len(speeds)) if speeds[at] > speeds[at - 1] + 1e-9), None)
    if wrong is not None:
        raise ExerciseError(f"{order[wrong]} comes after {order[wrong - 1]}, but is faster there by τ / (c + d)")
    return "Task 6 holds: the order is that of τ / (c + d)."


def reconcile(predicted: Mapping[str, float], measured: Mapping[str, float]) -> str:
    """Task 7: show predictions beside the measurements, with their errors."""
    rows = [f"{'':<16} {'predicted':>9} {'measured':>9} {'error':>7}"]
    for name in QUESTIONS:
        error = 100 * (predicted[name] / measured[name] - 1)
        rows.append(f"{name:<16} {predicted[name]:>9.2f} {measured[name]:>9.2f} {error:>+6.0f}%")
    return "\n".join(rows)


def _demand(holds: bool, sentence: str) -> None:
    if not holds:
        raise ExerciseError(sentence)


def _kept(accept: Accept, p: Distribution, q: Distribution, token: int) -> float:
    return sum(bool(accept(p, q, token, (at + 0.5) / _DRAWS)) for at in range(_DRAWS)) / _DRAWS


def _written(accept: Accept, residual: Residual, p: Distribution, q: Distribution) -> list[float]:
    """Return the distribution of the written token."""
    kept = [q[token] * _kept(accept, p, q, token) for token in range(len(p))]
    rest = residual(p, q)
    return [each + (1 - sum(kept)) * rest[token] for token, each in enumerate(kept)]


def _normalised(numbers: Sequence[float]) -> list[float]:
    return [number / sum(numbers) for number in numbers]
