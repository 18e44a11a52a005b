"""A run's life: how it ends, what it records, and that it hands everything back whatever happens."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ModelError, ParamError
from decoding.methods import METHODS
from decoding.methods.autoregressive import Autoregressive
from decoding.methods.prompt_lookup import PromptLookup
from decoding.model.session import ProgressCallback
from decoding.model.table import TableModel, TableSession
from decoding.parts import MethodPart, Parts
from decoding.parts.tables import load_tables
from decoding.types import Draft, Role, Verdict
from tests.families import machine as with_parts
from tests.tiers import slow
from tests.toys import correlated, cycle, engine, hashed, plain

MODEL = hashed(vocabulary=9, seed=2)


class Counted(TableModel):
    """Knows how many sessions it opened."""

    opened = 0

    def open(self, capacity: int, largest_step: int) -> TableSession:
        """Open one more."""
        self.opened += 1
        return super().open(capacity, largest_step)


@pytest.fixture
def counted() -> Iterator[Counted]:
    """Yield a model that counts."""
    yield Counted(MODEL._rule, MODEL.order, 9)


def test_one_session_serves_run_after_run(counted: Counted) -> None:
    """A cache allocated once a run costs more than a short run itself."""
    machine = engine(counted, MODEL)
    for method in ("autoregressive", "prompt_lookup", "draft_model") * 3:
        assert machine.generate((1, 2), method, max_new_tokens=12).ids == plain(MODEL, (1, 2), 12)
    assert counted.opened == 1


def test_two_runs_at_once_do_not_meet(counted: Counted) -> None:
    """Two runs on one cache would read each other's text."""
    machine = engine(counted, MODEL)
    runs = [machine.decode((i, 2), "prompt_lookup", max_new_tokens=15) for i in range(3)]
    while any(run.finish is None for run in runs):
        for run in runs:
            next(run, None)
    assert [run.ids for run in runs] == [plain(MODEL, (i, 2), 15) for i in range(3)]
    assert counted.opened == 3
    assert machine.generate((5,), max_new_tokens=3).ids == plain(MODEL, (5,), 3) and counted.opened == 3


def test_runs_in_threads_do_not_meet() -> None:
    """The session pool is the one place that threads share."""
    machine, texts = engine(MODEL), dict[int, tuple[int, ...]]()

    def work(i: int) -> None:
        texts[i] = machine.generate((i % 9, 2), "draft_model", max_new_tokens=20).ids

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {i: plain(MODEL, (i % 9, 2), 20) for i in range(8)}


@pytest.mark.parametrize("how", ["close", "drop", "cancel", "never started"])
def test_a_run_left_half_way_hands_its_session_back(how: str, counted: Counted) -> None:
    """A visitor who leaves must not take the cache along."""
    machine = engine(counted, MODEL)
    run = machine.decode((1, 2), max_new_tokens=30)
    if how != "never started":
        next(run)
    if how == "close":
        run.close()
        assert run.finish == "cancelled" and len(run.ids) == 1 and next(run, None) is None
    if how == "cancel":
        run.cancel()
        assert list(run) == [] and run.summary.finish == "cancelled"
    del run
    assert machine.generate((1, 2), max_new_tokens=12).ids == plain(MODEL, (1, 2), 12)
    assert counted.opened == 1


class Broken(Autoregressive):
    """Fails at its second step."""

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Fail."""
        raise ModelError("broken on purpose")


def test_a_method_that_fails_gives_the_session_back(counted: Counted) -> None:
    """An error must reach the caller, and must not cost a cache."""
    machine = engine(counted, MODEL)
    with pytest.raises(ModelError, match="broken on purpose"):
        machine.generate((1, 2), Broken)
    assert machine.generate((1, 2), max_new_tokens=5).ids == plain(MODEL, (1, 2), 5)
    assert counted.opened == 1


@pytest.mark.parametrize("needs", [set[str](), {"early_exit"}])
def test_the_early_exit_is_there_for_methods_that_need_it(needs: set[str]) -> None:
    """It must read the whole text; in a chat, other methods read only what the cache does not hold yet."""
    lent = list[bool]()

    class Looking(Autoregressive):
        """Writes down whether it has one."""

        def propose(self) -> Draft:
            lent.append(self._context.target is not None)
            return super().propose()

    Looking.needs = frozenset(needs)
    decoders().generate((1, 2), Looking, max_new_tokens=2)
    assert lent == [bool(needs)] * 2


def test_cancelling_ends_the_run_after_the_step() -> None:
    """From another thread, through the caller's own event, and in the middle of a long prompt."""
    cancel = threading.Event()
    run = engine(MODEL).decode((1, 2), max_new_tokens=30, cancel=cancel)
    next(run)
    cancel.set()
    assert list(run) == [] and run.finish == "cancelled" and run.ids == plain(MODEL, (1, 2), 1)

    calls = 0

    class Late(threading.Event):
        def is_set(self) -> bool:
            nonlocal calls
            calls += 1
            return calls > 4

    run = engine(MODEL).decode([1] * 100, max_new_tokens=3, prefill_chunk=2, cancel=Late())
    assert list(run) == [] and run.finish == "cancelled" and calls < 10
    assert run.summary.new_tokens == 0 and run.trace.summary is not None


