"""llama.cpp in a process of its own: llama-cpp-python, which `make llama-cpp` compiles for this processor."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from decoding.engine import Engine
from decoding.errors import ParamError

from ...measured import MeasuredRun, Peer
from .process import Process
from .weights import precision_of, source_of, unquantised


def load(engine: Engine, model: str, draft: str | None, *, as_stored: bool) -> Peer:
    """Load the model of a GGUF file as stored, or with its weights in the engine's own dtype. It runs without a
    drafter.
    """
    if engine.model.device.type != "cpu":
        raise ParamError("llama.cpp is measured on CPUs only: name --device cpu, or leave it out of the peers")
    source = source_of(model)
    file = source if as_stored else unquantised(source, engine.model.dtype)
    process = Process(file, torch.get_num_threads())

    def run(ids: Sequence[int], budget: int, ends: frozenset[int]) -> MeasuredRun:
        new, seconds = process.decode(ids, budget, ends)
        return MeasuredRun(tuple(new), len(new), seconds[0], seconds[-1] - seconds[0], len(new) - 1)

    return Peer(run, precision_of(file), process.id)
