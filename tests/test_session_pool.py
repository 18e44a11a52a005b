"""Sessions that outlive a run: a cache is allocated once, and one run at a time writes it."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

from decoding.engine import Engine
from decoding.model.cache import Cache
from decoding.model.captured import StoredText
from decoding.model.chain_pass import ChainPass
from decoding.model.rope import RopeTables
from decoding.parts.adapter import Adapter
from decoding.parts.eagle import Eagle
from decoding.session_pool import SessionPool
from tests.families import machine

OPTIONS: dict[str, Any] = {"max_new_tokens": 24, "end_tokens": ()}


class Room:
    """Opens sessions that are nothing but their sizes."""

    def __init__(self, capacity: int = 0, largest_step: int = 0) -> None:
        self.capacity, self.largest_step = capacity, largest_step

    def open(self, capacity: int, largest_step: int) -> Room:
        return Room(capacity, largest_step)

    def rewind(self, length: int) -> None: ...


class Borrower:
    """Something that is dropped."""


def test_a_lent_session_comes_back_with_its_borrower() -> None:
    pool, owner, borrower = SessionPool(), Room(), Borrower()
    lent = pool.lend(borrower, owner, 100, 8)
    assert pool.acquire(owner, 100, 8) is not lent, "another run has it"
    del borrower
    gc.collect()
    assert pool.acquire(owner, 600, 8) is not lent, "too small"
    pool.release(owner, lent)
    assert pool.acquire(owner, 512, 8) is lent


def opened(monkeypatch: pytest.MonkeyPatch, kind: type[Eagle] | type[Adapter]) -> list[Any]:
    """Note the sessions that parts of that kind open."""
    sessions, plain = list[Any](), kind.open

    def noted(owner: Any, capacity: int, largest_step: int) -> Any:
        sessions.append(plain(owner, capacity, largest_step))
        return sessions[-1]

    monkeypatch.setattr(kind, "open", noted)
    return sessions


@pytest.mark.parametrize(("method", "kind"), [("eagle3", Eagle), ("kangaroo", Adapter)])
def test_runs_share_a_drafters_cache(
    method: str, kind: type[Eagle] | type[Adapter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one run left there must not be seen by the next, nor by one beside it."""

    def steps(engine: Engine, first: int) -> Any:
        trace = engine.generate([first, 7, 9, 4], method, record="full", **OPTIONS).trace
        return [(step.tokens, step.path, step.emitted) for step in trace.steps]

    expected = {first: steps(machine("llama"), first) for first in (3, 5)}
    sessions, engine = opened(monkeypatch, kind), machine("llama")
    assert [steps(engine, first) for first in (3, 5, 3)] == [expected[first] for first in (3, 5, 3)]
    assert len(sessions) == 1
    beside = engine.decode([3, 7, 9, 4], method, **OPTIONS)
    next(beside)
    next(beside)
    assert steps(engine, 5) == expected[5] and len(sessions) == 2
    beside.close()


def test_a_recording_is_of_one_cache_and_table() -> None:
    """Another text's cache may come to lie where one was that is gone."""
    cpu = torch.device("cpu")

    def key(cache: Cache, tables: RopeTables) -> Any:
        return ChainPass(lambda: (), StoredText(cache, tables, None), 4).key

    def cache() -> Cache:
        return Cache(1, 1, 8, 16, 4, None, cpu, torch.float32)

    def tables() -> RopeTables:
        return RopeTables(torch.ones(4, 1, 8), torch.ones(4, 1, 8))

    first, table = cache(), tables()
    recorded = key(first, table)
    assert key(first, table) == recorded and hash(key(first, table)) == hash(recorded)
    assert recorded not in (key(first, tables()), key(cache(), table))
    del first
    assert all(key(cache(), table) != recorded for _ in range(50))
