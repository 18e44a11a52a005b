"""An application state on the toy, which loads in an instant."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.controls import Order, order
from app.jobs.runner import JobRunner
from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool
from app.state import AppState
from app.store.trace_store import StoredRun, TraceStore, replay
from decoding.embedded import DRAFTER, FOLDERS, PARTS, TARGET
from decoding.types import Trace
from tools.page import Page, serving

TOY = CatalogEntry("toy", "toy", draft="toy")
CATALOG = {"toy": TOY}
SECRET = "cellar-of-the-host"  # stands in the name of every folder
KEY = "a-key-of-this-server"
TABLES = ("texts", "strings", "values")  # lines that other lines refer to


def asked(**changes: Any) -> Order:
    """Make a short run on the toy, with whatever a test changes."""
    usual: dict[str, Any] = {
        "model": "toy",
        "method": "lookahead",
        "params": {"W": 4, "N": 4, "G": 4},
        "sampling": {},
        "prompt": "Monday: high tide at six",
        "max_new_tokens": 24,
    }
    return order(CATALOG, **usual | changes)


@pytest.fixture(scope="session")
def models() -> ModelPool:
    made = ModelPool(CATALOG)
    assert made.request(TOY).wait(60) is not None
    return made


@pytest.fixture
def jobs(models: ModelPool) -> JobRunner:
    return JobRunner(models, TraceStore())


@pytest.fixture
def app_state(models: ModelPool) -> AppState:
    made = AppState(CATALOG, "toy")
    made.jobs.models = models
    return made


@pytest.fixture
def cellar(tmp_path: Path) -> Path:
    """Make a good copy of pocket with all its parts, each under a name of the host's own."""
    home = tmp_path / SECRET
    shutil.copytree(FOLDERS[TARGET], home / f"{SECRET}-target")
    shutil.copytree(FOLDERS[DRAFTER], home / f"{SECRET}-drafter")
    for part in ("medusa", "kangaroo"):
        shutil.copytree(PARTS[TARGET][part], home / f"{SECRET}-{part}")
    shutil.copy(PARTS[TARGET]["datastore"], home / f"{SECRET}.safetensors.packed")
    return home


def entry(cellar: Path, heads: str = f"{SECRET}-medusa", **changes: Any) -> CatalogEntry:
    places = {"medusa": heads, "kangaroo": f"{SECRET}-kangaroo", "datastore": f"{SECRET}.safetensors.packed"}
    fields = {
        "model": str(cellar / f"{SECRET}-target"),
        "draft": str(cellar / f"{SECRET}-drafter"),
        "part_places": {part: str(cellar / place) for part, place in places.items()},
        "device": "cpu",
        "dtype": "float32",
    }
    return CatalogEntry("ours", **(fields | changes))


@pytest.fixture(scope="session")
def replaying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Serve the page without a model, in a process of its own."""
    with serving(tmp_path_factory.mktemp("replaying") / "log", "--replay-only") as running:
        yield running


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Serve everything that programs can call, on the toy, in a process of its own; a file holds the key."""
    for package in ("prometheus_client", "mcp"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("programs")
    (folder / "models.toml").write_text("[[model]]\nname = 'toy'\nmodel = 'toy'\n")
    (folder / "keys").write_text(KEY)
    flags = ("--api", "--mcp", "--metrics", "--api-key-file", str(folder / "keys"))
    with serving(folder / "log", *flags, "--models", str(folder / "models.toml")) as running:
        yield running


def dropped(app_state: AppState, trace: Trace) -> dict[str, str]:
    """Drop a trace on the page, and return its address."""
    app_state.store.put("dropped", StoredRun(trace, replay(trace, "dropped")[0]))
    return {"run": "dropped"}


def lines(text: str) -> list[dict[str, Any]]:
    """Return a stream's lines; every one must be whole."""
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def kinds(text: str) -> list[str]:
    return [line["kind"] for line in lines(text)]
