"""What programs call: answers, streams, errors, keys, and the queue that they share with the page."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio_client
import pytest
from starlette.datastructures import Headers
from starlette.responses import StreamingResponse
from starlette.types import Scope

from analysis.imports import read_any
from app.api.gradio_endpoint import STREAMS, GradioEndpoint
from app.api.keys import Caller, Keys
from app.api.service import ApiService
from app.server.middleware.errors import RequestError
from app.server.middleware.origin import Origin
from app.server.run_queue import RunQueue
from app.state import AppState
from decoding.errors import ParamError
from tests import ROOT
from tools.page import Page, Reply

from .conftest import KEY

PROMPT = "Monday: high tide at six"
ASK = {"prompt": PROMPT, "method": "lookahead", "params": {"W": 4, "N": 4, "G": 4}, "max_new_tokens": 24}
CHAT = {"messages": [{"role": "user", "content": PROMPT}], "method": "lookahead", "max_tokens": 24}


class Client:
    """Calls the service without a network."""

    def __init__(self, service: ApiService, path: str = "") -> None:
        self.service, self.path = service, path

    def ask(self, method: str, path: str, body: object = None, client: str = "192.0.2.1", **headers: str) -> Reply:
        """Send a request and read the whole response."""
        import asyncio

        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope: Scope = {"type": "http", "method": method, "path": path, "headers": pairs, "asgi": {"version": "3.0"}}
        sent = list[Any]()

        async def send(message: Any) -> None:
            sent.append(message)

        async def call() -> None:
            messages = iter([{"type": "http.request", "body": data, "more_body": False}])

            async def receive() -> Any:
                if (message := next(messages, None)) is None:
                    await asyncio.Event().wait()
                return message

            await self.service(scope, receive, send, lambda: Origin(client, "localhost", "http", self.path))

        asyncio.run(call())
        got = Headers(raw=sent[0]["headers"])
        return Reply(sent[0]["status"], dict(got), b"".join(each.get("body", b"") for each in sent[1:]).decode())

    def post(self, path: str, body: object, **headers: str) -> Reply:
        return self.ask("POST", path, body, **headers)


@pytest.fixture
def client(app_state: AppState) -> Client:
    return Client(ApiService(app_state, Keys()))


def events(text: str) -> list[str]:
    return [part.removeprefix("data: ") for part in text.split("\n\n") if part.startswith("data: ")]


def sentence(reply: Reply) -> str:
    """Return the sentence of an error, which has OpenAI's form."""
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["code"] == reply.status
    return str(error["message"])


def test_decode_answers_with_the_text_its_counts_and_the_record(client: Client, app_state: AppState) -> None:
    reply = client.post("/v1/decode", ASK)
    answer = reply.json()
    assert reply.status == 200 and answer["record"] == f"http://localhost/?run={answer['id']}"
    below = Client(ApiService(app_state, Keys()), "/scope").post("/v1/decode", ASK).json()
    assert below["record"] == f"http://localhost/scope/?run={below['id']}"  # a proxy takes the path away
    trace = app_state.store.find(answer["id"]).trace
    assert trace.summary is not None and answer["text"] == trace.summary.text and answer["finish"] == "length"
    assert answer["new_tokens"] == len(trace.ids) == 24 and answer["steps"] == len(trace.steps)
    assert answer["accepted"] == sum(step.accepted for step in trace.steps)
    assert answer["params"]["W"] == 4 and answer["method"] == "lookahead" and answer["lossless"]
    proof = app_state.store.find(answer["id"]).proof.check
    assert proof is not None and proof["exact"] == 24
    assert app_state.jobs.active == 0 and len(app_state.jobs.queue) == 0


def test_a_stream_has_the_text_in_pieces_and_ends_with_the_answer(client: Client) -> None:
    reply = client.post("/v1/decode", {**ASK, "stream": True})
    *parts, last = map(json.loads, events(reply.text))
    assert reply.headers["content-type"].startswith("text/event-stream") and "event" in reply.headers["content-type"]
    assert "".join(part["text"] for part in parts) == last["text"] == client.post("/v1/decode", ASK).json()["text"]


