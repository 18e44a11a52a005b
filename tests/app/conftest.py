"""A house on the toy, which loads in an instant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.catalog import Entry
from app.controls import Order, order
from app.live_runs import Runs
from app.model_pool import Engines
from app.state import House
from app.trace_store import Store

TOY = Entry("toy", "toy", draft="toy")
CATALOG = {"toy": TOY}
TABLES = ("texts", "strings", "values")  # lines that other lines refer to


def asked(**changes: Any) -> Order:
    """A short run on the toy, with whatever a test changes."""
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
def engines() -> Engines:
    made = Engines(CATALOG)
    assert made.ask(TOY).wait(60) is not None
    return made


@pytest.fixture
def runs(engines: Engines) -> Runs:
    return Runs(engines, Store())


@pytest.fixture
def house(engines: Engines) -> House:
    made = House(CATALOG, "toy")
    made.runs.engines = engines
    return made


def lines(text: str) -> list[dict[str, Any]]:
    """A stream's lines; every one must be whole."""
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def kinds(text: str) -> list[str]:
    return [line["kind"] for line in lines(text)]
