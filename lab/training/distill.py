"""Writes the data of self-distillation: the model's own answers to prompts, as JSON lines to learn from.

Section 3.3.2 of the Medusa paper. Conversations of several turns are asked turn by turn, each after the model's own
earlier answers. An answer that does not end is left out, with all that would have come after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import SEEK_END
from pathlib import Path
from typing import Any
from zlib import crc32

import torch

from decoding.codec import Codec
from decoding.errors import ParamError
from decoding.model.decoder import Decoder
from decoding.model.loading import decoder_of
from decoding.model.session import ProgressCallback
from decoding.types import JSON

from .backbone import Backbone
from .conversations import Conversation, write_line
from .encoding import ChatEncoder
from .generation import Generation, SeededPrompt
from .memory import memory_advice
from .seeding import seeded
from .text_batch import TextBatch

_LEAST_ROOM = 16  # tokens that an answer must have
_BLOCKS = 4  # conversations per slot that the compiled code is given at a time

Generate = Callable[[Sequence[SeededPrompt]], list[str]]  # prompts to answers


@dataclass(frozen=True, slots=True)
class Answering:
    """How answers are drawn."""

    temperature: float = 0.3  # 0: the likeliest token
    at_once: int = 32  # conversations
    length: int = 2048  # tokens of prompt and answer together
    seed: int = 1


def write_answers(
    backbone: Backbone,
    codec: Codec,
    prompts: Sequence[Conversation],
    path: Path,
    answering: Answering,
    progress: ProgressCallback,
) -> None:
    """Answer all prompts into `path`; called again after a stop, it resumes after the last full batch."""
    prompts = [one for one in prompts if one.prompts]
    if not prompts:
        raise ParamError("--self-distill needs prompts to answer, not plain texts")
    asked = crc32(repr([(one.system, one.prompts) for one in prompts]).encode(errors="replace"))
    about: dict[str, JSON] = {"model": backbone.hash, "prompts": asked, **asdict(answering)}
    del about["at_once"]  # where the memory has ended, a resumed run may answer fewer at once
    state = path.with_suffix(".state.json")
    done, size = _resume(state, about)
    encoder = ChatEncoder(codec, answering.length)
    generate, block = _generator(backbone, codec, answering)
    with path.open("ab") as file, memory_advice(f"for {answering.at_once} answers at once", "lower --answers-at-once"):
        file.truncate(size)
        file.seek(0, SEEK_END)
        while done < len(prompts):
            progress("the model answers the prompts", done / len(prompts))
            part = prompts[done : done + block]
            with seeded(f"{answering.seed}/{done}", backbone.device):
                answered = _answer(generate, encoder, part, answering, done)
            for index, conversation in enumerate(answered, start=done):
                if conversation.answers:
                    file.write(write_line(conversation, index).encode())
            file.flush()
            done += len(part)
            fresh = state.with_suffix(".new")
            fresh.write_text(json.dumps({"about": about, "done": done, "size": file.tell()}), encoding="utf-8")
            fresh.replace(state)


def _resume(state: Path, about: dict[str, JSON]) -> tuple[int, int]:
    """Return how many prompts are answered, and the bytes of their answers."""
    if not state.is_file():
        return 0, 0
    try:
        stored = json.loads(state.read_text(encoding="utf-8"))
        done, size = int(stored["done"]), int(stored["size"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ParamError(f"{state} is damaged: delete it to answer the prompts anew") from None
    if stored.get("about") != about:
        raise ParamError(f"{state} is of another model, other prompts or settings: delete it, or name another folder")
    return done, size


def _generator(backbone: Backbone, codec: Codec, answering: Answering) -> tuple[Generate, int]:
    """Return what writes answers here, and how many conversations it is given at a time.

    The compiled code is the faster, and lets the next prompt in as soon as an answer ends: it is given many.
    """
    if backbone.device.type == "cpu" and not backbone.quantised:
        decoder = decoder_of(backbone.model)
        if TextBatch.suit(decoder, answering.length):
            return partial(_generate_compiled, decoder, codec, answering), _BLOCKS * answering.at_once
    return partial(_generate, backbone, codec, answering), answering.at_once


def _answer(
    generate: Generate, encoder: ChatEncoder, prompts: Sequence[Conversation], answering: Answering, first: int
) -> list[Conversation]:
    """Return each conversation with the model's answers, as many turns as ended. `first` is the first one's number."""
    answers: list[list[str]] = [[] for _ in prompts]
    for turn in range(max(len(one.prompts) for one in prompts)):
        asked: dict[int, SeededPrompt] = {}
        for at, one in enumerate(prompts):
            if turn < len(one.prompts) and len(answers[at]) == turn and (turn == 0 or encoder.has_template):
                ids = encoder.prompt(one, turn, answers[at])
                if len(ids) <= answering.length * 3 // 4 - _LEAST_ROOM:  # a long one would take the others' room
                    asked[at] = SeededPrompt(ids, crc32(f"{answering.seed}/{first + at}/{turn}".encode()))
        if not asked:
            break
        for at, text in zip(asked, generate([*asked.values()]), strict=True):
            if text.strip():
                answers[at].append(text)
    return [
        replace(one, prompts=one.prompts[: len(written)], answers=tuple(written))
        for one, written in zip(prompts, answers, strict=True)
    ]


def _generate_compiled(
    decoder: Decoder, codec: Codec, answering: Answering, prompts: Sequence[SeededPrompt]
) -> list[str]:
    """Answer prompts, each drawn with its own seed; the text is empty if an answer does not end."""
    generation = Generation(
        decoder, codec.end_tokens, at_once=answering.at_once, length=answering.length, temperature=answering.temperature
    )
    written = dict(generation.write(prompts))
    return [_ended(codec, written[number]) for number in range(len(prompts))]


def _ended(codec: Codec, ids: list[int]) -> str:
    """Return the text up to its end; empty if there is none, unless the model's texts have no ends at all."""
    end = next((place for place, token in enumerate(ids) if token in codec.end_tokens), None)
    return "" if codec.end_tokens and end is None else codec.decode(ids[:end])


@torch.no_grad()
def _generate(backbone: Backbone, codec: Codec, answering: Answering, asked: Sequence[SeededPrompt]) -> list[str]:
    """Answer prompts through transformers; the text is empty if an answer does not end."""
    from transformers import GenerationConfig

    prompts = [[*prompt.ids] for prompt in asked]
    longest = max(map(len, prompts))
    ends = sorted(codec.end_tokens)
    pad = ends[0] if ends else 0
    ids = torch.tensor([[pad] * (longest - len(one)) + one for one in prompts], device=backbone.device)
    seen = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in prompts], device=backbone.device)
    sampled = {"do_sample": True, "temperature": answering.temperature, "top_k": 0, "top_p": 1.0}
    config = GenerationConfig(
        max_new_tokens=answering.length - longest,
        eos_token_id=ends or None,
        pad_token_id=pad,
        **(sampled if answering.temperature > 0 else {"do_sample": False}),
    )
    backbone.model.eval()
    with _plain_settings(backbone.model):
        rows = backbone.model.generate(ids, attention_mask=seen, generation_config=config)[:, longest:].tolist()
    return [_ended(codec, row) for row in rows]


@contextmanager
def _plain_settings(model: Any) -> Iterator[None]:
    """Remove the model's settings for generation: transformers takes from them all that a call leaves open.

    Penalties, cut-offs and suppressed tokens would give answers that the model itself, as it is drafted for, does not.
    """
    from transformers import GenerationConfig

    usual, model.generation_config = model.generation_config, GenerationConfig()
    try:
        yield
    finally:
        model.generation_config = usual