def test_a_chat_is_answered_as_openai_answers_with_vllms_metrics(client: Client, tmp_path: Path) -> None:
    """Its answers open as run folders: what our importer of vLLM's answers refuses would be no such answer."""
    reply = client.post("/v1/chat/completions", {**CHAT, "return_token_ids": True, "user": "me", "n": 1})
    answer = reply.json()
    [choice] = answer["choices"]
    assert reply.status == 200 and answer["object"] == "chat.completion" and choice["finish_reason"] == "stop"
    assert choice["message"]["role"] == "assistant" and answer["usage"]["completion_tokens"] == len(choice["token_ids"])
    assert answer["metrics"]["queue_time_ms"] >= 0 and answer["model"] == "toy"
    imported = read_any(reply.text.encode(), name="answers")
    [run] = imported.runs.to_pylist()
    assert (
        run["new_tokens"] == len(choice["token_ids"])
        and run["method"] == "lookahead"
        and run["text"] == choice["message"]["content"]
    )
    speculative = answer["metrics"]["speculative_decoding"]
    accepted = [row["accepted"] for row in imported.steps.to_pylist() if row["drafted"]]
    assert accepted == speculative["per_step_accepted"] and len(accepted) == speculative["num_spec_steps"]


def test_a_streamed_chat_has_chunks_and_ends_with_the_metrics(client: Client) -> None:
    body = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    *chunks, done = events(client.post("/v1/chat/completions", body).text)
    assert done == "[DONE]"
    *parts, last = map(json.loads, chunks)
    assert {part["object"] for part in (*parts, last)} == {"chat.completion.chunk"}
    assert parts[0]["choices"][0]["delta"]["role"] == "assistant" and last["choices"][0]["finish_reason"] == "stop"
    text = "".join(part["choices"][0]["delta"]["content"] for part in parts)
    assert text == client.post("/v1/chat/completions", CHAT).json()["choices"][0]["message"]["content"]
    assert last["usage"]["completion_tokens"] > 0 and last["metrics"]["speculative_decoding"]["num_spec_steps"] > 0


