"""The toy: an n-gram model of a page of text, which decodes without a download.

It is not a neural network: its answers come from a table, so timings on it say nothing about speed. Steps, trees,
guesses and acceptance are real. Its drafter looks back two tokens only: it is right inside a phrase, and wrong where
two phrases continue differently.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from .codec import Codec
from .engine import Engine
from .model.session import ProgressCallback
from .model.table import TableModel, counted
from .parts import MethodPart, Parts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

NOTE = "an n-gram model, not a neural network; timings on it say nothing about speed"
PROMPT = "Monday: high tide at six, low tide at noon, a calm sea.\nTuesday:"

_TEXT = Path(__file__).with_name("toy_text.txt")
# The endings that the target counts: (tokens skipped at the end, tokens before them that must match).
_ENDINGS = ((0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (1, 2), (1, 3), (2, 3))
_ENTRIES = 600  # of the vocabulary: 256 bytes, the marks, and the commonest pieces of the text
_END = "<|end|>"
_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}"
    "{{ '<|end|>' if message.role == 'assistant' else '' }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def toy() -> Engine:
    """Build the engine of the toy and its drafter."""
    codec, target, draft = _parts()
    return Engine(target, codec, draft, Parts({"tables": partial(_tables, target)}))


def _tables(model: TableModel, progress: ProgressCallback) -> MethodPart:
    from .parts.tables import build

    return build(model, top=16, length=8, progress=progress)


@lru_cache(maxsize=1)
def _parts() -> tuple[Codec, TableModel, TableModel]:
    text = _TEXT.read_text(encoding="utf-8")
    tokenizer = _tokenizer(text)
    ids: list[int] = tokenizer.encode(text)
    target, draft = _target(ids, len(tokenizer)), counted(ids, 2, len(tokenizer), "toy-draft")
    for model in (target, draft):
        digest = hashlib.sha256(f"{model.card.name} {_ENDINGS} {ids}".encode())
        model.card = replace(model.card, hash=digest.hexdigest())
    return Codec(tokenizer), target, draft


def _tokenizer(text: str) -> PreTrainedTokenizerBase:
    """Train a byte-level BPE on the text: it encodes and decodes any Unicode."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_ENTRIES,
        special_tokens=[_END, "<|user|>", "<|assistant|>", "<|system|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(text.split("<|"), trainer)  # the marks of a chat are not trained on
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=_END, chat_template=_TEMPLATE)


def _target(ids: Sequence[int], vocabulary: int) -> TableModel:
    """Count a skip-gram model: an ending also votes for the tokens one or two positions after the next.

    Otherwise a single wrong guess would spoil every answer after it. Jacobi's iterations, which depend on answers that
    are right although the guess before them is wrong, would have nothing to show.
    """
    counts: dict[tuple[int, tuple[int, ...]], Counter[int]] = {}
    for end, token in enumerate(ids):
        for gap, n in _ENDINGS:
            if gap + n <= end:
                counts.setdefault((gap, tuple(ids[end - gap - n : end - gap])), Counter())[token] += 1
    alone = torch.full((vocabulary,), 1e-6, dtype=torch.float64)
    for token, count in Counter(ids).items():
        alone[token] += count

    def rule(key: tuple[int, ...]) -> torch.Tensor:
        votes: dict[int, float] = {}
        for gap, n in _ENDINGS:
            end = len(key) - gap
            for token, count in counts.get((gap, key[end - n : end]), {}).items() if n <= end else ():
                votes[token] = votes.get(token, 0.0) + count * 100.0 ** (n - gap / 2)
        tokens = torch.tensor([*votes], dtype=torch.int64)
        return alone.index_add(0, tokens, torch.tensor([*votes.values()], dtype=torch.float64)).log()

    return TableModel(rule, max(gap + n for gap, n in _ENDINGS), vocabulary, "toy")
