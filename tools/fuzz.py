"""Send hostile inputs to every path of the server and to every reader of files: `make fuzz`, or `python -m tools.fuzz`.

Inputs are valid ones with a changed part, and values of every kind. None may be answered by a 5xx, take longer than
some seconds, leave a stack trace in an answer, or an error in the log. A reader may raise only errors that have a
sentence for the visitor. Hypothesis generates the inputs, always the same, and shrinks one that fails.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.imports import read_any
from app.address import parse
from app.api.requests import chat_call, decode_call
from app.models.catalog import default_catalog, read_catalog
from app.server.middleware.bodies import parse_json
from app.store.brought_files import read_files
from decoding.errors import SpecscopeError
from decoding.trace.file import parse_trace
from tools import ROOT
from tools.page import API, Page, Visitor, serving

_FLAGS = ("--model", "pocket", "--api", "--mcp", "--metrics")
_LATEST = 20.0  # seconds
_READ = 1.0  # seconds of a job's stream, after which its visitor leaves
_GOLDEN = [file.read_bytes() for file in sorted((ROOT / "tests" / "golden").glob("*.jsonl"))]
_TEXTS = ("", "\0", "\ud800", "../../etc/passwd", "<script>", "pocket", "9" * 5_000, "x" * 9_000, "1e999", "é\u202e")
_TOML = (
    b'memory_gb = 4\n[[model]]\nname = "a"\nmodel = "org/model"\nrevision = "' + b"a" * 40 + b'"\ndtype = "float32"\n'
)
_DECODE = {"prompt": "The tide", "model": "pocket", "method": "lookahead", "params": {"W": 4}, "max_new_tokens": 1}
_DECODE |= {"sampling": {"temperature": 0.5, "seed": 1}, "stop": ["x"], "stream": False}
_CHAT = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "stream": True, "stream_options": {}}
_CALL = {"name": "decode", "arguments": {"prompt": "x", "max_new_tokens": 1}}
_MCP = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": _CALL}
_VALUES = {"event_id": "x", "data": ["x"], "fn_index": 0, "session_hash": "x"}
_ADDRESS = [
    "run",
    "step",
    "screen",
    "lesson",
    "at",
    "prompt",
    "method",
    "model",
    "seed",
    "W",
    "temperature",
    "methods",
    "sql",
    "folder",
    "view",
    "chat",
    "phase",
]

scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.sampled_from(_TEXTS))
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=6), each, max_size=4)
)
_WORDS = (
    "html",
    "csv",
    "parquet",
    "trace",
    "vllm",
    "compared",
    "f.method=lookahead",
    "sql=select+*+from+steps",
    "verify",
)
_NAMES = ("pocket", "lookahead", "autoregressive", "defaults", "Chat", "Raw", "Message", "[]", "bridge", "1e9")
_RUNS = ("lookahead", "jacobi-defaults")  # recordings of the gallery
words = st.sampled_from([*_WORDS, *_RUNS, *(base64.b64encode(data).decode() for data in _GOLDEN[:2])])
queries = st.dictionaries(
    st.sampled_from(_ADDRESS) | st.text(max_size=5), st.text(max_size=20) | st.sampled_from(_TEXTS)
)


def changed(valid: dict[str, Any]) -> st.SearchStrategy[bytes]:
    """Return bodies like a valid one with some fields changed; some are truncated or not JSON."""
    fields = st.dictionaries(st.sampled_from([*valid, "x"]), values, min_size=1, max_size=3)
    bodies = fields.map(lambda more: json.dumps({**valid, **more}).encode())
    return bodies | values.map(lambda value: json.dumps(value).encode()) | spliced([json.dumps(valid).encode()])


def spliced(valid: list[bytes]) -> st.SearchStrategy[bytes]:
    """Return valid bytes with a piece removed, doubled or replaced."""

    def splice(data: bytes, begin: float, length: int, piece: bytes) -> bytes:
        at = int(begin * len(data))
        return data[:at] + piece + data[at + length :]

    pieces = st.binary(max_size=8) | st.sampled_from([b"[" * 3_000, b"-1", b"1e999", b"null", b'"', b"}", b"\n", b"{}"])
    return st.builds(splice, st.sampled_from(valid), st.floats(0, 1), st.integers(-40, 400), pieces)


class Fuzz:
    """Counts the inputs sent, by target; raises AssertionError for an answer that no input may get."""

    def __init__(self, scale: float) -> None:
        self.scale, self.sent = scale, Counter[str]()

    def send(self, name: str, count: int, inputs: st.SearchStrategy[Any], ask: Callable[[Any], object]) -> None:
        """Try `count` inputs."""
        checks = [*HealthCheck]
        most = max(1, round(count * self.scale))

        @settings(max_examples=most, derandomize=True, deadline=None, database=None, suppress_health_check=checks)
        @given(inputs)
        def one(value: Any) -> None:
            begin = time.monotonic()
            ask(value)
            assert time.monotonic() - begin < _LATEST, "it took too long"
            self.sent[name] += 1

        one()
        sys.stderr.write(f"{self.sent[name]} {name}\n")

    def read(self, folder: Path) -> None:
        """Try every reader of visitors' files, and that of the owner's list of models."""
        catalog, models = default_catalog(False), folder / "models.toml"

        def models_file(data: bytes) -> None:
            models.write_bytes(data)
            read_catalog(models)

        def call(body: bytes, make: Callable[..., Any] = decode_call) -> None:
            make(catalog, next(iter(catalog)), parse_json(body))

        files = spliced(_GOLDEN)
        named = st.tuples(st.text(max_size=8), files.map(lambda data: base64.b64encode(data).decode()))
        self.send("trace", 3_000, files, _tolerating(parse_trace))
        self.send("import", 2_000, files | changed(_CHAT), _tolerating(lambda data: read_any(data, name="x")))
        self.send("run folder", 600, named.map(list) | values, _tolerating(read_files))
        self.send("address", 3_000, queries, lambda query: parse(query, catalog))
        self.send("models file", 2_000, spliced([_TOML]), _tolerating(models_file))
        self.send("decode", 2_000, changed(_DECODE), _tolerating(call))
        self.send("chat", 2_000, changed(_CHAT), _tolerating(lambda body: call(body, chat_call)))

    def ask(self, page: Page) -> None:
        """Try every path of a server."""
        visitor = page.visitor()
        config = visitor.read()
        inputs = {each["id"]: each["inputs"] for each in config["dependencies"]}
        defaults = {each["id"]: each["props"].get("value") for each in config["components"]}
        lengths = [visitor.component(name) for name in ("run-length", "race-length")]
        forms = forms_of(config)
        names = {(each["id"], name) for each in config["components"] for name in each["props"].get("server_fns", ())}
        for path, valid in (
            ("/v1/decode", _DECODE),
            ("/v1/chat/completions", _CHAT),
            ("/v1/gradio/queue/data", _VALUES),
            ("/mcp", _MCP),
        ):
            self.send(path, 1_000, changed(valid), partial(_program, visitor, path))

        named = scalars | st.sampled_from(_NAMES)

        def event(number: int, data: list[Any], query: dict[str, str]) -> dict[str, Any]:
            filled = [*data, *[None] * len(inputs[number])][: len(inputs[number])]
            address = urlencode(query, errors="replace")
            return visitor.event(number, filled, event_data={"address": address})

        def form(number: int, changes: dict[int, Any]) -> dict[str, Any]:
            controls = forms[number]
            form = [1 if control in lengths else defaults[control] for control in controls]
            for place, value in changes.items():
                form[place % len(form)] = value
            return visitor.event(number, [json.dumps({"values": form})])

        several = st.lists(named | st.lists(named, max_size=3), max_size=6)
        runs = st.builds(lambda query, run: {**query, "run": run}, queries, st.sampled_from(_RUNS))
        events = st.builds(event, st.sampled_from([*inputs]), several, queries | runs)
        changes = st.dictionaries(
            st.integers(0, 99), named | st.lists(named, max_size=3) | values, min_size=1, max_size=4
        )
        filled = st.builds(form, st.sampled_from([*forms]), changes)
        bodies = (events | filled).map(lambda made: json.dumps(made).encode())
        shapes = changed(visitor.event(0, []))
        loads = st.tuples(queries.map(lambda query: urlencode(query, errors="replace")[:20_000]), bodies | shapes)
        self.send(
            "events", 2_500, loads, lambda made: _check(visitor.post(f"/run/predict?{made[0]}", made[1], _LATEST))
        )
        self.send("runs", 600, bodies | shapes, partial(_job, visitor))
        calls = st.tuples(st.sampled_from(sorted(names)), values | words | st.lists(words | scalars, max_size=5))
        tab = {"session_hash": visitor.session}
        self.send(
            "calls",
            2_500,
            calls.map(lambda made: {"component_id": made[0][0], "fn_name": made[0][1], "data": made[1], **tab}),
            lambda body: _check(visitor.post("/component_server/", body, _LATEST)),
        )
        addresses = queries.map(lambda query: "/?" + urlencode(query, errors="replace")[:20_000])
        roots = st.sampled_from(
            ["/", "/v1/models/", "/v1/", "/specscope/", "/assets/", f"{API}/", "/healthz", "/metrics", "/config"]
        )
        ends = st.text(max_size=30) | st.sampled_from(_TEXTS)
        paths = st.builds(lambda folder, end: folder + quote(end, errors="replace"), roots, ends)
        self.send("addresses", 2_000, addresses | paths, lambda path: _check(visitor.ask("GET", path, None, _LATEST)))
        about = b"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 2"
        head = b"POST /v1/decode HTTP/1.1\r\n" + about + b"\r\n\r\n{}"
        get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        self.send("bytes", 1_500, spliced([head, get]), lambda data: _raw(visitor, data))


def serving_fuzz(folder: Path) -> contextlib.AbstractContextManager[Page]:
    """Serve a page with every path enabled; its log is the folder's `log`."""
    (folder / "models").mkdir()
    return serving(folder / "log", *_FLAGS, "--bring-your-own", str(folder / "models"))


