"""The tool of the Model Context Protocol, called by the protocol's own client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tools.page import Page, Reply, serving

mcp = pytest.importorskip("mcp.client.client", reason="the package mcp is not installed")

pytestmark = pytest.mark.slow  # they share a server of their own
PROMPT = "Monday: high tide at six"
ASK = {"prompt": PROMPT, "method": "lookahead", "params": {"W": 4, "N": 4, "G": 4}, "max_new_tokens": 24}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("mcp")
    (folder / "models.toml").write_text("[[model]]\nname = 'toy'\nmodel = 'toy'\n")
    with serving(folder / "log", "--mcp", "--models", str(folder / "models.toml")) as running:
        yield running


def call(page: Page, **body: Any) -> Any:
    async def calling() -> Any:
        async with mcp.Client(f"{page.address}mcp") as client:
            [tool] = (await client.list_tools()).tools
            assert tool.name == "decode" and "prompt" in tool.input_schema["required"]
            return await client.call_tool("decode", body)

    return asyncio.run(calling())


def test_a_client_finds_the_tool_and_gets_the_answer_of_decode(page: Page) -> None:
    result = call(page, **ASK)
    answer = result.structured_content
    assert not result.is_error and answer["new_tokens"] == 24 and answer["method"] == "lookahead"
    assert answer["record"] == f"{page.address}?run={answer['id']}"
    lines = page.visitor().call("open_recording", answer["id"]).json()["lines"]
    assert json.loads(lines.splitlines()[-1])["check"]["exact"] == 24
    assert PROMPT not in page.log.read_text()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"method": "magic"}, "magic"),
        ({"model": "gpt-4"}, "choose one of toy"),
        ({"max_new_tokens": 10**6}, "256"),
        ({"prompt": "x" * 9_000}, "shorten it to 8000"),
    ],
)
def test_a_mistake_is_a_sentence_for_the_model(page: Page, change: dict[str, Any], part: str) -> None:
    result = call(page, **ASK | change)
    assert result.is_error and part in result.content[0].text and "Traceback" not in result.content[0].text


def post(page: Page, body: bytes, **headers: str) -> Reply:
    sent = {"Content_Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    return page.visitor().ask("POST", "/mcp", body, **sent)


@pytest.mark.parametrize("body", [b"", b"[" * 100_000, b'{"a": NaN}', b'{"a": "\\ud800"}', b"{}", b"[]", b"5"])
def test_a_hostile_body_is_refused(page: Page, body: bytes) -> None:
    reply = post(page, body)
    assert 400 <= reply.status < 500 and "Traceback" not in reply.text


def test_only_its_own_path_is_offered_and_other_sites_are_refused(page: Page) -> None:
    assert post(page, b"x" * 300_000).status == 413
    assert post(page, b"{}", Host="evil.example").status == 421
    assert post(page, b"{}", Origin="https://evil.example").status == 403
    assert page.visitor().ask("GET", "/mcp").status == 405
    assert page.visitor().ask("GET", "/v1/models").status == 404  # --api offers that
