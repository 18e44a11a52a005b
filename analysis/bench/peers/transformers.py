"""transformers' `generate`: plain, and in its two assisted modes that need no trained parts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from decoding.embedded import drafter_of
from decoding.engine import Engine
from decoding.errors import ModelError, ParamError

from ...plain_folder import plain_folder
from ..measured import MeasuredRun, Peer

_LOOKED_UP = 10  # tokens that prompt lookup drafts, as in transformers' own examples


def decode_plainly(engine: Engine, model: str, draft: str | None) -> Peer:
    """Decode one token after another."""
    return _peer(_load(model, engine), engine, {})


def prompt_lookup(engine: Engine, model: str, draft: str | None) -> Peer:
    """Decode with its prompt lookup, which searches the text for its last words."""
    return _peer(_load(model, engine), engine, {"prompt_lookup_num_tokens": _LOOKED_UP})


def draft_model(engine: Engine, model: str, draft: str | None) -> Peer:
    """Decode with its assisted generation: the engine's own drafter, with draft lengths that transformers chooses."""
    drafter = draft or drafter_of(model)
    if drafter is None:
        raise ParamError("transformers-draft-model needs a drafter: name one with --draft, or leave this peer out")
    return _peer(_load(model, engine), engine, {"assistant_model": _load(drafter, engine)})


def _load(name: str, engine: Engine) -> Any:
    from transformers import AutoModelForCausalLM

    from decoding.model.files import find_folder

    if len(engine.model.devices) > 1:
        raise ParamError("transformers is measured on one device only: name one, or leave it out of the peers")
    folder: Path = find_folder(name, lambda what, share: None, engine.model.dtype)
    try:
        with plain_folder(folder) as plain:
            model: Any = AutoModelForCausalLM.from_pretrained(
                plain, dtype=engine.model.dtype, trust_remote_code=False, use_safetensors=True, local_files_only=True
            )
    except Exception as error:  # it raises errors of many kinds
        reason = " ".join(str(error).split())[:160]
        raise ModelError(f"transformers cannot load {name[:200]!r} ({reason}): leave it out of the peers") from None
    return model.to(engine.model.device).eval()


def _peer(model: Any, engine: Engine, options: dict[str, Any]) -> Peer:
    from transformers import GenerationConfig

    def run(ids: Sequence[int], budget: int, ends: frozenset[int]) -> MeasuredRun:
        # The model's own generation settings, such as penalties, must not change the greedy decoding that is compared.
        model.generation_config = GenerationConfig(
            do_sample=False, max_new_tokens=budget, eos_token_id=sorted(ends) or None, pad_token_id=0
        )
        inputs = torch.tensor([list(ids)], device=model.device)
        watch = Stopwatch()
        begin = time.perf_counter()
        whole = model.generate(inputs, attention_mask=torch.ones_like(inputs), streamer=watch, **options)
        new = tuple(whole[0, len(ids) :].tolist())
        first, last = watch.times[1], watch.times[-1]  # the prompt comes first
        return MeasuredRun(new, len(watch.times) - 1, first - begin, last - first, len(new) - watch.counts[1])

    return Peer(run, str(engine.model.dtype).removeprefix("torch."))


class Stopwatch:
    """A transformers streamer that notes when tokens arrive, and how many."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.counts: list[int] = []

    def put(self, value: torch.Tensor) -> None:
        """Receive the prompt first, then the tokens of every step."""
        self.times.append(time.perf_counter())
        self.counts.append(value.numel())

    def end(self) -> None:
        """Receive the end of the text."""