def errors_in(log: str) -> list[str]:
    """Return the errors in a log: no visitor's input may cause one."""
    lines = log.splitlines()
    return [line for line in lines if line.split(" ")[2:3] == ["error"] or line.startswith("Traceback")]


def forms_of(config: dict[str, Any]) -> dict[int, list[int]]:
    """Map the events that receive a form as one text to the controls whose values the text holds."""
    dependencies = config["dependencies"]
    collects = {each["id"]: each["inputs"] for each in dependencies if each["js"] and not each["backend_fn"]}
    return {
        each["id"]: collects[each["trigger_after"]]
        for each in dependencies
        if each["trigger_after"] in collects and each["backend_fn"] and len(each["inputs"]) == 1
    }


def _job(visitor: Visitor, body: bytes) -> None:
    """Start a job and read the beginning of its stream; the next one of its kind ends it."""
    reply = visitor.post("/queue/join", body, _LATEST)
    _check(reply, 503)
    if reply.status != 200:
        return
    begin = time.monotonic()
    for message in visitor.stream(_LATEST):
        assert message.get("success", True), message
        # The stream has no end while another job of the tab is running.
        if message["msg"] == "process_completed" or time.monotonic() - begin > _READ:
            return


def _program(visitor: Visitor, path: str, body: bytes) -> None:
    _check(visitor.program(path, body, _LATEST))


