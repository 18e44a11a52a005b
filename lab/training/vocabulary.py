"""Chooses the tokens that a drafter drafts, from its training data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from decoding.errors import ParamError
from decoding.parts.draft_vocabulary import VOCABULARY_FILE

from .batches import Batch


def check_count(count: int, vocabulary: int) -> None:
    """Refuse a number of tokens that the vocabulary lacks, before hours of training; 0 means all tokens."""
    if not 0 <= count <= vocabulary:
        raise ParamError(f"--draft-vocabulary must be at most the model's {vocabulary} tokens, not {count}")


def common_tokens(batches: Iterable[Batch], count: int, vocabulary: int) -> Tensor:  # (count,), ascending
    """Return the tokens that answers hold most often; then those of the lowest ids, which tokenizers give to common
    ones.
    """
    seen = torch.zeros(vocabulary, dtype=torch.long)
    for batch in batches:
        seen += torch.bincount(batch.ids[batch.learnt].long(), minlength=vocabulary)
    return seen.argsort(descending=True, stable=True)[:count].sort().values


def coverage(batches: Iterable[Batch], ids: Tensor) -> float:
    """Return the share of the answers' tokens that are among these."""
    tokens = torch.cat([batch.ids[batch.learnt].long() for batch in batches])
    return float(torch.isin(tokens, ids).float().mean())


def write_vocabulary(folder: Path, ids: Sequence[int]) -> None:
    """Let the drafter in `folder` draft these tokens only."""
    from safetensors.torch import save_file

    save_file({"ids": torch.tensor(sorted(set(ids)), dtype=torch.int32)}, folder / f"{VOCABULARY_FILE}.new")
    (folder / f"{VOCABULARY_FILE}.new").replace(folder / VOCABULARY_FILE)
