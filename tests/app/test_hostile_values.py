"""Values that no control sends, to every event of the page: refused at the border, and never an error of a handler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gradio as gr
import pytest

from app.server.control_values import check_of
from tests.tiers import choose, sampled, slow
from tools.fuzz import errors_in, forms_of, serving_fuzz
from tools.page import Page, Visitor

QUICK: list[Any] = [None, {"a": 1}, [[]], "no such name", True, ["lookahead", 5]]
LONG: list[Any] = [
    *(
        0,
        -1,
        2**70,
        1.5,
        1e308,
        "",
        "\0",
        "../../etc/passwd",
        "x" * 2_000,
        "9" * 2_000,
        "\u202e",
        "__class__",
    ),
    *(
        [],
        [[["x"]]],
        [None],
        [{}],
        ["a"] * 256,
        ["a"] * 300,
        {},
        {"__type__": "update"},
        {"path": "/etc/passwd"},
        False,
    ),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with serving_fuzz(tmp_path_factory.mktemp("hostile")) as running:
        yield running


def is_queued(dependency: dict[str, Any]) -> bool:
    return dependency["queue"] is not False


def send(visitor: Visitor, dependency: dict[str, Any], data: list[Any]) -> str:
    """Send an event as the page does, and return what came of it."""
    body = visitor.event(dependency["id"], data, event_data={"address": ""})
    if not is_queued(dependency):
        reply = visitor.post("/run/predict", body)
        assert reply.status in (200, 422), (dependency["id"], reply.text[:300])
        return reply.text
    reply = visitor.post("/queue/join", body)
    assert reply.status in (200, 422), (dependency["id"], reply.text[:300])
    return json.dumps([*visitor.stream()]) if reply.status == 200 else reply.text


@slow
@pytest.mark.parametrize("value", choose([*QUICK, *LONG], QUICK), ids=lambda value: repr(value)[:20])
def test_no_value_makes_a_handler_fail(page: Page, value: Any) -> None:
    """Such values reached the handlers, and cost a line in the log of the owner's for each."""
    visitor = page.visitor()
    for dependency in visitor.read()["dependencies"]:
        if dependency["backend_fn"] and dependency["inputs"]:
            said = send(visitor, dependency, [value] * len(dependency["inputs"]))
            assert "Traceback" not in said and '"success": false' not in said
    assert not errors_in(page.log.read_text())


@slow  # a server of its own
@sampled
@pytest.mark.parametrize("value", choose([*QUICK, *LONG], QUICK), ids=lambda value: repr(value)[:20])
def test_no_value_in_a_form_makes_a_handler_fail(page: Page, value: Any) -> None:
    """The values of a form come as one text, which the request filter does not read."""
    visitor = page.visitor()
    config = visitor.read()
    by_id = {each["id"]: each for each in config["dependencies"]}
    for number, controls in forms_of(config).items():
        said = send(visitor, by_id[number], [json.dumps({"values": [value] * len(controls)})])
        assert "Traceback" not in said and '"success": false' not in said
        if is_queued(by_id[number]):
            assert "refused" in said
    assert not errors_in(page.log.read_text())


@slow  # a server of its own
def test_an_address_in_an_event_is_parsed_before_it_is_used(page: Page) -> None:
    visitor = page.visitor()
    for address in ("?run=none", "run=none&branch=9n9", "?" + "&" * 500, "run=%ff&force=%00&branch=1k2", "x" * 60_000):
        for dependency in visitor.read()["dependencies"]:
            if dependency["collects_event_data"]:
                body = visitor.event(dependency["id"], [], event_data={"address": address})
                path = "/queue/join" if is_queued(dependency) else "/run/predict"
                assert visitor.post(path, body).status == 200
                if is_queued(dependency):
                    [*visitor.stream()]
    assert not errors_in(page.log.read_text())


def test_a_control_whose_values_nothing_checks_cannot_be_built_in() -> None:
    with pytest.raises(TypeError, match="may send"):
        check_of(gr.File())


def test_a_menu_of_several_choices_sends_a_list_of_texts() -> None:
    check = check_of(gr.Dropdown(["a"], multiselect=True))
    assert check(["a", "b"]) and check([])
    assert not any(check(value) for value in ("a", None, [None], [["a"]], ["a"] * 300))
