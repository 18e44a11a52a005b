"""What a device reads per second, and the sizes that it is compared with."""

from __future__ import annotations

import time
import weakref

import pytest
import torch

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.model import bandwidth
from decoding.model.decoder import Decoder
from decoding.trace.file import dump_line, parse_trace
from tests.families import FAMILIES, tiny
from tests.toys import counted_text, engine

CPU = torch.device("cpu")


def test_a_device_is_measured_once_and_where_a_model_has_weights() -> None:
    """A table reads nothing; two runs on one device are held against the same roof, which a record keeps."""
    machine = Engine(Decoder.from_transformers(tiny("llama")), Codec())
    one, other = (machine.generate((1, 2), max_new_tokens=2).trace.header for _ in range(2))
    assert one.bandwidth is not None and one.bandwidth == other.bandwidth > 0
    assert parse_trace(dump_line("header", one)).header == one
    assert engine(counted_text()).generate((1, 2), max_new_tokens=2).trace.header.bandwidth is None


def test_bytes_are_divided_by_the_best_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever slows a reading down is no property of the device."""
    clock = iter([0.0, 0.5, 1.0, 1.25, 2.0, 2.5])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert bandwidth.read_bandwidth.__wrapped__(CPU) == 2**26 / 0.25


def test_without_room_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A measurement must never cost a run."""
    monkeypatch.setitem(bandwidth._BYTES, "cpu", 2**62)
    assert bandwidth.read_bandwidth.__wrapped__(CPU) is None


@pytest.mark.parametrize("fails", [False, True])
def test_the_memory_of_a_measurement_is_released(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """On CUDA torch would keep half a gigabyte that a model may need, also after a measurement that failed."""
    blocks, alive = list[weakref.ref[torch.Tensor]](), list[bool]()
    ones, mv = torch.ones, torch.mv

    def make(*size: int, device: torch.device) -> torch.Tensor:
        made = ones(*size, device=device)
        blocks.append(weakref.ref(made))
        return made

    def multiply(block: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        if fails:
            raise RuntimeError("out of memory")
        return mv(block, row)

    monkeypatch.setattr(torch, "ones", make)
    monkeypatch.setattr(torch, "mv", multiply)
    monkeypatch.setattr(bandwidth, "release_memory", lambda: alive.extend(block() is not None for block in blocks))
    assert (bandwidth.read_bandwidth.__wrapped__(CPU) is None) == fails
    assert alive == [False, False]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])  # of which processors pack the first
def test_a_card_knows_its_bytes(name: str, dtype: str) -> None:
    """Of the embedding a pass reads a few rows, of a head all; a tied head that is packed is held twice."""
    model = tiny(name)
    decoder = Decoder.from_transformers(model, dtype)
    card, size = decoder.card, decoder.dtype.itemsize
    embedding = model.get_input_embeddings().weight.numel() * size
    body = model.model.num_parameters() * size - embedding
    own_head = not decoder.shape.tied or getattr(decoder._weights.head, "__name__", "compiled") != "plain"
    assert card.weight_bytes == body + embedding * (2 if own_head else 1)
    assert card.pass_bytes == (body + embedding if len({*decoder.shape.windows}) == 1 else None)
    assert card.token_bytes == decoder.open(8, 4).cache.data[:, :, :1].nbytes