def _tolerating(read: Callable[[Any], object]) -> Callable[[Any], None]:
    def tolerant(value: Any) -> None:
        with contextlib.suppress(SpecscopeError):
            read(value)

    return tolerant


def _check(reply: Any, *allowed: int) -> None:
    assert reply.status < 500 or reply.status in allowed, f"{reply.status} {reply.text[:300]}"
    assert "Traceback" not in reply.text


def _raw(visitor: Visitor, data: bytes) -> None:
    """Send raw bytes, and read the answer; closing the connection ends an incomplete request."""
    with socket.create_connection(("127.0.0.1", visitor.port), 5) as line:
        line.sendall(data)
        line.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(OSError):
            while more := line.recv(65_536):
                answer += more
    assert not answer.startswith(b"HTTP/1.1 5"), answer[:300]
    assert b"Traceback" not in answer


def main() -> int:
    """Send all inputs, and print how many went to each target."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of inputs (default: 1)")
    fuzz = Fuzz(parser.parse_args().scale)
    with tempfile.TemporaryDirectory() as folder:
        fuzz.read(Path(folder))
        with serving_fuzz(Path(folder)) as page:
            page.visitor().run(60, run_length=8)
            fuzz.ask(page)
            assert page.visitor().ask("GET", "/healthz").status == 200
        log = (Path(folder) / "log").read_text()
    for name, count in fuzz.sent.items():
        sys.stdout.write(f"{count:6} {name}\n")
    errors = errors_in(log)
    sys.stdout.write(f"{fuzz.sent.total():6} in all. Errors in the log: {len(errors)}\n" + "\n".join(errors[:9]) + "\n")
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())
