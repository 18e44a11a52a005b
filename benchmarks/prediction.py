"""Predicts each method's speed-up from c(T), and measures it: `python -m benchmarks.prediction --model smollm2`.

c(T) is measured with wrong guesses, in turn with the questions: on a shared machine the speed of wide passes varies by
a third within minutes, that of narrow ones does not. Every other question of a kind gives the rows, tokens and drafting
of a step; the speed-up predicted from them is compared with the one measured on the remaining questions.
"""

from __future__ import annotations

import argparse
import sys

from analysis.bench.methods import as_prompt
from analysis.cost.curves import PassCurve
from analysis.cost.passes import PassTimes, Rounds, WrongTree
from analysis.cost.prediction import drafting_in_passes, measured_speedup, predicted_speedup, tokens_per_step
from analysis.prompts.tasks import Task, read_tasks, suite
from analysis.tuned import tuned_params
from decoding import embedded, load
from decoding.engine import Engine
from decoding.methods import METHODS
from decoding.model.decoder import Decoder
from decoding.types import Step

from .measure import SUITES, conditions, flags, publish, table

ROWS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64, 128)
CONTEXT = 128  # as long as a question with half of its answer
_PLAIN = "autoregressive"


def halves(tasks: list[Task], questions: int) -> tuple[list[Task], list[Task]]:
    """Return two disjoint sets with `questions` questions of every kind."""
    kinds = dict[str, list[Task]]()
    for task in tasks:
        kinds.setdefault(task.category, []).append(task)
    chosen = [each[: min(2 * questions, len(each) // 2 * 2)] for each in kinds.values()]
    return [task for each in chosen for task in each[::2]], [task for each in chosen for task in each[1::2]]


class Answers:
    """Answers questions with every method in turn, and keeps the steps after each run's first."""

    def __init__(self, engine: Engine, methods: list[str], tokens: int) -> None:
        self.steps: dict[str, list[Step]] = {method: [] for method in methods}
        self._engine, self._tokens, self._params = engine, tokens, tuned_params(engine, methods)

    def add(self, task: Task) -> None:
        """Answer one more question."""
        prompt = as_prompt(self._engine, [("user", task.turns[0])])
        for method, steps in self.steps.items():
            params = self._params.get(method, {})
            steps += [*self._engine.decode(prompt, method, params, max_new_tokens=self._tokens, record="off")][1:]


class Passes:
    """Measures c(T) round by round."""

    def __init__(self, engine: Engine) -> None:
        self._trees = [WrongTree(1, rows - 1) for rows in ROWS]
        self._times = PassTimes(CONTEXT, self._trees)
        self._rounds, self._model = Rounds(engine, self._times), engine.model.card.name

    def add(self) -> None:
        """Measure one more round."""
        _, sample = self._rounds.take(self._trees)
        self._times.add(sample)

    def curve(self) -> PassCurve:
        """Return c(T) over all rounds."""
        return PassCurve(self._model, CONTEXT, ROWS, tuple(map(self._times.milliseconds, self._trees)), ())


def _layers(engine: Engine, method: str) -> float:
    """Return the share of the layers that a method's verifying pass runs."""
    if method != "kangaroo":
        return 1.0
    assert isinstance(engine.model, Decoder)
    layers, exit_layer = engine.model.shape.layers, int(engine.part("kangaroo").layer)
    return (layers - exit_layer) / layers


def report(model: str, questions: int, tokens: int) -> str:
    """Predict and measure every method that the model can run."""
    engine = load(model, device="cpu")
    methods = [name for name in METHODS if engine.lacks(name) is None]
    for name in methods:
        engine.prepare(name, lambda what, share: None)
    seen, unseen = halves(list(read_tasks(suite(SUITES[model]))), questions)
    Answers(engine, methods, tokens).add(seen[0])  # warming up
    fitted_on, measured, passes = Answers(engine, methods, tokens), Answers(engine, methods, tokens), Passes(engine)
    for one, other in zip(seen, unseen, strict=True):  # in turn: a machine's speed drifts
        fitted_on.add(one)
        passes.add()
        measured.add(other)
        passes.add()
    curve = passes.curve()
    rows = [["method", "tokens a step, as predicted", "as measured", "speed-up, predicted", "measured", "off by"]]
    off = list[float]()
    for name in methods:
        if name == _PLAIN:
            continue
        fitted, plain, met = fitted_on.steps[name], fitted_on.steps[_PLAIN], measured.steps[name]
        drafting = drafting_in_passes(fitted, plain)
        predicted = predicted_speedup(fitted, drafting, curve, _layers(engine, name))
        actual = measured_speedup(met, measured.steps[_PLAIN])
        off.append(predicted / actual - 1)
        numbers = (tokens_per_step(fitted), tokens_per_step(met), predicted, actual)
        rows.append([name, *(f"{each:.2f}" for each in numbers), f"{100 * off[-1]:+.0f}%"])
        sys.stderr.write(" | ".join(rows[-1]) + "\n")
    head = conditions(model, str(engine.model.dtype).removeprefix("torch."), "CPU", f"{len(seen)} questions each way")
    within = sum(abs(each) <= 0.1 for each in off)
    return f"{head}.\n\n{table(rows)}\n\n{within} of {len(off)} predictions are within 10% of what was measured."


def main() -> int:
    """Measure and report."""
    parser = flags("prediction", (__doc__ or "").split("\n")[0])
    parser.add_argument("--model", choices=SUITES, default=embedded.TARGET, help="default: %(default)s")
    parser.add_argument("--questions", type=int, default=2, metavar="N", help="of a kind, each way (default: 2)")
    parser.add_argument("--tokens", type=int, default=64, metavar="N", help="of an answer (default: 64)")
    given: argparse.Namespace = parser.parse_args()
    publish("prediction", report(given.model, given.questions, given.tokens), given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
