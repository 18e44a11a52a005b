"""Random texts and trees, and transformers' word on them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

from decoding.model.decoder_session import DecoderSession

VOCABULARY = 67


def text(length: int, seed: int = 0) -> list[int]:
    """Return a random text."""
    source = random.Random(seed)
    return [source.randrange(VOCABULARY) for _ in range(length)]


def chain(length: int) -> tuple[int, ...]:
    """Return the parents of a chain."""
    return tuple(range(-1, length - 1))


def random_tree(nodes: int, seed: int) -> tuple[int, ...]:
    """Return a random tree, often deep, with siblings in any order."""
    source = random.Random(seed)
    return (-1, *(source.randrange(max(0, node - 4), node) for node in range(1, nodes)))


def random_path(parents: Sequence[int], seed: int) -> list[int]:
    """Return rows from the root to some node."""
    node, path = random.Random(seed).randrange(len(parents)), list[int]()
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]


def feed(session: DecoderSession, tokens: Sequence[int], chunk: int) -> torch.Tensor:  # (T, V)
    """Store tokens in chunks; the logits of all of them."""
    logits = []
    for start in range(0, len(tokens), chunk):
        part = tokens[start : start + chunk]
        logits.append(session.read(part, chain(len(part))).logits)
        session.commit(range(len(part)))
    return torch.cat(logits)


@torch.no_grad()
def reference(model: Any, tokens: Sequence[int], prompt_length: int | None = None) -> torch.Tensor:  # (T, V)
    """Return what transformers says: the prompt in one pass, every later token alone with transformers' own cache."""
    prompt_length = len(tokens) if prompt_length is None else prompt_length
    ids = torch.tensor([list(tokens)])
    model(ids[:, :1])  # a short text makes dynamic scaling forget the longer ones before it
    out = model(ids[:, :prompt_length], use_cache=True)
    logits = [out.logits[0]]
    for place in range(prompt_length, len(tokens)):
        out = model(ids[:, place : place + 1], past_key_values=out.past_key_values, use_cache=True)
        logits.append(out.logits[0])
    return torch.cat(logits)
