"""Guardrails: nothing of a refused answer reaches a visitor, and the owner learns how well a model moderates."""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

import pytest

from analysis.guardrails import CATEGORIES, SYSTEM_PROMPT, Moderation, classify, read_prompts, with_system_prompt
from app.jobs import guardrails
from app.jobs.guardrails import MODES, Guardrails
from app.jobs.live_run import LiveRun
from app.jobs.race import Race
from app.jobs.run_from_order import prompt_of
from app.jobs.runner import JobRunner
from app.models.catalog import SMOLLM2
from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool
from app.server.log import facts_of
from app.store.trace_store import TraceStore
from app.ui import LaunchOptions, build, make_state
from decoding import load
from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ParamError
from tests.event_loops import discard_event_loops

from .conftest import asked, kinds, lines

ANSWER = "the answer"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return load("pocket", device="cpu")


@pytest.fixture
def moderated(models: ModelPool, monkeypatch: pytest.MonkeyPatch) -> JobRunner:
    """A page whose model finds everything acceptable."""
    made = JobRunner(models, TraceStore(), guardrails=Guardrails(["moderate"]))
    monkeypatch.setattr(guardrails, "classify", lambda engine, text, **options: "acceptable")
    return made


def refuse(monkeypatch: pytest.MonkeyPatch, *, prompt: bool) -> list[str]:
    """Have prompts or answers refused; returns the texts that are classified."""
    texts = list[str]()

    def verdict(engine: Engine, text: str, **options: Any) -> str:
        texts.append(text)
        return "hateful" if (len(texts) % 2 == 1) is prompt else "acceptable"

    monkeypatch.setattr(guardrails, "classify", verdict)
    return texts


def whole(jobs: JobRunner, job: Any) -> list[dict[str, Any]]:
    return lines(deque(jobs.start(job, "tab"), maxlen=1).pop())


def counted(caplog: pytest.LogCaptureFixture, event: str) -> list[tuple[str, ...]]:
    """Return what the metrics count of an event."""
    facts = [facts_of(record) for record in caplog.records]
    return [tuple(value for name, value in each.items() if name != "event") for each in facts if event in each.values()]


def test_an_answer_is_shown_after_it_passed(moderated: JobRunner, caplog: pytest.LogCaptureFixture) -> None:
    """No step may come before the verdict; after it the record is that of any run."""
    caplog.set_level(logging.INFO, "app")
    texts = [*moderated.start(LiveRun(asked(), ""), "tab")]
    first = next(number for number, text in enumerate(texts) if "step" in kinds(text))
    assert "classify the answer" in texts[first - 1] and "end" not in kinds(texts[first - 1])
    plain = JobRunner(moderated.models, TraceStore())
    emitted = [
        [line["emitted"] for line in whole(jobs, LiveRun(asked(), "")) if line["kind"] == "step"]
        for jobs in (moderated, plain)
    ]
    assert emitted[0] == emitted[1]
    assert counted(caplog, "verdict") == [("prompt", "acceptable"), ("answer", "acceptable")] * 2


