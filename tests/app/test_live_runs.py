"""Live runs: what they stream, how they end, and what they leave behind."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from app.jobs.live_run import LiveRun
from app.jobs.opening_step import opening_step
from app.jobs.race import Race
from app.jobs.runner import JobRunner
from app.jobs.streaming import as_sentence
from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool
from app.server.limits import LIMITS
from app.server.run_queue import RunQueue
from app.store.trace_store import TraceStore
from decoding import METHODS
from decoding.chat import Chat
from decoding.engine import Engine
from decoding.loop import Loop
from decoding.run import Run
from viz.stream.play import Play

from .conftest import TABLES, TOY, asked, kinds, lines


@pytest.fixture(autouse=True)
def every_piece_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between two updates, so that a test sees each of them."""
    for module in ("runner", "live_run"):
        monkeypatch.setattr(f"app.jobs.{module}.LIMITS", replace(LIMITS, live_gap=0.0))


def whole(texts: Iterator[str]) -> str:
    return deque(texts, maxlen=1).pop()


def test_the_text_only_grows_and_ends_with_its_proof(jobs: JobRunner) -> None:
    """Gradio sends tails of a text that grows, and the whole of one that changes."""
    before = ""
    for text in jobs.start(LiveRun(asked(), "x=1"), "tab"):
        assert text.startswith(before) and text.endswith("\n")
        before = text
    got = lines(before)
    assert got[0]["kind"] == "host" and got[0]["address"] == f"x=1&run={got[0]['run']}"
    order = [kind for kind in kinds(before) if kind not in TABLES]
    steps = order.count("step")
    assert order == ["host", "state", "play", *["step"] * steps, "host", "end", "host", "check"]
    end = next(line for line in got if line["kind"] == "end")
    assert end["finish"] == "length" and end["summary"]["new_tokens"] == 24 and end["summary"]["steps"] == steps
    check = got[-1]["check"]
    assert check["checked"] == 24 and check["exact"] == 24 and got[-1]["speedup"] is None
    kept = jobs.store.get(got[0]["run"])
    assert kept is not None and len(kept.trace.steps) == steps and kept.trace.header.record == "full"
    opening = next(line for line in got[1:] if line["kind"] == "host")
    assert opening["step"] == opening_step(kept.trace)  # a step to learn from
    assert jobs.active == 0 and len(jobs.queue) == 0


@pytest.mark.parametrize(("beside", "live"), [(True, "beside"), (False, "alone")])
def test_the_page_hears_where_a_run_is_to_be_seen(jobs: JobRunner, beside: bool, live: str) -> None:
    assert lines(whole(jobs.start(LiveRun(asked(), "", beside=beside), "tab")))[0]["live"] == live


