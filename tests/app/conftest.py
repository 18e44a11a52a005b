"""An application state on the toy, which loads in an instant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.controls import Order, order
from app.jobs.runner import JobRunner
from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool
from app.state import AppState
from app.store.trace_store import TraceStore

TOY = CatalogEntry("toy", "toy", draft="toy")
CATALOG = {"toy": TOY}
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


def lines(text: str) -> list[dict[str, Any]]:
    """Return a stream's lines; every one must be whole."""
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def kinds(text: str) -> list[str]:
    return [line["kind"] for line in lines(text)]