def test_a_stop_string_is_in_no_piece(client: Client) -> None:
    text = client.post("/v1/decode", ASK).json()["text"]
    stop = text[len(text) // 2 :][:3]
    reply = client.post("/v1/decode", {**ASK, "stop": [stop], "stream": True})
    *parts, last = map(json.loads, events(reply.text))
    assert last["finish"] == "stop" and last["text"] == text[: text.index(stop)]
    assert "".join(part["text"] for part in parts) == last["text"]


def test_models_are_listed_with_their_methods(client: Client) -> None:
    listed = client.ask("GET", "/v1/models").json()
    [model] = listed["data"]
    assert listed["object"] == "list" and model["id"] == "toy" and "lookahead" in model["methods"]
    assert client.ask("GET", "/v1/models/toy").json() == model
    missing = client.ask("GET", "/v1/models/..%2f")
    assert missing.status == 404 and "choose one of toy" in sentence(missing)


@pytest.mark.parametrize(
    ("path", "body", "status", "part"),
    [
        ("/v1/decode", b"", 400, "not JSON"),
        ("/v1/decode", b"[" * 100_000, 400, "not JSON"),
        ("/v1/decode", b'{"prompt": NaN}', 400, "not JSON"),
        ("/v1/decode", b'{"prompt": "\\ud800"}', 400, "half of a character"),
        ("/v1/decode", b"\xff", 400, "not JSON"),
        ("/v1/decode", [], 400, "must be a JSON object"),
        ("/v1/decode", {}, 400, "prompt is empty"),
        ("/v1/decode", {**ASK, "promt": "x"}, 400, "there is no field 'promt'"),
        ("/v1/decode", {**ASK, "model": "gpt-4"}, 404, "choose one of toy"),
        ("/v1/decode", {**ASK, "model": ["toy"]}, 404, "there is no model"),
        ("/v1/decode", {**ASK, "method": "magic"}, 400, "magic"),
        ("/v1/decode", {**ASK, "method": "medusa", "params": {}}, 400, "lacks the parts"),
        ("/v1/decode", {**ASK, "params": {"W": "four"}}, 400, "W"),
        ("/v1/decode", {**ASK, "params": [1]}, 400, ""),
        ("/v1/decode", {**ASK, "sampling": {"temperature": "hot"}}, 400, "emperature"),
        ("/v1/decode", {**ASK, "max_new_tokens": 10**9}, 400, "256"),
        ("/v1/decode", {**ASK, "max_new_tokens": True}, 400, "whole number"),
        ("/v1/decode", {**ASK, "stream": "yes"}, 400, "stream must be true or false"),
        ("/v1/decode", {**ASK, "raw": 1}, 400, "raw must be true or false"),
        ("/v1/decode", {**ASK, "stop": 5}, 400, "stop strings"),
        ("/v1/decode", {**ASK, "prompt": "x" * 9_000}, 400, "shorten it to 8000"),
        ("/v1/decode", b'{"prompt": "' + b"x" * 300_000 + b'"}', 413, "larger than 256 KB"),
        ("/v1/chat/completions", {**CHAT, "messages": "hello"}, 400, "messages must be a list"),
        ("/v1/chat/completions", {**CHAT, "messages": []}, 400, "must be a text or a conversation"),
        ("/v1/chat/completions", {**CHAT, "messages": [[]]}, 400, "a role and a text"),
        ("/v1/chat/completions", {**CHAT, "messages": [{"role": "tool", "content": "x"}]}, 400, "a role"),
        (
            "/v1/chat/completions",
            {**CHAT, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "http://x"}]}]},
            400,
            "must be a text",
        ),
        ("/v1/chat/completions", {**CHAT, "tools": []}, 400, "there is no field 'tools'"),
        ("/v1/chat/completions", {**CHAT, "n": 2}, 400, "n must be 1"),
        ("/v1/chat/completions", {**CHAT, "temperature": 1e400}, 400, "not JSON"),
        ("/v1/chat/completions", {**CHAT, "max_tokens": 5, "max_completion_tokens": 6}, 400, "leave one out"),
        ("/v1/embeddings", {}, 404, "no such page"),
    ],
)
def test_a_mistake_is_one_sentence_in_openais_form(
    client: Client, path: str, body: object, status: int, part: str
) -> None:
    reply = client.post(path, body)
    assert reply.status == status and part in sentence(reply), reply.text
    assert len(reply.text) < 600 and "Traceback" not in reply.text


def test_what_is_read_is_not_posted(client: Client) -> None:
    assert client.ask("GET", "/v1/decode").status == client.post("/v1/models", {}).status == 405


def test_calls_wait_in_the_queue_of_the_page_and_a_full_one_is_429(client: Client, app_state: AppState) -> None:
    app_state.jobs.queue = RunQueue(1, 1)
    with app_state.jobs.queue.join("somebody"):  # is being served
        waiting = list[Reply]()
        thread = threading.Thread(target=lambda: waiting.append(client.post("/v1/decode", ASK)))
        thread.start()
        while len(app_state.jobs.queue) < 2:
            thread.join(0.01)
        full = client.post("/v1/decode", ASK, client="192.0.2.2")
        assert full.status == 429 and int(full.headers["retry-after"]) > 0 and "waiting already" in sentence(full)
        streamed = client.post("/v1/decode", {**ASK, "stream": True}, client="192.0.2.2")
        assert streamed.status == 429
    thread.join(30)
    assert [reply.status for reply in waiting] == [200] and waiting[0].json()["waited_seconds"] > 0