def test_steps_are_written_in_batches(jobs: JobRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work between two passes slows the next pass."""
    monkeypatch.setattr("app.jobs.live_run.LIMITS", replace(LIMITS, live_gap=1e6))
    monkeypatch.setattr("app.jobs.live_run._FIRST_BATCH", 0.0)
    seen = list[int]()
    original_step = Play.step

    def step(play: Play, step: Any, *texts: Any) -> str:
        seen.append(len(play.run.steps))
        return original_step(play, step, *texts)

    monkeypatch.setattr(Play, "step", step)
    original, passes = Loop.turn, list[int]()

    def turn(loop: Loop, index: int) -> Any:
        passes.append(len(seen))
        return original(loop, index)

    monkeypatch.setattr(Loop, "turn", turn)
    text = whole(jobs.start(LiveRun(asked(), ""), "tab"))
    steps = kinds(text).count("step")
    assert steps > 3 and len(seen) == steps
    assert passes[:steps] == [0, *[1] * (steps - 1)], "a step was written between two passes"


@pytest.mark.parametrize(
    ("pace", "expected"),
    [(0.03, [4, 7]), (0.15, [1, 2, 2, 2, 2, 2])],
)
def test_the_first_steps_are_one_batch_where_they_come_soon(
    jobs: JobRunner, monkeypatch: pytest.MonkeyPatch, pace: float, expected: list[int]
) -> None:
    """A fast run is slowed the most at its beginning; of a slow one the first step is seen as early as it can be."""
    now, original = 0.0, Loop.turn
    monkeypatch.setattr("app.jobs.live_run.time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr("app.jobs.live_run.LIMITS", replace(LIMITS, live_gap=0.2))

    def turn(loop: Loop, index: int) -> Any:
        nonlocal now
        now += pace
        return original(loop, index)

    monkeypatch.setattr(Loop, "turn", turn)
    order = asked(method="autoregressive", params={}, max_new_tokens=11)
    counts = [0, *(kinds(text).count("step") for text in jobs.start(LiveRun(order, ""), "tab"))]
    assert [later - count for count, later in pairwise(counts) if later > count] == expected


@pytest.mark.parametrize(("pace", "said"), [(1.0, True), (0.0, False)])
def test_the_reading_of_a_prompt_is_announced_where_it_takes_a_while(jobs: JobRunner, pace: float, said: bool) -> None:
    """Each update costs the page a picture: a wait that is over at once needs no sentence."""
    jobs.prefill_pace["toy"] = pace  # seconds for a token
    first = next(jobs.start(LiveRun(asked(), ""), "tab"))
    assert kinds(first)[:2] == ["host", "state"] if said else "step" in kinds(first)


def test_the_pace_of_reading_is_that_of_the_last_run(jobs: JobRunner) -> None:
    end = next(line for line in lines(whole(jobs.start(LiveRun(asked(), ""), "tab"))) if line["kind"] == "end")
    assert 0 < jobs.prefill_pace["toy"] < end["summary"]["prefill_seconds"]


def test_a_measured_speedup_comes_where_it_was_asked_for(jobs: JobRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is measured in rounds, since the machine's own speed swings, and each takes its turn in every round."""
    began, decode = list[str](), Engine.decode

    def noted(engine: Engine, prompt: Any, method: Any, *more: Any, **options: Any) -> Any:
        began.append(method if isinstance(method, str) else method.name)
        return decode(engine, prompt, method, *more, **options)

    monkeypatch.setattr(Engine, "decode", noted)
    monkeypatch.setattr("app.jobs.run_from_order.speedup", lambda ours, plain: 1.0)  # a busy machine measures none
    whole_text = lines(whole(jobs.start(LiveRun(asked(compare=True), ""), "tab")))
    last, follows = whole_text[-1], [line["follows"] for line in whole_text if "follows" in line]
    assert last["kind"] == "check" and last["speedup"] == 1.0
    assert len(follows) == 3 and "Checking" in follows[0] and "Measuring" in follows[1] and follows[2] == ""
    assert began == ["lookahead", *["lookahead", "autoregressive"] * 3]
    plain = lines(whole(jobs.start(LiveRun(asked(method="autoregressive", params={}, compare=True), ""), "tab")))
    assert plain[-1]["speedup"] is None  # of the baseline against itself there is nothing to measure


def test_stop_acts_within_one_step(jobs: JobRunner) -> None:
    steps = 0
    going = jobs.start(LiveRun(asked(method="autoregressive", params={}, max_new_tokens=200), ""), "tab")
    for text in going:
        steps = kinds(text).count("step")
        if steps == 3:
            jobs.stop("tab", LiveRun)
    assert steps <= 4
    end = next(line for line in lines(text) if line["kind"] == "end")
    assert end["finish"] == "cancelled" and end["summary"]["steps"] == steps
    assert kinds(text)[-1] == "check"  # what was written is proven all the same


def test_a_closed_tab_frees_the_engine_and_the_queue(jobs: JobRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing is what Gradio does to the generator of a tab that has gone."""
    made = list[Any]()
    usual = Run.__init__

    def noted(self: Run, *arguments: Any) -> None:
        usual(self, *arguments)
        made.append(weakref.ref(self))

    monkeypatch.setattr(Run, "__init__", noted)
    going = jobs.start(LiveRun(asked(method="autoregressive", params={}, max_new_tokens=200), ""), "tab")
    while "step" not in kinds(next(going)):
        pass
    assert jobs.active == 1 and len(jobs.queue) == 1
    run = made[0]()
    going.close()
    assert run.finish == "cancelled"
    assert jobs.active == 0 and len(jobs.queue) == 0
    assert len(jobs.store) == 1  # for a tab that shows it still: a lost connection looks the same from here
    del run, going
    gc.collect()
    assert made[0]() is None


def test_several_visitors_take_turns_and_see_their_position(models: ModelPool, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, served = JobRunner(models, TraceStore(), RunQueue(4)), list[str]()
    monkeypatch.setattr(jobs.store, "put", lambda run, stored, client: served.append(run))
    first = jobs.start(LiveRun(asked(), ""), "one")
    while "step" not in kinds(next(first)):
        pass
    second, third = jobs.start(LiveRun(asked(), ""), "two"), jobs.start(LiveRun(asked(), ""), "three")
    for _ in range(2):
        waiting = [lines(next(second))[-1], lines(next(third))[-1]]
    assert [line["sentence"] for line in waiting] == ["1 run is before yours.", "2 runs are before yours."]
    assert {line["what"] for line in waiting} == {"queued"}
    first.close()
    ended = dict[str, str]()

    def finish(name: str, texts: Iterator[str]) -> None:
        text = whole(texts)
        ended[name] = text

    threads = [threading.Thread(target=finish, args=each) for each in (("three", third), ("two", second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert served[1:] == [lines(ended[name])[0]["run"] for name in ("two", "three")]  # after the run that was closed
    assert "1 run is before yours." in ended["three"] and kinds(ended["three"])[-1] == "check"


def test_a_run_stopped_in_the_queue_never_starts(models: ModelPool, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, started = JobRunner(models, TraceStore()), list[Any]()
    first = jobs.start(LiveRun(asked(method="autoregressive", params={}), ""), "one")
    while "step" not in kinds(next(first)):
        pass
    monkeypatch.setattr("app.jobs.live_run.decode", lambda *order: started.append(order))
    second = jobs.start(LiveRun(asked(), ""), "two")
    while "queued" not in next(second):
        pass
    jobs.stop("two", LiveRun)
    assert lines(whole(second))[-1] == {"kind": "fault", "sentence": "Stopped before it began."}
    assert not started and len(jobs.queue) == 1
    first.close()


def test_details_can_be_asked_for_as_soon_as_the_end_is_told(jobs: JobRunner) -> None:
    for text in jobs.start(LiveRun(asked(), ""), "tab"):
        if "end" in kinds(text):
            assert jobs.store.get(lines(text)[0]["run"]) is not None


def test_a_conversation_does_not_keep_a_dropped_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its caches belong to the model's engine, and a visitor may leave the tab open for days."""
    made, usual = list[Any](), Chat.__init__

    def noted(self: Chat) -> None:
        usual(self)
        made.append(weakref.ref(self))

    monkeypatch.setattr(Chat, "__init__", noted)
    catalog = {name: replace(TOY, name=name) for name in ("toy", "other")}
    monkeypatch.setattr(CatalogEntry, "check", lambda self, report: 1)
    jobs = JobRunner(ModelPool(catalog, budget=1), TraceStore())
    whole(
        jobs.start(LiveRun(asked(prompt=[{"role": "user", "content": "On which days is the sea rough?"}]), ""), "tab")
    )
    assert len(made) == 1 and made[0]() is not None
    whole(jobs.start(LiveRun(replace(asked(), entry=catalog["other"]), ""), "another tab"))
    gc.collect()
    assert made[0]() is None and "toy" not in jobs.models


def test_one_more_than_may_wait_is_told_so(models: ModelPool) -> None:
    jobs = JobRunner(models, TraceStore(), RunQueue(1))
    first, second = jobs.start(LiveRun(asked(), ""), "one"), jobs.start(LiveRun(asked(), ""), "two")
    for going in (first, second):
        next(going), next(going)
    sentence = "Too many runs are waiting already (1): try again in a minute."
    assert lines(whole(jobs.start(LiveRun(asked(), ""), "three")))[-1] == {"kind": "fault", "sentence": sentence}
    first.close(), second.close()


def test_whoever_leaves_the_queue_makes_room(models: ModelPool) -> None:
    jobs = JobRunner(models, TraceStore())
    first, second, third = (jobs.start(LiveRun(asked(), ""), name) for name in ("one", "two", "three"))
    for going in (first, second, third):
        next(going), next(going)
    second.close()
    assert len(jobs.queue) == 2
    first.close()
    assert kinds(whole(third))[-1] == "check"


def test_a_second_run_of_a_tab_ends_its_first(jobs: JobRunner) -> None:
    first = jobs.start(LiveRun(asked(method="autoregressive", params={}, max_new_tokens=200), ""), "tab")
    while "step" not in kinds(next(first)):
        pass
    second = jobs.start(LiveRun(asked(), ""), "tab")
    next(second)
    ended = lines(whole(first))
    assert next(line for line in ended if line["kind"] == "end")["finish"] == "cancelled"
    assert kinds(whole(second))[-1] == "check"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RuntimeError("CUDA out of memory at /home/someone/secret.py"), "The run failed on this machine: try again"),
        (MemoryError(), "The run failed on this machine"),
    ],
)
def test_a_failure_is_one_sentence_without_a_stack_trace(
    jobs: JobRunner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, sentence: str
) -> None:
    def fail(self: Any, draft: Any, verdict: Any) -> None:
        raise error

    monkeypatch.setattr(METHODS["lookahead"], "observe", fail)
    last = lines(whole(jobs.start(LiveRun(asked(), ""), "tab")))[-1]
    assert last["kind"] == "fault" and last["sentence"].startswith(sentence)
    assert "secret" not in last["sentence"] and "a run failed" in caplog.text
    assert jobs.active == 0 and len(jobs.queue) == 0
    monkeypatch.undo()
    assert kinds(whole(jobs.start(LiveRun(asked(), ""), "tab")))[-1] == "check"  # the next one runs as ever


