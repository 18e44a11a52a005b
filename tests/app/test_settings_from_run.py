"""What a form takes over from a run, and the sentences on what it does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.store.folder import RunFolder
from analysis.store.folder_traces import trace_of
from analysis.store.tables import tables_of
from app.examples import EXAMPLES
from app.models.catalog import POCKET, SMOLLM2
from app.models.entry import CatalogEntry
from app.pages.form import control
from app.server.limits import LIMITS
from app.settings_from_run import order_of, settings_from_run
from app.state import AppState
from app.store.recordings import Recordings
from app.store.trace_store import StoredRun, replay
from decoding import load
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.sampling import Sampling
from decoding.types import Trace
from viz.stream.play import Play

from ..viz.records import parsed
from .conftest import CATALOG, TOY


@pytest.fixture
def app_state() -> AppState:
    made = AppState(CATALOG, "toy")
    assert made.jobs.models.request(TOY).wait(60) is not None
    return made


@pytest.fixture
def trace(app_state: AppState) -> Trace:
    """A sampled run of the toy."""
    engine = app_state.jobs.models.request(TOY).wait(60)
    assert engine is not None
    sampling = {"temperature": 0.5, "seed": 3}
    return engine.generate("Monday: high tide", "lookahead", {"W": 6}, sampling, 8).trace


def keep(app_state: AppState, trace: Trace) -> dict[str, str]:
    """The address of a trace that was dropped."""
    app_state.store.put("dropped", StoredRun(trace, replay(trace, "dropped")[0]))
    return {"run": "dropped"}


@pytest.mark.parametrize("method", METHODS)
def test_a_runs_settings_are_called_as_on_the_form(trace: Trace, method: str) -> None:
    """A run's title said "max_ngram", where the form has "Longest suffix"."""
    form = [control(row, "p").label for row in (*METHODS[method].Params.describe(), *Sampling.describe())]
    header = parsed(Play(replace(trace.header, method=method)).begin())[0]["header"]
    assert [*header["labels"].values()] == form


def test_a_dropped_trace_is_ordered_again_as_it_was(app_state: AppState, trace: Trace) -> None:
    state, remarks = settings_from_run(app_state, keep(app_state, trace))
    order = order_of(app_state, state)
    assert remarks == []
    assert (order.entry, order.method.name, order.max_new_tokens) == (TOY, "lookahead", 8)
    assert order.params.to_json() == trace.header.params and order.sampling.to_json() == trace.header.sampling
    engine = app_state.jobs.models.request(TOY).wait(60)
    assert engine is not None and isinstance(order.prompt, str)
    assert engine.encode(order.prompt if order.raw else engine.as_turn(order.prompt)) == list(trace.header.prompt)


def test_what_the_address_says_counts(app_state: AppState, trace: Trace) -> None:
    query = keep(app_state, trace) | {"method": "jacobi", "prompt": "Friday", "length": "5"}
    state, _ = settings_from_run(app_state, query)
    assert (state.method, state.prompt, state.length) == ("jacobi", "Friday", 5)


def test_what_cannot_be_taken_is_said_and_left(app_state: AppState, trace: Trace) -> None:
    header = trace.header
    far = replace(header, model=replace(header.model, name="elsewhere"))
    state, remarks = settings_from_run(app_state, keep(app_state, replace(trace, header=far)))
    assert state.model is None and "does not have the run's model" in remarks[0]
    with pytest.raises(ParamError, match="does not have the run's model"):
        order_of(app_state, state)
    long = replace(header, max_new_tokens=4 * LIMITS.new_tokens)
    state, remarks = settings_from_run(app_state, keep(app_state, replace(trace, header=long)))
    assert state.length == LIMITS.new_tokens and str(LIMITS.new_tokens) in " ".join(remarks)
    heads = replace(header, method="medusa", params={})
    assert "lacks the parts" in " ".join(settings_from_run(app_state, keep(app_state, replace(trace, header=heads)))[1])


@pytest.mark.parametrize("params", [{"W": "<img>"}, {"W": -1}, {"nothing": 1}, {"W": 16, "N": 16, "G": 64}])
def test_hostile_settings_are_answered_with_a_sentence(
    app_state: AppState, trace: Trace, params: dict[str, object]
) -> None:
    wrong = replace(trace, header=replace(trace.header, params={**trace.header.params, **params}))
    _, remarks = settings_from_run(app_state, keep(app_state, wrong))
    assert len(remarks) == 1 and remarks[0].endswith(".")


