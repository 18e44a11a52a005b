"""Records that are kept for a while."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from app.server.limits import LIMITS
from app.store.quota_cache import Quota
from app.store.trace_store import ID, Packed, Proof, StoredRun, TraceStore, _values, new_id, pack_trace, replay
from decoding.errors import TraceError
from decoding.trace.file import parse_trace, read_trace
from decoding.trace.json_line import parse_object
from decoding.types import Trace
from tests import GOLDEN

LOOKAHEAD = GOLDEN / "lookahead.jsonl"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return read_trace(LOOKAHEAD)


def kept(trace: Trace) -> StoredRun:
    return StoredRun(trace, replay(trace, "x")[0])


def test_a_packed_record_is_the_record(trace: Trace) -> None:
    assert parse_trace(pack_trace(trace)) == trace


def test_ids_are_long_and_differ() -> None:
    ids = {new_id() for _ in range(100)}
    assert len(ids) == 100 and all(ID.fullmatch(run) and len(run) >= 20 for run in ids)


def test_it_stays_within_its_bounds_and_the_oldest_goes_first(trace: Trace) -> None:
    store = TraceStore(total=Quota(3), each=Quota(3))
    for run in "abcd":
        store.put(run, kept(trace))
    assert len(store) == 3
    assert store.get("a") is None and store.get("d") is not None
    assert store.get("b") is not None  # used, so it outlives c
    store.put("e", kept(trace))
    assert store.get("c") is None and store.get("b") is not None
    small = TraceStore(each=Quota(9, 2 * len(pack_trace(trace))))
    for run in "abc":
        small.put(run, kept(trace))
    assert len(small) == 2


def test_a_flood_of_one_client_costs_nobody_else_a_run(trace: Trace) -> None:
    store, run = TraceStore(), kept(trace)
    assert not store.put("theirs", run, "quiet")
    got = [store.put(f"run{number}", run, "loud") for number in range(LIMITS.stored_runs_each + 5)]
    assert got == [False] * LIMITS.stored_runs_each + [True] * 5  # whoever loses runs of their own is told so
    assert store.get("theirs") is not None and len(store) == LIMITS.stored_runs_each + 1


def test_only_a_few_are_held_as_objects(trace: Trace) -> None:
    store = TraceStore()
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

    assert TraceStore(find).get(run) is None


def test_records_kept_elsewhere_are_found(trace: Trace) -> None:
    proof = Proof({"checked": 1}, 2.0)
    store = TraceStore({"there": Packed(pack_trace(trace), proof)}.get)
    kept = store.get("there")
    assert kept is not None and kept.trace == trace and kept.proof == proof and len(store) == 0
    assert store.get("nowhere") is None


def test_a_proof_stays_with_its_run(trace: Trace) -> None:
    """It comes after the run was kept, and must outlast the run's time as an object."""
    store, proof = TraceStore(), Proof({"checked": 1}, 2.0)
    store.put("run", kept(trace))
    store.add_proof("run", proof)
    store.add_proof("nowhere", proof)
    held = store.get("run")
    assert held is not None and held.proof == proof and store.get("nowhere") is None
    for index in range(LIMITS.unpacked_runs):
        store.put(f"other-{index}", kept(trace))
    again = store.get("run")
    assert again is not None and again is not held and again.proof == proof


def test_records_are_unpacked_one_at_a_time(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacking takes the interpreter: many asking at once must not hold all threads with it."""
    monkeypatch.setattr("app.store.trace_store._READ_TIMEOUT", 0.01)
    store = TraceStore({"there": Packed(pack_trace(trace))}.get)
    for index in range(LIMITS.unpacked_runs + 1):
        store.put(f"run-{index}", kept(trace))
    with store.reading():
        with pytest.raises(TraceError, match="try again in a moment"):
            store.get("run-0")
        assert store.get("run-1") is not None  # what is at hand waits for nobody
        assert store.get("there") is not None  # nor does what is kept elsewhere, which no visitor brought
    assert store.get("run-0") is not None


def test_what_is_held_as_objects_is_bounded_by_what_it_holds(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six of the largest records would take hundreds of megabytes; the last one stays, however large it is."""
    store = TraceStore()
    monkeypatch.setattr("app.store.trace_store.LIMITS", replace(LIMITS, unpacked_values=3 * _values(trace)))
    for index in range(5):
        store.put(f"run-{index}", kept(trace))
    assert store.unpacked == 3
    monkeypatch.setattr("app.store.trace_store.LIMITS", replace(LIMITS, unpacked_values=1))
    assert store.get("run-0") is not None and store.unpacked == 1


def test_a_record_weighs_about_what_its_file_says(trace: Trace) -> None:
    """Counted from the objects, since a live run has no file that was read."""
    held = list[int]()
    for line in gzip.decompress(pack_trace(trace)).splitlines():
        parse_object(line, "line", 99, held.append)
    assert 0.5 < _values(trace) / sum(held) < 1.5


def test_a_file_is_kept_as_it_came(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing a large record anew takes as long as reading it; one that was cut off is read as far as it goes."""
    data = gzip.compress(LOOKAHEAD.read_bytes()[:-200])
    cut = parse_trace(data, allow_partial=True)
    store = TraceStore(total=Quota(2))
    monkeypatch.setattr("app.store.trace_store.pack_trace", None)
    store.put("cut", replace(kept(cut), file=data))
    monkeypatch.setattr("app.store.trace_store.LIMITS", replace(LIMITS, unpacked_runs=0))
    store.put("other", replace(kept(trace), file=gzip.compress(LOOKAHEAD.read_bytes())))
    again = store.get("cut")
    assert again is not None and again.trace == cut and cut.summary is None
