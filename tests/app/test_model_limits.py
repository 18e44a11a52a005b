"""A model's own limits hold wherever a visitor asks for more: in the form, in an address, in a file."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import gradio as gr
import pytest

from app.branch_from_run import branch_of
from app.controls import order
from app.jobs.landscape import landscape_of
from app.jobs.live_run import LiveRun
from app.pages.race import RaceForm
from app.pages.run import build
from app.pages.run_form import RunForm
from app.pages.viewer import race_viewer, viewer
from app.settings_from_run import settings_from_run
from app.state import AppState
from decoding.errors import ParamError
from decoding.types import Trace
from tests.event_loops import discard_event_loops

from .conftest import TOY, dropped, lines

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the event loops that Gradio leaves behind
SMALL = replace(TOY, max_prompt_tokens=10, max_new_tokens=6)
PROMPT = "Monday: high tide at six"


@pytest.fixture
def small(app_state: AppState) -> AppState:
    """A page whose only model has limits of its own."""
    app_state.catalog = {"toy": SMALL}
    return app_state


@pytest.fixture
def trace(small: AppState) -> Trace:
    """A run that was longer than that."""
    engine = small.jobs.models.request(SMALL).wait(60)
    assert engine is not None
    return engine.generate(PROMPT, "jacobi", max_new_tokens=24).trace


def asked(small: AppState, prompt: str = PROMPT, tokens: int = 6) -> Any:
    settings: dict[str, Any] = {"method": "jacobi", "params": {}, "sampling": {}}
    return order(small.catalog, model="toy", prompt=prompt, max_new_tokens=tokens, **settings)


def test_an_order_above_them_is_refused(small: AppState) -> None:
    with pytest.raises(ParamError, match="the number of new tokens must be a whole number from 1 to 6, not 7"):
        asked(small, tokens=7)
    for prompt, sentence in ((PROMPT, ""), (PROMPT * 2, "The prompt has 18 tokens: shorten it to 10.")):
        run = LiveRun(asked(small, prompt), "x=1")
        last = lines(deque(small.jobs.start(run, "tab"), maxlen=1).pop())[-1]
        assert last.get("sentence", "") == sentence


def test_a_file_cannot_ask_for_more(small: AppState, trace: Trace) -> None:
    branch, _ = branch_of(small, dropped(small, trace) | {"branch": "0k0", "force": "a"})
    assert branch.max_new_tokens == 6 and branch.origin is not None
    assert branch.origin.trace.header.max_new_tokens <= trace.steps[0].start + 6
    long = replace(trace, header=replace(trace.header, prompt=trace.header.prompt * 2))
    query = dropped(small, long)
    with pytest.raises(ParamError, match="prompt has 18 tokens, more than this page reads"):
        branch_of(small, query | {"branch": "0k0", "force": "a"})
    with pytest.raises(ParamError, match="has 24 tokens, above the 16 that this page measures"):
        landscape_of(small, query)


def test_a_longer_run_fills_the_form_with_the_most(small: AppState, trace: Trace) -> None:
    state, remarks = settings_from_run(small, dropped(small, trace))
    assert state.length == 6
    assert remarks == ["The run was longer than this page allows: the length is set to 6 new tokens."]


def test_the_forms_show_them() -> None:
    """Whoever chooses another model reads how long its texts may be."""
    app_state = AppState({"toy": SMALL, "other": replace(TOY, name="other")}, "toy")
    with gr.Blocks():
        forms: list[RunForm | RaceForm] = [build(app_state, viewer(app_state))]
        forms.append(RaceForm(app_state, race_viewer(app_state)))
    discard_event_loops()
    for form, method in zip(forms, ("jacobi", ["jacobi"]), strict=True):
        assert (form.length.value, form.length.maximum, form.length.info) == (6, 6, "1 to 6")
        _, length = form.show_model("other", method)  # type: ignore[arg-type]  # each form has its own
        assert (length["maximum"], length["info"]) == (256, "1 to 256")
