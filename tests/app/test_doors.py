"""Real requests to the page: what is refused, and that the rest is answered."""

from __future__ import annotations

import asyncio
import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import HTTPException
from starlette.types import Message, Receive, Scope, Send

from app.doors import Doors
from app.limits import LIMITS

ROOT = Path(__file__).parents[2]
Answer = tuple[int, dict[str, str], str]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    argv = [sys.executable, "-m", "app", "--replay-only", "--port", str(port)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as served:
        assert served.stdout is not None and "Specscope is at" in served.stdout.readline()
        yield port
        served.terminate()


def ask(port: int, method: str, path: str, body: object = None, **headers: str) -> Answer:
    """One request as it is: nothing is followed."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        line.request(method, path, body, headers)  # type: ignore[arg-type]
        answer = line.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    finally:
        line.close()


def test_the_page_is_answered(port: int) -> None:
    status, _, text = ask(port, "GET", "/?run=lookahead&step=3")
    assert status == 200 and "Specscope" in text


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/?page=unknown", "./"),
        ("/?page=unknown&run=lookahead&step=3&prompt=a%26b+c", "./?run=lookahead&step=3&prompt=a%26b+c"),
        ("/?run=x&page=a&page=b", "./?run=x"),
    ],
)
def test_an_unknown_page_leads_to_the_page(port: int, path: str, there: str) -> None:
    """Gradio looks for it without a check, and would answer with an error of its own."""
    status, headers, _ = ask(port, "GET", path)
    assert (status, headers["location"]) == (307, there)
    assert ask(port, "GET", there.removeprefix("."))[0] == 200


@pytest.mark.parametrize("path", ["/gradio_api/upload", "/gradio_api/upload/", "/gradio_api/deep_link?session_hash=a"])
def test_nothing_is_written_for_a_stranger(port: int, path: str) -> None:
    boundary = 'multipart/form-data; boundary="x"'
    file = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nA\r\n--x--\r\n'
    for method in ("GET", "POST"):
        assert ask(port, method, path, file, **{"Content-Type": boundary})[0] in (404, 405)


def test_a_large_body_is_refused_before_it_is_read(port: int) -> None:
    large = b" " * (LIMITS.body_bytes + 1)
    status, _, text = ask(port, "POST", "/gradio_api/component_server", b"{}", **{"Content-Length": "10" * 20})
    assert status in (400, 413) and "Traceback" not in text
    status, _, text = ask(port, "POST", "/gradio_api/component_server", large)
    assert (status, text) == (413, "The request is larger than 6 MB: send less.")


def test_a_large_body_without_a_length_is_cut_off() -> None:
    heard = list[int]()

    async def listen(scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            heard.append(len((await receive())["body"]))

    async def piece() -> Message:
        return {"type": "http.request", "body": b" " * 2**20, "more_body": True}

    async def answer(message: Message) -> None:
        raise AssertionError("nobody answers here")

    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": []}
    with pytest.raises(HTTPException, match="larger than 6 MB"):
        asyncio.run(Doors(listen)(scope, piece, answer))
    assert sum(heard) == LIMITS.body_bytes