def test_a_prompt_that_does_not_fit_is_told(jobs: JobRunner) -> None:
    order = replace(asked(prompt="tide " * 20), entry=replace(TOY, max_prompt_tokens=8))
    last = lines(whole(jobs.start(LiveRun(order, ""), "tab")))[-1]
    assert last["kind"] == "fault" and last["sentence"].endswith("tokens: shorten it to 8.")


def test_the_advice_to_shorten_a_prompt_is_right_at_once(jobs: JobRunner) -> None:
    """It named the page's own limit, and whoever followed it heard of the model's next."""
    text, order = "x y " * 1_990, asked(method="autoregressive", params={})

    def sentence(prompt: str) -> str:
        last = lines(whole(jobs.start(LiveRun(replace(order, prompt=prompt), "x=1"), "tab")))[-1]
        return str(last.get("sentence", ""))

    engine = jobs.models.request(TOY).wait(60)
    assert engine is not None
    room = int(sentence(text).removesuffix(".").rsplit(" ", 1)[1])
    assert room == min(LIMITS.prompt_tokens, engine.model.card.context - order.max_new_tokens)
    fitting = next(text[:n] for n in range(len(text), 0, -64) if len(engine.encode(text[:n])) <= room)
    assert sentence(fitting) == ""


def test_a_reference_is_copied_from(jobs: JobRunner) -> None:
    document = whole(jobs.start(LiveRun(asked(method="autoregressive", params={}), ""), "tab"))
    ids = [token for line in lines(document) if line["kind"] == "step" for token in line["emitted"]]
    engine = jobs.models.request(TOY).wait(60)
    assert engine is not None
    text = "".join(engine.codec.piece(token) for token in ids)
    order = asked(method="prompt_lookup", params={}, reference=asked().prompt + text)
    end = next(line for line in lines(whole(jobs.start(LiveRun(order, ""), "tab"))) if line["kind"] == "end")
    plain = next(
        line
        for line in lines(whole(jobs.start(LiveRun(replace(order, reference=""), ""), "tab")))
        if line["kind"] == "end"
    )
    assert end["summary"]["steps"] < plain["summary"]["steps"]


