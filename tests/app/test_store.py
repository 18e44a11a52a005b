"""Records that are kept for a while."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.limits import LIMITS
from app.store import ID, Kept, Store, new_id, pack, replay
from decoding.trace import parse_trace, read_trace
from decoding.types import Trace

GOLDEN = Path(__file__).parents[1] / "golden" / "lookahead.jsonl"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return read_trace(GOLDEN)


def kept(trace: Trace) -> Kept:
    return Kept(trace, replay(trace, "x")[0])


def test_a_packed_record_is_the_record(trace: Trace) -> None:
    assert parse_trace(pack(trace)) == trace


def test_ids_are_long_and_differ() -> None:
    ids = {new_id() for _ in range(100)}
    assert len(ids) == 100 and all(ID.fullmatch(run) and len(run) >= 20 for run in ids)


def test_it_stays_within_its_bounds_and_the_oldest_goes_first(trace: Trace) -> None:
    store = Store(most_runs=3)
    for run in "abcd":
        store.put(run, kept(trace))
    assert len(store) == 3
    assert store.get("a") is None and store.get("d") is not None
    assert store.get("b") is not None  # used, so it outlives c
    store.put("e", kept(trace))
    assert store.get("c") is None and store.get("b") is not None
    small = Store(most_bytes=2 * len(pack(trace)))
    for run in "abc":
        small.put(run, kept(trace))
    assert len(small) == 2


def test_only_a_few_are_held_as_objects(trace: Trace) -> None:
    store = Store()
    for index in range(LIMITS.unpacked_runs + 3):
        store.put(f"run-{index}", kept(trace))
    assert store.unpacked == LIMITS.unpacked_runs
    again = store.get("run-0")
    assert again is not None and again.trace == trace
    assert again.play.full(3) == kept(trace).play.full(3)  # numbers of strings and all
    assert store.unpacked == LIMITS.unpacked_runs


@pytest.mark.parametrize("run", [None, 7, ["a"], {"a": 1}, "", "../../etc/passwd", "a" * 65, "a\n", "\x00"])
def test_what_is_no_id_finds_nothing(run: object) -> None:
    def find(run: str) -> bytes:
        raise AssertionError(f"looked for {run!r}")

    assert Store(find).get(run) is None


def test_records_kept_elsewhere_are_found(trace: Trace) -> None:
    store = Store({"there": pack(trace)}.get)
    found = store.get("there")
    assert found is not None and found.trace == trace and len(store) == 0
    assert store.get("nowhere") is None
