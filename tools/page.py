"""Start the page in a separate process, and visit it without a browser, by plain requests."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import ROOT

API = "/gradio_api"
_CONFIG = re.compile(r"window\.gradio_config = (\{.*?\});</script>", re.DOTALL)


@dataclass(frozen=True)
class Reply:
    """The server's answer."""

    status: int
    headers: Mapping[str, str]
    text: str

    def json(self) -> Any:
        """Parse the text as JSON."""
        return json.loads(self.text)


@dataclass
class Visitor:
    """A visitor with a loopback address and a tab."""

    port: int
    source: str = "127.0.0.1"
    session: str = field(default_factory=lambda: secrets.token_hex(6))
    config: dict[str, Any] = field(default_factory=dict)
    cookie: str = ""  # of this visitor's browser

    def connect(self, seconds: float = 30.0) -> http.client.HTTPConnection:
        """Open a connection from this visitor's address."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds, source_address=(self.source, 0))

    def ask(self, method: str, path: str, body: bytes | None = None, seconds: float = 30.0, **headers: str) -> Reply:
        """Send one request, without following redirects."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.closing(self.connect(seconds)) as line:
            line.request(method, path, body, {"Cookie": self.cookie} | sent)
            answer = line.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, headers, answer.read().decode(errors="replace"))

    def post(self, path: str, content: object, seconds: float = 30.0, **headers: str) -> Reply:
        """Post JSON; bytes are sent unchanged."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.ask("POST", API + path, body, seconds, **{"Content_Type": "application/json", **headers})

    def program(self, path: str, content: object, seconds: float = 120.0, **headers: str) -> Reply:
        """Call the API at a path such as /v1/decode; bytes are sent unchanged."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        sent = {"Content_Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        return self.ask("POST", path, body, seconds, **sent)

    def leave(self, path: str, content: object, most: int = 300, **headers: str) -> int:
        """Call the API, read up to `most` bytes of the answer, and disconnect; returns the status."""
        sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
        with contextlib.closing(self.connect(20)) as line:
            line.request("POST", path, json.dumps(content).encode(), sent)
            answer = line.getresponse()
            answer.read1(most)
            return answer.status

    def call(self, name: str, data: object, component: str = "viewer", seconds: float = 30.0) -> Reply:
        """Call one of the functions that the page's scripts call."""
        content = {
            "data": data,
            "fn_name": name,
            "component_id": self.component(component),
            "session_hash": self.session,
        }
        return self.post("/component_server/", content, seconds)

    def event(self, number: int, data: list[Any], **more: Any) -> dict[str, Any]:
        """Make the body of an event."""
        return {"data": data, "fn_index": number, "session_hash": self.session, "event_data": None, **more}

    def join(self, button: str = "run-go", **changes: Any) -> Reply:
        """Press Run or Race; `changes` are other values of controls, by their names on the page."""
        pressed = self._pressed(button)
        names = {each["id"]: each["props"].get("elem_id", "") for each in self.read()["components"]}
        values = {each["id"]: each["props"].get("value") for each in self.read()["components"]}
        form = [changes.get(names[control].replace("-", "_"), values[control]) for control in pressed["inputs"]]
        after = next(each for each in self.read()["dependencies"] if each["trigger_after"] == pressed["id"])
        return self.post("/queue/join", self.event(after["id"], [json.dumps({"values": form})]))

    def stream(self, seconds: float = 60.0) -> Iterator[dict[str, Any]]:
        """Yield the events of this tab's runs, until the runs are over."""
        with contextlib.closing(self.connect(seconds)) as line:
            line.request("GET", f"{API}/queue/data?session_hash={self.session}", headers={"Cookie": self.cookie})
            answer = line.getresponse()
            assert answer.status == 200, answer.status
            for raw in answer:
                if raw.startswith(b"data: "):
                    message = json.loads(raw[6:])
                    yield message
                    if message["msg"] == "close_stream":
                        return

    def run(self, seconds: float = 60.0, **changes: Any) -> str:
        """Press Run and read the whole stream, as lines."""
        joined = self.join(**changes)
        assert joined.status == 200, joined.text
        return self.text(self.stream(seconds))

    @staticmethod
    def text(messages: Iterable[Mapping[str, Any]]) -> str:
        """Return the lines in the events of a run."""
        text = ""
        for message in messages:
            for value in message.get("output", {}).get("data") or []:
                if isinstance(value, str):
                    text = value
                elif isinstance(value, list):  # changes to the text sent before
                    for action, _, tail in value:
                        text = text + tail if action == "append" else tail if action == "replace" else text
        return text

    def component(self, elem_id: str) -> int:
        """Return a component's number by its name on the page."""
        return next(int(each["id"]) for each in self.read()["components"] if each["props"].get("elem_id") == elem_id)

    def _pressed(self, button: str) -> Any:
        """Return the event with which a button gathers the form."""
        target = self.component(button)
        return next(each for each in self.read()["dependencies"] if [target, "click"] in each["targets"] and each["js"])

    def read(self) -> dict[str, Any]:
        """Read the page's configuration, once."""
        if not self.config:
            match = _CONFIG.search(self.ask("GET", "/").text)
            assert match is not None, "the page has no config"
            self.config = json.loads(match[1])
        return self.config


@dataclass(frozen=True)
class Page:
    """A running page."""

    port: int
    seconds: float  # until it answered
    process: subprocess.Popen[str]
    log: Path

    @property
    def address(self) -> str:
        """Return the page's address."""
        return f"http://127.0.0.1:{self.port}/"

    def visitor(self, source: str = "127.0.0.1") -> Visitor:
        """Make a visitor."""
        return Visitor(self.port, source)

    @property
    def children(self) -> list[int]:
        """List its running child processes, as Linux lists them."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    @property
    def megabytes(self) -> float:
        """Return the memory of the process, as Linux counts it."""
        return self._status("VmRSS") / 1024

    @property
    def threads(self) -> int:
        """Count the threads of the process."""
        return self._status("Threads")

    @property
    def handles(self) -> int:
        """Count the files and sockets that the process has open."""
        return len([*Path(f"/proc/{self.process.pid}/fd").iterdir()])

    def _status(self, name: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(rf"{name}:\s+(\d+)", status)[0])


def free_port() -> int:
    """Find a port on which nothing listens.

    It is below Linux's range for outgoing connections: one of these could take it while a server starts.
    """
    for port in random.sample(range(10_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free between 10000 and 32000: end other servers on this machine")


@contextlib.contextmanager
def serving(log: Path, *flags: str, module: str = "app", **environment: str) -> Iterator[Page]:
    """Run the app, or a module that serves it, with these flags on a free port; its log goes to a file."""
    port = free_port()
    argv = [sys.executable, "-m", module, "--port", str(port), *flags]
    begin = time.perf_counter()
    with log.open("w") as stderr:
        process = subprocess.Popen(
            argv, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    with process:
        assert process.stdout is not None
        if "Specscope is at" not in process.stdout.readline():
            raise RuntimeError(f"the page did not start: {log.read_text()[-2000:]}")
        try:
            yield Page(port, time.perf_counter() - begin, process, log)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