def test_a_model_that_cannot_be_loaded_and_a_server_that_ends_are_503(
    client: Client, app_state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise RuntimeError("/a/folder of this machine")

    with monkeypatch.context() as patch:
        patch.setattr("app.jobs.live_run.Play", broken)
        failed = client.post("/v1/decode", ASK)
        assert failed.status == 500 and "folder" not in failed.text and "failed on this machine" in sentence(failed)
    app_state.jobs.close(0.0)
    ended = client.post("/v1/decode", ASK)
    assert ended.status == 503 and "retry-after" in ended.headers and "being stopped" in sentence(ended)


def test_a_caller_who_leaves_cancels_its_run(app_state: AppState) -> None:
    """Others wait for the engine."""
    import asyncio

    service, sent = ApiService(app_state, Keys()), list[Any]()
    body = json.dumps(ASK).encode()

    async def call() -> None:
        messages = iter([{"type": "http.request", "body": body, "more_body": False}, {"type": "http.disconnect"}])

        async def receive() -> Any:
            message = next(messages)
            if message["type"] == "http.disconnect":
                while len(app_state.jobs.queue) != 2:
                    await asyncio.sleep(0)
            return message

        async def send(message: Any) -> None:
            sent.append(message)

        scope: Scope = {"type": "http", "method": "POST", "path": "/v1/decode", "headers": []}
        await service(scope, receive, send, lambda: Origin("192.0.2.1", "localhost", "http"))

    with app_state.jobs.queue.join("somebody"):
        asyncio.run(call())
        until = threading.Event()
        for _ in range(200):
            if len(app_state.jobs.queue) == 1:
                break
            until.wait(0.05)
        assert not sent and len(app_state.jobs.queue) == 1 and app_state.jobs.active == 0


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", "Bearer \xe9"])
def test_without_a_key_nobody_is_answered(app_state: AppState, header: str) -> None:
    client = Client(ApiService(app_state, Keys.of(None, {"SPECSCOPE_API_KEY": KEY})))
    for method, path in (("GET", "/v1/models"), ("POST", "/v1/decode"), ("GET", "/v1/nothing")):
        reply = client.ask(method, path, ASK, authorization=header)
        assert reply.status == 401 and "key" in sentence(reply) and reply.headers["www-authenticate"] == "Bearer"
    assert client.ask("GET", "/v1/models", authorization=f"Bearer {KEY}").status == 200


def test_a_key_is_one_visitor_wherever_it_calls_from(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n\nanother-key-of-mine\n")
    keys = Keys.of(str(file), {})

    def client(key: str, address: str) -> str:
        return keys.client(Headers({"authorization": f"Bearer {key}"}), address)

    assert client(KEY, "192.0.2.1") == client(KEY, "192.0.2.9") != client("another-key-of-mine", "192.0.2.1")
    assert KEY not in client(KEY, "192.0.2.1")
    assert Keys().client(Headers(), "192.0.2.1") == "192.0.2.1"
    with pytest.raises(RequestError):
        client("a-third-key-of-mine", "192.0.2.1")


@pytest.mark.parametrize("content", ["", "short", "two words of a key here", "ü" * 20, f"{KEY}\nshort"])
def test_a_key_file_with_a_mistake_is_one_sentence(tmp_path: Path, content: str) -> None:
    file = tmp_path / "keys"
    file.write_text(content)
    with pytest.raises(ParamError):
        Keys.of(str(file), {})
    with pytest.raises(ParamError, match="cannot be read: No such file"):
        Keys.of(str(tmp_path / "none"), {})


@pytest.fixture
def page(programs: Page) -> Page:
    return programs


def posting(page: Page) -> Callable[..., Reply]:
    visitor = page.visitor()

    def post(path: str, body: object, **headers: str) -> Reply:
        sent = {"Content_Type": "application/json", "Authorization": f"Bearer {KEY}", **headers}
        return visitor.ask("POST", path, json.dumps(body).encode(), 60, **sent)

    return post


def test_a_served_page_answers_programs_and_shows_their_records(page: Page) -> None:
    post = posting(page)
    answer = post("/v1/chat/completions", CHAT)
    assert answer.status == 200, answer.text
    record = answer.json()["specscope"]["record"]
    assert record.startswith(page.address)
    lines = page.visitor().call("open_recording", record.partition("run=")[2]).json()["lines"]
    assert json.loads(lines.splitlines()[-1])["check"]["exact"] == answer.json()["usage"]["completion_tokens"]
    log = page.log.read_text()
    assert KEY not in log and PROMPT not in log


@pytest.fixture
def gradio(page: Page, monkeypatch: pytest.MonkeyPatch) -> Iterator[gradio_client.Client]:
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # it would ask the hub about AI agents
    headers = {"Authorization": f"Bearer {KEY}"}
    made = gradio_client.Client(page.address, headers=headers, analytics_enabled=False, verbose=False)
    yield made
    made.close()


@pytest.mark.filterwarnings("ignore:Setting per-request cookies")  # that client does
def test_gradios_client_finds_decode_and_gets_its_answer_in_pieces(page: Page, gradio: gradio_client.Client) -> None:
    described = gradio.view_api(return_format="dict")
    assert isinstance(described, dict) and [*described["named_endpoints"]] == ["/decode"]
    assert not described["unnamed_endpoints"]
    job = gradio.submit(PROMPT, "lookahead", {"W": 4, "N": 4, "G": 4}, max_new_tokens=24, api_name="/decode")
    answer = job.result(timeout=60)
    *parts, last = job.outputs()
    assert last == answer and all(answer["text"].startswith(part["text"]) for part in parts)
    assert answer["new_tokens"] == 24 and answer["params"]["W"] == 4 and answer["method"] == "lookahead"
    assert answer["record"] == f"{page.address}?run={answer['id']}"
    lines = page.visitor().call("open_recording", answer["id"]).json()["lines"]
    assert json.loads(lines.splitlines()[-1])["check"]["exact"] == 24


@pytest.mark.filterwarnings("ignore:Setting per-request cookies")
def test_the_call_in_the_docs_is_answered(page: Page, gradio: gradio_client.Client) -> None:
    """The fixture keeps this client, too, from asking the hub."""
    text = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8")
    example, names = text.split("```py\n")[1].split("```")[0], dict[str, Any]()
    for placeholder, real in (("http://127.0.0.1:7860", page.address), ("KEY", KEY)):
        assert placeholder in example
        example = example.replace(placeholder, real)
    exec(compile(example, "docs/hosting.md", "exec"), names)
    names["client"].close()
    assert names["answer"]["method"] == "lookahead" and names["answer"]["params"]["W"] == 4


@pytest.mark.filterwarnings("ignore:Setting per-request cookies")
def test_a_mistake_is_a_sentence_in_gradios_client(page: Page, gradio: gradio_client.Client) -> None:
    with pytest.raises(gradio_client.exceptions.AppError, match="shorten it to 8000"):
        gradio.predict("x" * 9_000)
    with pytest.raises(gradio_client.exceptions.AuthenticationError):
        gradio_client.Client(page.address, analytics_enabled=False, verbose=False)


def test_the_values_of_an_event_come_once_and_from_its_caller(app_state: AppState) -> None:
    """Whoever learns an event's name must not choose what another caller decodes."""
    import asyncio

    endpoint, caller = GradioEndpoint(app_state), Caller("192.0.2.1", "http://localhost")

    async def calling() -> list[str]:
        stream = endpoint.read(STREAMS, caller)
        assert isinstance(stream, StreamingResponse)
        messages = stream.body_iterator
        asked = json.loads(str(await anext(messages)).removeprefix("data: "))
        body = {"event_id": asked["event_id"], "data": ["x", "magic"]}
        for wrong in ({**body, "event_id": "other"}, {**body, "event_id": 5}, [], {}):
            with pytest.raises(RequestError):
                endpoint.take(wrong, caller)
        with pytest.raises(RequestError):
            endpoint.take(body, Caller("192.0.2.2", "http://localhost"))
        endpoint.take(body, caller)
        with pytest.raises(RequestError):
            endpoint.take(body, caller)
        return [str(message) async for message in messages]

    [last] = asyncio.run(calling())
    assert "process_completed" in last and "unknown method" in last


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Authorization": "Bearer no-key-of-this-server"}, 401),
    ],
)
def test_other_sites_cannot_call(page: Page, headers: dict[str, str], status: int) -> None:
    reply = posting(page)("/v1/decode", ASK, **headers)
    assert reply.status == status and sentence(reply)
    assert reply.headers["x-content-type-options"] == "nosniff"
