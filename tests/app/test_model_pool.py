"""Which engines are in memory, and what an evicted one leaves behind."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool
from decoding.engine import Engine
from decoding.errors import ModelError
from decoding.model import memory
from tests.families import machine


@dataclass(frozen=True, slots=True)
class Tiny(CatalogEntry):
    """A tiny random model, as large as its revision says."""

    def check(self, progress: Any) -> int:
        """Count as many bytes."""
        return int(self.revision or 1)

    def load(self, progress: Any) -> Engine:
        """Make an engine on it."""
        return machine("llama")


def test_an_evicted_engine_is_gone_before_another_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models that fill a device each would not fit one after the other; no collector may be needed for that."""
    entries = {name: Tiny(name, name) for name in ("one", "two")}
    pool, held = ModelPool(entries, budget=1), list[weakref.ref[Any]]()
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


@dataclass(frozen=True, slots=True)
class Slow(Tiny):
    """One that is being loaded until `go` is set."""

    go: threading.Event = field(default_factory=threading.Event)

    def load(self, progress: Any) -> Engine:
        """Wait first."""
        assert self.go.wait(60)
        return machine("llama")


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    waiting = threading.Event()
    while not holds():
        waiting.wait(0.01)


def test_memory_decides_how_many_models_stay() -> None:
    """Three small ones may be loaded where two large ones may not; the one that was used longest ago goes first."""
    sizes = {"one": 3, "two": 3, "three": 3, "large": 6}
    entries = {name: Tiny(name, name, str(size)) for name, size in sizes.items()}
    pool = ModelPool(entries, budget=10)
    for name in ("one", "two", "three", "one"):
        assert pool.request(entries[name]).wait(60) is not None
    assert all(name in pool for name in ("one", "two", "three"))
    assert pool.request(entries["large"]).wait(60) is not None
    assert [name for name in entries if name in pool] == ["one", "large"]


def test_a_model_above_the_budget_evicts_none(caplog: pytest.LogCaptureFixture) -> None:
    """It would not fit anyway, and others use what is loaded."""
    small, vast = Tiny("small", "small", "9"), Tiny("vast", "vast", "11000000000")
    pool = ModelPool({"small": small, "vast": vast}, budget=10e9)
    assert pool.request(small).wait(60) is not None
    with pytest.raises(ModelError, match="^vast cannot be loaded on this server now: choose another model$"):
        pool.request(vast).wait(60)
    assert "take 11.00 GB, and all models together may take 10.00 GB here" in caplog.text
    assert "small" in pool and pool.request(small).wait(0) is not None


def test_a_model_that_a_job_uses_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory would not be free, since the job holds the engine: the other waits, and says so."""
    monkeypatch.setattr("app.models.model_pool._WAIT", 0.01)
    entries = {name: Tiny(name, name) for name in ("one", "two")}
    pool = ModelPool(entries, budget=1)
    with pool.use(entries["one"]) as loading:
        assert loading.wait(60) is not None
        second = pool.request(entries["two"])
        until(lambda: second.phase == "waiting for the memory of a model that is in use")
        assert "one" in pool and second.wait(0) is None
    assert second.wait(60) is not None and "one" not in pool


def test_a_model_that_is_being_loaded_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loading cannot be called off, so its memory would be taken twice."""
    monkeypatch.setattr("app.models.model_pool._WAIT", 0.01)
    one, two = Slow("one", "one"), Tiny("two", "two")
    pool = ModelPool({"one": one, "two": two}, budget=1)
    first = pool.request(one)
    until(lambda: first.bytes == 1)
    second = pool.request(two)
    until(lambda: second.phase.startswith("waiting"))
    assert "one" in pool
    one.go.set()
    assert first.wait(60) is not None and second.wait(60) is not None and "one" not in pool


def test_a_model_that_failed_takes_no_room() -> None:
    """Whoever chooses another one next must not wait for it."""

    class Broken(Tiny):
        def load(self, progress: Any) -> Engine:
            raise ModelError("no weights")

    broken, other = Broken("broken", "broken"), Tiny("other", "other")
    pool = ModelPool({"broken": broken, "other": other}, budget=1)
    with pytest.raises(ModelError):
        pool.request(broken).wait(60)
    assert pool.request(other).wait(60) is not None and "broken" not in pool