def test_a_conversation_keeps_its_cache_from_turn_to_turn(jobs: JobRunner) -> None:
    turns = [{"role": "user", "content": "On which days is the sea rough?"}]
    first = lines(whole(jobs.start(LiveRun(asked(prompt=turns), ""), "tab")))
    begun = next(line for line in first if line["kind"] == "step")
    assert begun["pending"] == begun["start"] - 1  # all of it was read
    prompt, answer = jobs.tabs.take_exchange("tab") or ((), "")
    assert prompt == tuple(turns) and answer and jobs.tabs.take_exchange("tab") is None
    turns += [{"role": "assistant", "content": answer}, {"role": "user", "content": "And on Friday?"}]
    later = lines(whole(jobs.start(LiveRun(asked(prompt=turns), ""), "tab")))
    step = next(line for line in later if line["kind"] == "step")
    assert 0 < step["pending"] < step["start"] - 1 - len(turns[0]["content"].split())
    other = lines(whole(jobs.start(LiveRun(asked(prompt=turns), ""), "another tab")))
    step = next(line for line in other if line["kind"] == "step")
    assert step["pending"] == step["start"] - 1  # nobody gets at another visitor's cache
    jobs.forget("tab")
    again = lines(whole(jobs.start(LiveRun(asked(prompt=turns), ""), "tab")))
    step = next(line for line in again if line["kind"] == "step")
    assert step["pending"] == step["start"] - 1


