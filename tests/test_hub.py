"""The hub's client against a server on this machine that answers as the hub does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from decoding.hub import HubId, parse_id
from tests import ROOT
from tests.families import tiny

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CODE = """
import json, sys
from decoding.errors import ModelError
from decoding.hub import fetch, fetched
said = []
try:
    folder = fetch(sys.argv[1], lambda what, share: said.append((what, share)), revision=sys.argv[2])
    got = sorted(path.name for path in folder.iterdir())
    print(json.dumps({"files": got, "said": said, "again": fetched(sys.argv[1], revision=sys.argv[2]) == folder}))
except ModelError as error:
    print(json.dumps({"error": str(error), "again": fetched(sys.argv[1], revision=sys.argv[2]) is not None}))
"""

PLACES = """
import json, sys
from pathlib import Path
from decoding.errors import ModelError, ModelMissingError
from decoding.model.files import find_folder
from decoding.parts.named import find_part
say = lambda what, share: None
def asked(find, *names, **options):
    try:
        return str(find(*names, say, **options))
    except ModelError as error:
        return type(error).__name__ + ": " + str(error)
name = sys.argv[1]
print(json.dumps([
    asked(find_folder, name, download=False),
    asked(find_folder, name),
    asked(find_part, "medusa", name, download=False),
    asked(find_part, "datastore", name),
    asked(find_folder, "org/model@" + "9" * 40),
]))
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a hub that has one model, with a file beside it that could run code."""
    folder = tmp_path / "files"
    tiny("llama").save_pretrained(folder)
    (folder / "modeling.py").write_text("raise SystemExit")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            path = self.path.partition("?")[0]
            if path == f"/api/models/org/model/revision/{COMMIT}":
                named = [{"rfilename": name} for name in files]
                data = json.dumps({"id": "org/model", "sha": COMMIT, "siblings": named}).encode()
            elif path.startswith(f"/api/models/org/model/tree/{COMMIT}"):
                rows = [{"type": "file", "path": name, "size": len(data), "oid": "0"} for name, data in files.items()]
                data = json.dumps(rows).encode()
            elif path.removeprefix(f"/org/model/resolve/{COMMIT}/") in files:
                data = files[path.rpartition("/")[2]]
            else:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Content-Type", "application/json")
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{len(data)}-{path.rpartition("/")[2]}"')
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def ask(hub: str, home: Path, name: str, code: str = CODE) -> Any:
    """Return what a process says that fetches a model; the client reads its settings when it is imported."""
    here = {"HF_ENDPOINT": hub, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, name, COMMIT],
        cwd=ROOT,
        env={**os.environ, **here},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_a_model_is_fetched_with_its_size_and_found_again(hub: str, tmp_path: Path) -> None:
    """Only files that cannot run code come, and who waits sees of how many bytes."""
    got = ask(hub, tmp_path / "home", "org/model")
    assert got["files"] == ["config.json", "generation_config.json", "model.safetensors"] and got["again"] is True
    progress = got["said"]
    assert isinstance(progress, list) and progress[0] == ["fetching org/model", 0.0]
    assert any(" MB" in what and share == 1.0 for what, share in progress), progress


def test_a_model_that_the_hub_has_not_is_said_in_a_sentence(hub: str, tmp_path: Path) -> None:
    """A name mistyped, or a gated model."""
    got = ask(hub, tmp_path / "home", "org/other")
    assert str(got["error"]).startswith("the model 'org/other' could not be fetched (") and got["again"] is False
    assert "\n" not in str(got["error"])


def test_an_id_may_name_its_revision() -> None:
    """Only a commit's full name is pinned: branches and tags move, and short names may become those of two."""
    assert parse_id(f"org/model@{COMMIT}") == HubId("org/model", COMMIT)
    assert parse_id("org/model") == HubId("org/model", None)
    assert parse_id("gpt2@v1.0") == HubId("gpt2", "v1.0") and parse_id("gpt2", owned=True) is None
    for text, pinned in ((f"org/model@{COMMIT}", True), ("org/model@main", False), (f"org/model@{COMMIT[:7]}", False)):
        parsed = parse_id(text)
        assert parsed is not None and parsed.pinned is pinned and str(parsed) == text
    for text in (
        "org/model@",
        "org/a/b",
        "../etc",
        "org/..",
        "org/model@../x",
        "a b",
        "org/model@a@b",
        "",
        "/a",
        "a\n",
    ):
        assert parse_id(text) is None, text


@pytest.mark.slow  # a process of its own
def test_models_and_parts_are_found_by_their_revision(hub: str, tmp_path: Path) -> None:
    """An id without its revision would bring other weights next month; offline, only what was fetched is found."""
    missing, model, heads, store, other = ask(hub, tmp_path / "home", f"org/model@{COMMIT}", PLACES)
    assert missing == f"ModelMissingError: the model 'org/model@{COMMIT}' is not on this machine: choose another one"
    assert Path(model).name == COMMIT and heads == model
    assert Path(store) == Path(model) / "model.safetensors"
    assert other.startswith("ModelError: there is no folder 'org/model@999")
