"""Other implementations to measure against, on the same weights and prompts: transformers' `generate`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from ..engine import Engine
from ..errors import ModelError, ParamError
from .methods import Measured, Runner


def find_peers(names: Sequence[str], model: str, engine: Engine) -> dict[str, Runner]:
    """The peers of those names, ready to run; `model` is the name that the engine was loaded by."""
    for name in names:
        if name != "transformers":
            raise ParamError(f"unknown peer {name[:40]!r}; the one there is: transformers")
    if names and engine.model.card.family == "table":
        raise ParamError("transformers cannot run the toy: name a model folder or a hub id, or leave the peers out")
    return {name: _transformers(model, engine) for name in dict.fromkeys(names)}


def _transformers(name: str, engine: Engine) -> Runner:
    from transformers import AutoModelForCausalLM, GenerationConfig

    from ..model.files import find_folder

    folder = find_folder(name, lambda what, share: None, engine.model.dtype)
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=engine.model.dtype, trust_remote_code=False, use_safetensors=True, local_files_only=True
        )
    except Exception as error:  # it raises errors of many kinds
        reason = " ".join(str(error).split())[:160]
        raise ModelError(f"transformers cannot load {name[:200]!r} ({reason}): leave it out of the peers") from None
    model = model.to(engine.model.device).eval()

    def run(ids: Sequence[int], budget: int, ends: frozenset[int]) -> Measured:
        # Its own settings, penalties among them, must not blend into the plain greedy decoding that is compared.
        model.generation_config = GenerationConfig(
            do_sample=False, max_new_tokens=budget, eos_token_id=sorted(ends) or None, pad_token_id=0
        )
        inputs = torch.tensor([list(ids)], device=model.device)
        watch = Stopwatch()
        begin = time.perf_counter()
        whole = model.generate(inputs, attention_mask=torch.ones_like(inputs), streamer=watch)
        new = tuple(whole[0, len(ids) :].tolist())
        first, last = watch.times[1], watch.times[len(new)]
        return Measured(new, len(new), first - begin, last - first, len(new) - 1)

    return run


class Stopwatch:
    """A transformers streamer that notes when each token arrives."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def put(self, value: torch.Tensor) -> None:
        """Hear of the prompt first, then of every token."""
        self.times.append(time.perf_counter())

    def end(self) -> None:
        """Hear of the end."""