def test_a_time_budget_ends_the_run() -> None:
    """A public page cannot run for ever."""
    run = engine(MODEL).decode((1, 2), max_new_tokens=4000, time_budget=1e-9)
    assert list(run) == [] and run.finish == "time"


def test_what_a_run_records() -> None:
    """Off keeps outcomes, light the tree, full also probabilities; the outcome is the same."""
    sampling = {"temperature": 1.0, "seed": 4}
    machine = engine(MODEL)
    traces = {
        level: machine.generate((1, 2), "draft_model", sampling=sampling, max_new_tokens=20, record=level).trace
        for level in ("off", "light", "full")
    }
    assert len({trace.ids for trace in traces.values()}) == 1
    for step in traces["off"].steps:
        assert (step.tokens, step.path, step.choices, step.p, step.panel) == ((), (), (), (), {})
    for light, full in zip(traces["light"].steps, traces["full"].steps, strict=True):
        assert (light.tokens, light.parents, light.path) == (full.tokens, full.parents, full.path)
        assert light.p == light.q == light.top == ()
        for node in full.nodes[1:]:
            assert node.p is not None and node.q is not None and 0 <= node.p <= 1 and 0 < node.q <= 1
            assert node.role is Role.VERIFY and node.depth == node.parent + 1
        assert all(best[0][0] == choice for best, choice in zip(full.top, full.choices, strict=True))
        assert full.accepted == len(full.path) - 1 and full.drafted == len(full.tokens) - 1


def test_recorded_probabilities_are_the_distributions() -> None:
    """A p of the wrong row, or before the filters, would explain rejections that never happened."""
    machine = engine(MODEL, correlated(MODEL))
    sampling = {"temperature": 0.7, "top_k": 4, "seed": 1}
    trace = machine.generate((1, 2), "draft_model", sampling=sampling, max_new_tokens=20, record="full").trace
    text = [1, 2]
    for step in trace.steps:
        for i, node in enumerate(step.nodes[1:], start=1):
            row = MODEL.logits([*text, *step.tokens[1:i]]) / 0.7
            distribution = row.masked_fill(row < row.topk(4).values[-1], -float("inf")).softmax(-1)
            assert node.p == pytest.approx(float(distribution[node.token]), abs=1e-6)
        text.extend(step.emitted)


def test_steps_add_up() -> None:
    """Every number of the summary is a sum over the steps; fed counts the prompt, start the text before."""
    result = engine(cycle()).generate((0, 1, 2, 3, 4, 5, 6, 0, 1), "prompt_lookup", max_new_tokens=30)
    steps, summary = result.trace.steps, result.summary
    assert [step.start for step in steps] == [9 + sum(len(s.emitted) for s in steps[:i]) for i in range(len(steps))]
    assert [step.pending for step in steps] == [8] + [0] * (len(steps) - 1)
    assert all(step.fed == step.pending + 1 + step.drafted for step in steps)
    assert summary.new_tokens == 30 and summary.steps == len(steps) and summary.finish == "length"
    assert summary.mean_acceptance_length == 30 / len(steps)
    assert sum(summary.acceptance_histogram) == len(steps)


class Overeager(PromptLookup):
    """Drafts beyond the budget."""

    def propose(self) -> Draft:
        """Return the true continuation, always eight tokens."""
        from decoding.tree import Builder

        tree = Builder(self._context.text[-1])
        tree.chain([(tree.draft().tokens[0] + 1 + i) % 7 for i in range(8)], ["toy"] * 8)
        return tree.draft()


@pytest.mark.parametrize("budget", range(1, 19))
def test_an_accepted_run_is_cut_at_the_budget(budget: int) -> None:
    """A method need not count: the engine cuts, and the record says what was kept."""
    result = engine(cycle()).generate((0,), Overeager, max_new_tokens=budget)
    assert result.ids == plain(cycle(), (0,), budget)
    last = result.trace.steps[-1]
    assert last.accepted == len(last.path) - 1 <= len(last.emitted)