@pytest.mark.parametrize(
    ("method", "params"),
    [("suffix", {}), ("token_recycling", {"warm_start": "across"}), ("ouroboros", {"warm_start": "across"})],
)
def test_the_speed_of_a_run_that_begins_with_what_was_learnt_is_measured(
    jobs: JobRunner, method: str, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every repetition begins with a copy of it."""
    monkeypatch.setattr("app.jobs.run_from_order.speedup", lambda ours, plain: 1.0)  # a busy machine measures none
    for _ in range(2):
        last = lines(whole(jobs.start(LiveRun(asked(method=method, params=params, compare=True), ""), "tab")))[-1]
        assert last["kind"] == "check" and last["speedup"] == 1.0


def test_what_a_method_learns_from_a_visitor_stays_with_that_visitor(jobs: JobRunner) -> None:
    """The engine is everybody's: its own memory would show one visitor's phrases in another one's record."""
    order = asked(method="ouroboros", params={"warm_start": "across"})

    def known(texts: Iterator[str]) -> int:
        """Phrases in the pool after the first step."""
        run = next(line["run"] for line in lines(whole(texts)) if line["kind"] == "play")
        kept = jobs.store.get(run)
        assert kept is not None
        entries: int = kept.trace.steps[0].panel["pool"]["entries"]
        return entries

    alone = known(jobs.start(LiveRun(order, ""), "tab"))
    assert known(jobs.start(LiveRun(order, ""), "another tab")) == alone
    assert known(jobs.start(LiveRun(order, ""), "tab")) > alone
    assert known(jobs.start(LiveRun(order, "", fresh=True), "tab")) == alone  # as the record that it is compared with
    assert known(jobs.start(Race([order], ""), "tab")) > alone == known(jobs.start(Race([order], ""), "third tab"))
    jobs.forget("tab")
    assert known(jobs.start(LiveRun(order, ""), "tab")) == alone


def test_an_answer_in_an_abandoned_conversation_is_for_nobody(jobs: JobRunner) -> None:
    turns = [{"role": "user", "content": "On which days is the sea rough?"}]
    for since in ("queue", "step"):
        going = jobs.start(LiveRun(asked(prompt=turns), ""), "tab")
        text = next(going)
        while since == "step" and "step" not in kinds(text):
            text = next(going)
        jobs.tabs.end_conversation("tab")
        assert kinds(whole(going))[-1] == "check" and jobs.tabs.take_exchange("tab") is None
    whole(jobs.start(LiveRun(asked(prompt=turns), ""), "tab"))
    assert jobs.tabs.take_exchange("tab") is not None


def test_a_sentence_begins_with_a_capital_letter_unless_a_name_does() -> None:
    """It began with "VLLM's answer"."""
    lines = ["vLLM's answer is short", "top_p must be 1", "config.json is empty", "the run has ended.", "stopped"]
    assert [as_sentence(line).split()[0] for line in lines] == ["vLLM's", "top_p", "config.json", "The", "Stopped."]
