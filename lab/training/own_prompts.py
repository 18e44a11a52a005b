"""Writes prompts with the model itself: it continues the empty turn of a user in its chat template.

A model that was trained on conversations can also write users' questions. Nothing has to be fetched, and the prompts
are of the kind that the model was made for.
"""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

from decoding.codec import Codec
from decoding.errors import ModelError
from decoding.model.decoder import Decoder
from decoding.model.session import ProgressCallback

from .generation import Generation, SeededPrompt
from .text_batch import TextBatch

_MARK = "\N{WHITE SQUARE}"  # takes the place of a user's words in the template
_ROOM = 160  # tokens of the longest prompt
_SHORTEST = 12  # characters: less is no question
_AT_ONCE = 64


def write_prompts(model: Decoder, codec: Codec, count: int, path: Path, seed: int, progress: ProgressCallback) -> None:
    """Draw `count` different prompts at temperature 1 as JSON lines; an existing file stays as it is."""
    if path.is_file():
        return
    opening = opening_of_a_turn(codec)
    length = len(opening) + _ROOM
    if not TextBatch.suit(model, length):
        raise ModelError("prompts are written in compiled code, which cannot run this model here: name a file of them")
    generation = Generation(model, codec.end_tokens, at_once=_AT_ONCE, length=length, temperature=1.0)
    texts: dict[str, None] = {}  # in the order of their seeds, whatever ends first
    first = 0
    while len(texts) < count:
        prompts = [
            SeededPrompt(opening, crc32(f"{seed}/{number}".encode())) for number in range(first, first + 2 * _AT_ONCE)
        ]
        first += len(prompts)
        written = dict(generation.write(prompts))
        for number in range(len(prompts)):
            text = _ended(codec, written[number])
            if len(text) >= _SHORTEST:
                texts.setdefault(text)
        progress("the model writes prompts", min(1.0, len(texts) / count))
    lines = [json.dumps({"prompt": text}) + "\n" for text in list(texts)[:count]]
    fresh = path.with_suffix(".new")
    fresh.write_text("".join(lines), encoding="utf-8")
    fresh.replace(path)


def opening_of_a_turn(codec: Codec) -> list[int]:
    """Return what the chat template puts before a user's words."""
    if not codec.has_chat_template:
        raise ModelError("this model has no chat template, so it expects no user: name a file of prompts")
    text = codec.tokenizer.apply_chat_template([{"role": "user", "content": _MARK}], tokenize=False)
    before, mark, _ = text.partition(_MARK)
    if not mark:
        raise ModelError("this model's chat template leaves out the user's words: name a file of prompts")
    ids: list[int] = codec.tokenizer.encode(before, add_special_tokens=False)
    return ids


def _ended(codec: Codec, ids: list[int]) -> str:
    """Return a prompt that has ended; nothing where it has not."""
    return codec.decode(ids[:-1]).strip() if ids[-1] in codec.end_tokens else ""
