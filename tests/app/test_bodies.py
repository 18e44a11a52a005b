"""Bodies of requests: of exactly the shape that the page's events have."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr
import pytest

from app.server.middleware.bodies import Shapes, check_event
from app.server.middleware.errors import RequestError
from tests.event_loops import discard_event_loops

# Gradio's parts warn, and it leaves event loops to the collector.
pytestmark = pytest.mark.filterwarnings("default", "ignore:unclosed event loop:ResourceWarning")


def with_address(event: gr.EventData) -> None:
    """Give the page's requests an address, as its events have one."""


@pytest.fixture(scope="module")
def shapes() -> Shapes:
    with gr.Blocks(analytics_enabled=False) as page:
        button = gr.Button()
        button.click(with_address, None, None, queue=False)
        button.click(lambda: None, None, None, queue=False)
    discard_event_loops()
    return Shapes.of(page)


def checked(shapes: Shapes, number: int, data: Any) -> Any:
    body = {"fn_index": number, "data": [], "session_hash": "a", "event_data": data}
    return json.loads(check_event(json.dumps(body).encode(), shapes.quick, str)[0])["event_data"]


def test_an_event_brings_an_address_where_its_function_reads_one(shapes: Shapes) -> None:
    """Without it Gradio fails, and prints a stack trace for each such request."""
    assert checked(shapes, 0, {"address": "?run=a", "more": "x"}) == {"address": "?run=a"}
    assert checked(shapes, 0, {}) == {"address": ""}
    for data in (None, [], "?run=a", {"address": 5}, {"address": ["a"]}):
        with pytest.raises(RequestError, match="does not match this page"):
            checked(shapes, 0, data)
        assert checked(shapes, 1, data) is None