def test_no_model_is_loaded_only_to_fill_a_form(trace: Trace) -> None:
    """The tokenizer alone says what the prompt was."""
    app_state = AppState(CATALOG, "toy")
    state, remarks = settings_from_run(app_state, keep(app_state, trace))
    assert "toy" not in app_state.jobs.models
    assert state.prompt == "Monday: high tide" and state.raw and remarks == []


TALK = [
    {"role": "system", "content": "Answer in one sentence."},
    {"role": "user", "content": "I like to eat carrots. <|user|>?"},
    {"role": "assistant", "content": "That sounds nice."},
    {"role": "user", "content": "What do I like?"},
]


@pytest.mark.parametrize("messages", [TALK[1:2], TALK[1:], TALK], ids=["message", "conversation", "system prompt"])
def test_a_run_folders_prompt_is_copied_as_the_messages_that_it_was(messages: list[dict[str, str]]) -> None:
    """Run decoded what was left of it: a later turn lost its template, and tokens that no guess had repeated."""
    engine, app_state = load("pocket"), AppState({"pocket": POCKET}, "pocket")
    trace = engine.generate(engine.codec.encode_chat(messages), "jacobi", max_new_tokens=4).trace
    folder = RunFolder(Path("nowhere"), *tables_of(trace), {"finished": True, "missing": {}})
    query = keep(app_state, trace_of(folder, 0, LIMITS.upload_bytes, LIMITS.files)[0])
    state, remarks = settings_from_run(app_state, query)
    assert state.prompt == (messages[0]["content"] if len(messages) == 1 else tuple(messages))
    assert not state.raw and remarks == [] and order_of(app_state, state).prompt == state.prompt


@pytest.mark.parametrize(
    ("model", "why"), [("toy", "no text becomes exactly the tokens"), ("elsewhere", "tokenizer of the run's model")]
)
def test_a_prompt_that_cannot_be_copied_faithfully_is_not_copied(
    app_state: AppState, trace: Trace, model: str, why: str
) -> None:
    """A mutilated prompt in the form looks like the run's own, and Run decodes it."""
    engine = app_state.jobs.models.request(TOY).wait(60)
    assert engine is not None
    letters = tuple(token for letter in "Monday" for token in engine.codec.encode_part(letter))
    header = replace(trace.header, prompt=letters, model=replace(trace.header.model, name=model))
    state, remarks = settings_from_run(app_state, keep(app_state, replace(trace, header=header)))
    assert state.prompt is None and state.example is None
    assert [why in remark for remark in remarks if "prompt field was left as it was" in remark] == [True]
    state.model = "toy"
    with pytest.raises(ParamError, match="prompt could not be copied"):
        order_of(app_state, state)


def test_the_prompts_of_the_embedded_familys_recordings_are_theirs() -> None:
    """They are read from the recipes, without a tokenizer."""
    app_state, engine = (
        AppState({"pocket": POCKET, "SmolLM2 135M": replace(SMOLLM2, download=True)}, "pocket"),
        load("pocket"),
    )
    for recording in Recordings():
        state, _ = settings_from_run(app_state, {"run": recording.id})
        header = app_state.recordings.header(recording.id)
        # A record may be older than a setting, which has its default then.
        settings = METHODS[header.method].Params.parse(header.params).to_json()
        assert state.params == settings and state.method == header.method and state.prompt
        if state.model == "pocket":
            assert isinstance(state.prompt, str) and not state.raw
            assert engine.encode(engine.as_turn(state.prompt)) == list(header.prompt)
    assert not list(app_state.jobs.models._engines)
    assert settings_from_run(app_state, {"run": "lookahead"})[0].example == "sum"
    assert EXAMPLES["sum"].prompt == settings_from_run(app_state, {"run": "lookahead"})[0].prompt


def test_a_model_whose_weights_are_not_here_is_not_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.models.catalog.smollm2.here", lambda: None)
    entry: CatalogEntry = replace(SMOLLM2, download=False)
    app_state = AppState({"pocket": POCKET, entry.name: entry}, "pocket")
    state, remarks = settings_from_run(app_state, {"run": "smollm2-prime-lookahead"})
    assert state.model is None and "does not have the run's model" in remarks[0]
