"""What programs are refused is counted: once, by its reason, as what visitors of the page are refused."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tools.page import Page, Visitor

from .conftest import KEY
from .test_watched import scrape

WITH_KEY = {"Authorization": f"Bearer {KEY}"}
ASK = {"prompt": "Monday: high tide at six", "max_new_tokens": 4}
CHAT = "/v1/chat/completions"
VALUES = "/v1/gradio/queue/data"


def tool_call(name: str = "decode", **arguments: object) -> dict[str, Any]:
    """Return a call of the tool as the Model Context Protocol has it."""
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


@pytest.fixture
def page(programs: Page) -> Page:
    return programs


@contextlib.contextmanager
def counted(page: Page, **expected: int) -> Iterator[Visitor]:
    """Check that the block adds these refusals to those that the server has counted, and no others."""

    def refusals() -> dict[str, float]:
        name = "specscope_refusals_total "
        return {key.removeprefix(name): count for key, count in scrape(page).items() if key.startswith(name)}

    before = refusals()
    yield page.visitor()
    after = refusals()
    assert {key: after[key] - before.get(key, 0) for key in after if after[key] != before.get(key)} == expected


@pytest.mark.parametrize(
    ("reason", "path", "body", "headers"),
    [
        ("401", "/v1/decode", ASK, {}),
        ("401", CHAT, ASK, {"Authorization": "Bearer no-key-of-this-server"}),
        ("401", VALUES, {}, {}),
        ("401", "/mcp", tool_call(**ASK), {}),
        ("401", "/v1/nothing", {}, {}),
        ("400", "/v1/decode", b"{", WITH_KEY),
        ("400", "/v1/decode", b'{"prompt": "\\ud800"}', WITH_KEY),
        ("400", "/mcp", b"[" * 9_000, WITH_KEY),
        ("400", "/mcp", {}, WITH_KEY),
        ("403", "/v1/decode", ASK, {**WITH_KEY, "Origin": "https://evil.example"}),
        ("404", "/v1/nothing", {}, WITH_KEY),
        ("404", "/v1/decode", {**ASK, "model": "gpt-4"}, WITH_KEY),
        ("404", VALUES, {"event_id": "x", "data": []}, WITH_KEY),
        ("404", "/mcp", tool_call("encode"), WITH_KEY),
        ("405", "/v1/models", {}, WITH_KEY),
        ("413", "/v1/decode", b"x" * 300_000, WITH_KEY),
        ("415", "/v1/decode", ASK, {**WITH_KEY, "Content_Type": "text/plain"}),
        ("421", "/mcp", tool_call(**ASK), {**WITH_KEY, "Host": "evil.example"}),
        ("settings", "/v1/decode", {}, WITH_KEY),
        ("settings", "/v1/decode", {**ASK, "max_new_tokens": 10**9, "stream": True}, WITH_KEY),
        ("settings", CHAT, {"messages": "hello"}, WITH_KEY),
        ("settings", "/mcp", tool_call(**{**ASK, "method": "magic"}), WITH_KEY),
        ("settings", "/mcp", tool_call(prompt=[]), WITH_KEY),
    ],
)
def test_a_refused_call_is_counted_once_by_its_reason(
    page: Page, reason: str, path: str, body: object, headers: Mapping[str, str]
) -> None:
    """The API's refusals were in no count, so nobody saw who tried keys."""
    with counted(page, **{reason: 1}) as visitor:
        visitor.program(path, body, **headers)


def test_a_refused_reader_is_counted(page: Page) -> None:
    for path in ("/v1/models", "/config", "/v1/gradio/queue/join"):
        with counted(page, **{"401": 1}) as visitor:
            assert visitor.ask("GET", path).status == 401


def test_what_gradios_client_hears_in_its_stream_is_counted(page: Page) -> None:
    with counted(page, settings=1) as visitor, contextlib.closing(visitor.connect()) as line:
        line.request("GET", "/v1/gradio/queue/join", headers=WITH_KEY)
        stream = line.getresponse()
        event = json.loads(stream.readline().removeprefix(b"data: "))["event_id"]
        visitor.program(VALUES, {"event_id": event, "data": ["x", "magic"]}, **WITH_KEY)
        assert b"unknown method" in stream.read()


def test_a_call_that_is_answered_is_no_refusal(page: Page) -> None:
    with counted(page) as visitor:
        for path, body in (("/v1/decode", ASK), ("/mcp", tool_call(**ASK))):
            assert visitor.program(path, body, **WITH_KEY).status == 200
