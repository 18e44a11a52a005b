"""The cost of a full record besides decoding: `python -m benchmarks.record`.

Every prompt is decoded twice in turn, with a light and with a full record, and compared by processor time on one
thread, which other processes on the core do not affect. The work that `evaluate` adds, a full record's trace and rows,
is measured after each pair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch

from analysis.bench.methods import as_prompt
from analysis.prompts.tasks import ENGLISH, SUITES, read_tasks
from analysis.store.tables import tables_of
from decoding import embedded, load
from decoding.engine import Engine
from decoding.methods import METHODS
from decoding.run import Run

from .measure import conditions, flags, publish, ratio, table

TOKENS, WARM_UP = 64, 8


@dataclass(frozen=True, slots=True)
class Workload:
    """Every n-th of a model's prompts, and the methods that decode them."""

    suite: Path
    every: int
    methods: Sequence[str]


MODELS = {
    "pocket": Workload(embedded.TASKS, 12, tuple(METHODS)),
    "smollm2": Workload(SUITES[ENGLISH], 24, ("autoregressive", "prompt_lookup", "draft_model", "eagle3")),
}
LEVELS = ("light", "full")
T = TypeVar("T")


@dataclass(slots=True)
class RecordingCosts:
    """Processor seconds of one method, one number per prompt."""

    light: list[float] = field(default_factory=list)
    full: list[float] = field(default_factory=list)
    trace: list[float] = field(default_factory=list)  # its texts and summary
    rows: list[float] = field(default_factory=list)  # of an evaluation's tables
    steps: int = 0

    def row(self, name: str) -> list[str]:
        """Write the method's line of the table."""
        per_step = (1000 * sum(each) / self.steps for each in (self.light, self.full, self.trace, self.rows))
        cost = f"{100 * (ratio(self.full, self.light) - 1):+.1f}%"
        return [name, str(self.steps), *(f"{each:.3f}" for each in per_step), cost]


def spent(work: Callable[[], T]) -> tuple[T, float]:
    """Do some work; return its result and its processor seconds."""
    begin = time.process_time()
    result = work()
    return result, time.process_time() - begin


def decoded(engine: Engine, ids: Sequence[int], method: str, level: str, tokens: int = TOKENS) -> tuple[float, Run]:
    """Decode; return the processor seconds and the run."""
    run = engine.decode(list(ids), method, max_new_tokens=tokens, record=level, memory={})
    _, seconds = spent(lambda: [*run])
    return seconds, run


def costs(engine: Engine, method: str, prompts: Sequence[Sequence[int]]) -> RecordingCosts:
    """Measure light and full runs in turn, alternating which comes first."""
    for level in LEVELS:
        tables_of(decoded(engine, prompts[0], method, level, WARM_UP)[1].trace)
    method_costs = RecordingCosts()
    for number, ids in enumerate(prompts):
        took = {level: decoded(engine, ids, method, level) for level in (LEVELS if number % 2 else LEVELS[::-1])}
        (light, _), (full, run) = took["light"], took["full"]
        trace, making = spent(partial(getattr, run, "trace"))
        _, rows = spent(partial(tables_of, trace))
        method_costs.light.append(light)
        method_costs.full.append(full)
        method_costs.trace.append(making)
        method_costs.rows.append(rows)
        method_costs.steps += len(trace.steps)
    return method_costs


def report(model: str, measured: Workload) -> str:
    """Measure a row per method, and one for all of them together."""
    engine = load(model, device="cpu")
    tasks = read_tasks(measured.suite)[:: measured.every]
    prompts = [engine.encode(as_prompt(engine, [("user", task.turns[0])])) for task in tasks]
    rows, total = [["ms per step", "steps", "light", "full", "trace", "rows", "full against light"]], RecordingCosts()
    for name in measured.methods:
        each = costs(engine, name, prompts)
        rows.append(each.row(name))
        for part in ("light", "full", "trace", "rows"):
            getattr(total, part).append(sum(getattr(each, part)))
        total.steps += each.steps
    together = sum(total.full) / sum(total.light) - 1
    rows.append([*total.row("all of them together")[:-1], f"{100 * together:+.1f}%"])
    where = conditions(model, engine.model.precision, "one thread", "processor time")
    return f"{where}; {len(prompts)} prompts, {TOKENS} tokens each.\n\n{table(rows)}"


def main() -> None:
    """Print a table per model, and write them to a file if one is named."""
    parser = flags("record", __doc__)
    parser.add_argument("--models", default=",".join(MODELS), help="pocket, smollm2 or both")
    parser.add_argument("--methods", help="only these methods")
    parser.add_argument("--every", type=int, help="take each n-th prompt of a suite")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    reports = []
    for model in arguments.models.split(","):
        measured = MODELS[model]
        methods = arguments.methods.split(",") if arguments.methods else measured.methods
        reports.append(report(model, Workload(measured.suite, arguments.every or measured.every, methods)))
    publish("record", "\n\n".join(reports), arguments.out)


if __name__ == "__main__":
    main()