@pytest.mark.parametrize("prompt", [True, False])
def test_what_is_refused_leaves_nothing(
    moderated: JobRunner, prompt: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in the stream, nor in the store, nor by the run's id; the log has the category, and no text."""
    caplog.set_level(logging.INFO, "app")
    texts, what = refuse(monkeypatch, prompt=prompt), "prompt" if prompt else "answer"
    stored = list[Any]()
    for text in moderated.start(LiveRun(asked(), ""), "tab"):
        run = lines(text)[0]["run"]
        stored.append((moderated.store.streaming.get(run), moderated.store.get(run)))
    assert set(stored) == {(None, None)} and set(kinds(text)) <= {"host", "state", "fault"}
    assert lines(text)[-1]["sentence"] == (
        f"The guardrails of this page refused the {what}: the model found hateful, harassing or violent content such "
        "as discrimination, self-harm or bullying; change the prompt."
    )
    assert texts[0] == asked().prompt and len(texts) == (1 if prompt else 2)
    assert counted(caplog, "verdict")[-1] == (what, "hateful") and counted(caplog, "refusal") == [("guardrails",)]
    logged = "".join(record.getMessage() for record in caplog.records)
    assert f"the guardrails found the {what} of a run hateful" in logged and not any(text in logged for text in texts)
    assert moderated.tabs.learnt("tab", "", asked()) == {}


def test_a_race_shows_only_lanes_that_passed(
    moderated: JobRunner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "app")
    refuse(monkeypatch, prompt=False)
    got = whole(moderated, Race([asked(), asked(method="jacobi", params={})], ""))
    assert [line["lane"] for line in got if line["kind"] == "fault"] == [0, 1]
    assert not [line for line in got if line["kind"] == "step"] and got[-1]["runs"] == []
    assert counted(caplog, "refusal") == [("guardrails",)] * 2


def test_a_model_that_does_not_chat_cannot_moderate(models: ModelPool) -> None:
    """Shown unchecked, the answer would break what the page promises."""
    got = whole(JobRunner(models, TraceStore(), guardrails=Guardrails(["moderate"])), LiveRun(asked(), ""))
    assert got[-1]["kind"] == "fault" and "Toy only continues texts, so it cannot moderate" in got[-1]["sentence"]


def test_the_model_itself_names_a_category(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else it writes is no verdict."""
    for written, category in (("0", "acceptable"), ("2: hateful", "hateful"), ("9", "unclear"), ("No.", "unclear")):
        monkeypatch.setattr(Codec, "continuation", lambda codec, before, ids, written=written: written)
        assert classify(engine, "Hello.") == category
    monkeypatch.undo()
    with pytest.raises(ParamError, match="too long for pocket to moderate"):
        classify(engine, "the dog " * 2000)


def test_the_system_prompt_comes_first_and_once(engine: Engine) -> None:
    user, own = {"role": "user", "content": "Hello."}, {"role": "system", "content": "Be brief."}
    guarded = with_system_prompt(engine.codec, [user])
    assert SYSTEM_PROMPT in guarded[0]["content"] and with_system_prompt(engine.codec, guarded) == guarded
    first, second = with_system_prompt(engine.codec, [own, user])
    assert first == {"role": "system", "content": f"{SYSTEM_PROMPT}\n\nBe brief."} and second is user
    ordered = asked(prompt="Hello.")
    ids = prompt_of(engine, ordered, guarded=True)
    assert "Always assist with care" in engine.codec.decode(ids) and len(ids) > len(prompt_of(engine, ordered))


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the event loops that Gradio leaves behind
def test_visitors_read_what_is_on_in_both_forms() -> None:
    page = build(make_state(LaunchOptions(guardrails=MODES)))
    discard_event_loops()
    shown = [block for block in page.blocks.values() if str(getattr(block, "elem_id", "")).endswith("-guardrails")]
    assert [getattr(block, "value", None) for block in shown] == [Guardrails(MODES).sentence] * 2
    assert "system prompt" in Guardrails(MODES).sentence and Guardrails().sentence == ""


def test_the_owner_reads_which_model_cannot_moderate() -> None:
    unknown = CatalogEntry("ours", "org/model", "0" * 40)
    first, second = Guardrails(["moderate"]).doubts([SMOLLM2, unknown])
    assert first == "SmolLM2 135M cannot moderate: of acceptable prompts it passes 2.5%"
    assert second.startswith("how well ours moderates was not measured: run `python -m decoding guardrails`")


def test_precision_and_recall_count_acceptable_prompts_as_positives() -> None:
    got = Moderation({"acceptable": {"acceptable": 3, "illegal": 1}, "illegal": {"acceptable": 1, "unclear": 4}})
    assert (got.precision, got.recall) == (0.75, 0.75) and Moderation({}).precision is None
    labels = [label for label, _ in read_prompts()]
    assert set(labels) == set(CATEGORIES) and labels.count("acceptable") == len(labels) // 2 == 40
