"""What a device reads per second, and the sizes that it is compared with."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from decoding import run
from decoding.codec import Codec
from decoding.engine import Engine
from decoding.model import bandwidth
from decoding.model.loading import decoder_of
from decoding.trace.file import dump_line, parse_trace
from tests.families import FAMILIES, tiny
from tests.toys import counted_text, engine

CPU = torch.device("cpu")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have no cache hold a model of the tests; collect the number of threads of each measurement."""
    threads = list[int]()

    def read(device: torch.device) -> float:
        threads.append(torch.get_num_threads())
        return 1e9 * len(threads)

    monkeypatch.setattr(bandwidth, "read_bandwidth", read)
    monkeypatch.setattr(run, "cache_bytes", lambda devices: 1)
    return threads


def test_a_run_is_held_against_what_its_own_threads_read_before_and_after_it(reads: list[int]) -> None:
    """A speed that was measured once a process with another number of threads made shares of 200%."""
    machine, threads = Engine(decoder_of(tiny("llama")), Codec()), torch.get_num_threads()
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            trace = machine.generate((1, 2), max_new_tokens=2).trace
            assert trace.summary is not None and trace.header.threads == number
            assert (trace.header.bandwidth, trace.summary.bandwidth) == (1e9 * (2 * number - 1), 2e9 * number)
    finally:
        torch.set_num_threads(threads)
    assert reads == [1, 1, 2, 2] and trace.header.cache == 1
    assert parse_trace(dump_line("header", trace.header)).header == trace.header


def test_nothing_is_measured_where_nobody_would_look_at_it(reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A table reads nothing, a run without a record shows nothing, cached weights are not read from memory."""
    machine = Engine(decoder_of(tiny("llama")), Codec())
    engine(counted_text()).generate((1, 2), max_new_tokens=2)
    machine.generate((1, 2), max_new_tokens=2, record="off")
    size = machine.model.card.pass_bytes
    assert size is not None
    monkeypatch.setattr(run, "cache_bytes", lambda devices: size)
    trace = machine.generate((1, 2), max_new_tokens=2).trace
    assert not reads and trace.header.bandwidth is None and trace.header.cache == size


def test_a_run_that_was_dropped_is_not_measured_again(reads: list[int]) -> None:
    going = Engine(decoder_of(tiny("llama")), Codec()).decode((1, 2), max_new_tokens=9)
    next(going)
    going.close()
    assert len(reads) == 1 and going.summary.bandwidth is None


def test_bytes_are_divided_by_the_best_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever slows a reading down is no property of the device; far more than the cache holds is read."""
    clock = iter([0.0, 0.5, 1.0, 1.25, 2.0, 2.5])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(bandwidth, "cache_bytes", lambda devices: 2**25)
    assert bandwidth.read_bandwidth(CPU) == 2**27 / 0.25


def test_without_room_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A measurement must never cost a run."""
    monkeypatch.setattr(bandwidth, "_LEAST", 2**62)
    monkeypatch.setattr(bandwidth, "_MOST", 2**62)
    assert bandwidth.read_bandwidth(CPU) is None


def test_the_size_of_the_cache_counts_each_cache_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Cores share a last cache; where the system says nothing, a usual size is assumed."""
    monkeypatch.setattr(bandwidth, "_CACHES", tmp_path)
    measure = bandwidth._cache_bytes.__wrapped__
    assert measure(CPU) == 2**25
    for core, (size, shared) in enumerate([("32768K", "0-1"), ("32768K", "0-1"), ("16384K", "2"), ("odd", "3")]):
        folder = tmp_path / f"cpu{core}" / "cache" / "index3"
        folder.mkdir(parents=True)
        (folder / "size").write_text(f"{size}\n")
        (folder / "shared_cpu_list").write_text(f"{shared}\n")
    assert measure(CPU) == 48 * 2**20


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])  # of which processors pack the first
def test_a_card_knows_its_bytes(name: str, dtype: str) -> None:
    """Of the embedding a pass reads a few rows, of a head all; a tied head that is packed is held twice."""
    model = tiny(name)
    decoder = decoder_of(model, dtype)
    card, size = decoder.card, decoder.dtype.itemsize
    embedding = model.get_input_embeddings().weight.numel() * size
    body = model.model.num_parameters() * size - embedding
    own_head = not decoder.shape.tied or getattr(decoder._weights.head, "__name__", "compiled") != "plain"
    assert card.weight_bytes == body + embedding * (2 if own_head else 1)
    assert card.pass_bytes == (body + embedding if len({*decoder.shape.windows}) == 1 else None)
    assert card.token_bytes == decoder.open(8, 4).cache.data[:, :, :1].nbytes