def test_the_longest_possible_run_fits() -> None:
    """A draft at the very end of the context must not need rows that are not there."""
    model = TableModel(MODEL._rule, MODEL.order, 9, context=64)
    result = engine(model, MODEL).generate([1] * 60, "draft_model", max_new_tokens=4)
    assert result.ids == plain(MODEL, [1] * 60, 4)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.lists(st.integers(-2, 9))
ARGUMENTS = ["prompt", "method", "params", "sampling", "max_new_tokens", "stop", "end_tokens", "reference", "record"]
ARGUMENTS += ["prefill_chunk", "time_budget"]


@given(st.dictionaries(st.sampled_from(ARGUMENTS), VALUES | st.dictionaries(st.text(max_size=6), VALUES), max_size=3))
@example({"end_tokens": 5})
@example({"max_new_tokens": 10**5000})
@example({"prompt": [{"role": "user"}]})
@example({"prompt": [1, [2]]})
@example({"prompt": [1.0]})
@example({"reference": 7})
@example({"time_budget": 10**5000})
@example({"stop": [5]})
def test_nonsense_is_refused_in_words(nonsense: dict[str, Any]) -> None:
    """Any value for any argument either starts a run or raises ParamError, before the first step."""
    try:
        run = engine(MODEL).decode(**{"prompt": (1, 2), "max_new_tokens": 3, **nonsense})
    except ParamError as error:
        assert str(error)
        return
    run.close()


def decoders() -> Engine:
    """Make a sliding-window model and its drafter, with caches and tables of their own."""
    return with_parts("mistral")


@pytest.mark.parametrize(
    "make", [lambda: engine(MODEL), pytest.param(decoders, marks=slow)], ids=["tables", "decoders"]
)
def test_three_hundred_runs_leave_nothing_behind(make: Callable[[], Engine]) -> None:
    """State kept per run grows a server until it dies."""
    machine, runs = make(), 8 * len(METHODS)

    def batch(count: int) -> int:
        for seed in range(count):
            turn = seed % len(METHODS)  # also the seed: else every run would be a new one, which fills caches
            method, sampling = list(METHODS)[turn], {"temperature": 1.0, "seed": turn}
            run = machine.decode((1, 2, 1), method, None, sampling, 12, record="full", end_tokens=())
            next(run)
            if seed % 8 > 3:
                assert len([*run]) == len(run.steps) - 1
        gc.collect()
        return len(gc.get_objects())

    batch(runs)  # until the caches of trees and answers, which are bounded, are nearly full
    first = batch(runs)
    assert batch(runs) <= first + runs * 3 // 4, "more than the small change of full caches: an object in every run"


@pytest.mark.parametrize("groups", [0, 2])
def test_cancelling_ends_the_making_of_a_part(groups: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """N-gram tables of a large model take minutes: whoever has left must not be waited for, nor half of them kept."""
    monkeypatch.setattr("decoding.parts.tables._ROWS", 4)
    model, cancel, got = hashed(vocabulary=9, seed=2), threading.Event(), list[float]()
    model.card = replace(model.card, hash="a" * 64)
    machine = Engine(model, Codec(), None, Parts({"tables": partial(load_tables, model, folder=tmp_path)}))

    def progress(what: str, share: float) -> None:
        got.append(share)
        if len(got) == groups:
            cancel.set()

    if not groups:
        cancel.set()
    options: dict[str, Any] = {"max_new_tokens": 5, "progress": progress}
    run = machine.decode((1, 2), "ngrammys", cancel=cancel, **options)
    assert len(got) == groups and not list(tmp_path.iterdir())
    cancel.clear()
    assert list(run) == [] and run.finish == "cancelled" and run.trace.ids == ()
    assert machine.generate((1, 2), "ngrammys", cancel=cancel, **options).ids == plain(model, (1, 2), 5)
    assert got[-1] == 1.0 and len(list(tmp_path.iterdir())) == 1


def test_nothing_is_made_for_a_call_that_is_refused() -> None:
    """A mistake in the last argument must not cost a minute first."""

    def make(progress: ProgressCallback) -> MethodPart:
        raise AssertionError("it was made")

    machine = Engine(MODEL, Codec(), None, Parts({"tables": make}))
    for wrong in ({"cancel": "now"}, {"memory": 5}, {"time_budget": -1}):
        with pytest.raises(ParamError):
            machine.decode((1, 2), "ngrammys", **wrong)  # type: ignore[arg-type]


def test_an_engine_without_a_tokenizer_writes_numbers() -> None:
    """Table models have no text; stop strings and results still make sense."""
    result = Engine(MODEL, engine(MODEL).codec).generate((1, 2), max_new_tokens=3)
    assert result.text == " ".join(map(str, result.ids))
