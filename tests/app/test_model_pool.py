"""Which engines are in memory, and what an evicted one leaves behind."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import pytest

from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool
from decoding.engine import Engine
from decoding.model import memory
from tests.families import machine


@dataclass(frozen=True, slots=True)
class Tiny(CatalogEntry):
    """A tiny random model."""

    def load(self, progress: Any) -> Engine:
        """Make an engine on it."""
        return machine("llama")


def test_an_evicted_engine_is_gone_before_another_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models that fill a device each would not fit one after the other; no collector may be needed for that."""
    entries = {name: Tiny(name, name) for name in ("one", "two")}
    pool, held = ModelPool(entries, capacity=1), list[weakref.ref[Any]]()
    alive = list[list[bool]]()
    monkeypatch.setattr(memory, "release_memory", lambda: alive.append([engine() is not None for engine in held]))
    engine = pool.request(entries["one"]).wait(60)
    assert engine is not None
    for method in ("draft_model", "lookahead"):
        engine.generate([1, 2, 3], method, max_new_tokens=8)
    session = engine.session_pool.acquire(engine.model, 8, 8)
    held += map(weakref.ref, (engine, engine.model, engine.draft, engine.model.rope, session.cache.data))  # type: ignore[attr-defined]
    del engine, session
    gc.collect()
    gc.disable()
    try:
        assert pool.request(entries["two"]).wait(60) is not None
    finally:
        gc.enable()
    assert "one" not in pool and "two" in pool
    assert alive == [[], [False] * 5]
