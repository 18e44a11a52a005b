"""Make models small enough to know everything about, with engines, and list the settings of every method's tests."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.methods import METHODS
from decoding.model.table import TableModel, counted
from decoding.parts import Parts

from . import toy_adapter, toy_dflash, toy_eagle, toy_heads, toy_store, toy_tables
from .noise import noise

# Every method must be here: `test_lossless` fails for one that is not.
SETTINGS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "autoregressive": [{}],
    "jacobi": [{}, {"n": 3, "refill": "last"}, {"n": 1, "refill": "zero"}],
    "lookahead": [
        {"W": 4, "N": 4, "G": 4},
        {"W": 3, "N": 3, "G": 6, "layout": "merged", "prompt_as_reference": True},
        {"W": 1, "N": 5, "G": 2, "shift": "hits", "prompt_as_reference": True},
        {"W": 5, "N": 3, "G": 3, "drop_bonus": True, "repeat_history": True, "replace_end": True},
    ],
    "draft_model": [{}, {"gamma": 1}, {"gamma": 4, "threshold": 0.5}],
    "prompt_lookup": [
        {},
        {"max_ngram": 3, "min_ngram": 1, "K": 10, "tie": "earliest", "tail": "full"},
        {"max_ngram": 2, "min_ngram": 1, "K": 4, "tie": "earliest", "tail": "short"},
        {"max_ngram": 5, "min_ngram": 2, "K": 3},
    ],
    "suffix": [
        {"alpha": 4.0},
        {},
        {"alpha": 8.0, "epsilon": 0.0, "depth": 4, "look_in": "local"},
        {"alpha": 3.0, "shape": "chain", "count_end": True, "c": 3, "depth": 9},
        {"alpha": 2.5, "answers": 2, "depth": 16},
    ],
    "ngrammys": [
        {},
        {"k": 4, "w": 3, "layout": "trie", "q": 2, "tail": "full"},
        {"k": 4, "strategy": "unigram", "ranking": "product"},
        {"k": 4, "w": 5, "strategy": "extended", "layout": "trie"},
    ],
    "token_recycling": [
        {"k": 4, "tree": "grown", "size": 12},
        {},
        {"k": 3, "tree": "grown", "size": 6, "warm_start": "across", "prompt_as_reference": True},
        {"k": 2, "tree": "given", "paths": "0;1;0,0;0,1;1,0;0,0,0;5"},
    ],
    "medusa": [
        {},
        {"tree": "cartesian", "sizes": "3,2,2", "heads": 2},
        {"tree": "given", "paths": "0;1;0,0;0,1;1,0;0,0,0;5"},
    ],
    "kangaroo": [{}, {"gamma": 1}, {"gamma": 4, "eta": 0.0}, {"gamma": 3, "eta": 1.0}],
    "eagle3": [
        {},
        {"m": 7, "k": 2, "depth": 4},
        {"m": 30, "k": 5, "depth": 3, "threshold": 0.02, "expand": 0.1},
        {"form": "chain", "gamma": 4},
        {"form": "chain", "gamma": 3, "threshold": 0.5},
    ],
    "dflash": [
        {},
        {"gamma": 2, "threshold": 0.2},
        {"form": "tree", "m": 9, "k": 3, "gamma": 4},
        {"form": "tree", "m": 30, "k": 5, "threshold": 0.02},
        {"form": "drawn", "gamma": 4},
        {"form": "drawn", "threshold": 0.5},
    ],
    "ouroboros": [
        {"gamma": 4, "N": 4, "W": 4, "G": 4, "K": 2},
        {"gamma": 6, "N": 3, "W": 2, "G": 5, "K": 3, "drafting": "phrases", "warm_start": "prompt", "shortest": 1},
        {"gamma": 3, "N": 6, "W": 3, "G": 2, "K": 4, "refine": "accepted", "warm_start": "across"},
    ],
    "rest": [
        {},
        {"c": 5, "longest": 3, "shortest": 1, "length": 3, "matches": 2},
        {"c": 255, "longest": 64, "shortest": 1, "length": 64, "matches": 20000},
    ],
}
CASES = [(name, params) for name in METHODS for params in SETTINGS.get(name, ())]
DRAWN = {("eagle3", "chain"), ("dflash", "drawn")}  # forms whose guesses are drawn
COPYING = [  # point masses alone
    (name, params)
    for name, params in CASES
    if not METHODS[name].needs & {"draft_model", "kangaroo"} and (name, params.get("form")) not in DRAWN
]


def title(case: object) -> str:
    """Name a test for its case."""
    if isinstance(case, str):
        return case
    return ",".join(f"{k}={v}" for k, v in case.items()) or "default" if isinstance(case, Mapping) else str(case)


def hashed(vocabulary: int = 13, order: int = 2, seed: int = 0, sharpness: float = 1.5) -> TableModel:
    """Make a language without any regularity beyond its order; a high sharpness leaves it almost no choice."""
    return TableModel(lambda key: sharpness * noise(seed, key, vocabulary), order, vocabulary)


def tied(vocabulary: int = 13, order: int = 2, seed: int = 0) -> TableModel:
    """Make a language most rows of which have several likeliest tokens with exactly equal logits."""
    return TableModel(lambda key: noise(seed, key, vocabulary).round().clamp(-1.0, 1.0), order, vocabulary)


def cycle(vocabulary: int = 7) -> TableModel:
    """Make a language that counts up for ever: i + 1 always comes after token i."""
    eye = 50.0 * torch.eye(vocabulary, dtype=torch.float64)
    return TableModel(lambda key: eye[(key[-1] + 1) % vocabulary], 1, vocabulary)


def correlated(target: TableModel, mix: float = 0.6, order: int = 2, seed: int = 99) -> TableModel:
    """Make a drafter that agrees with `target` to the degree of `mix`, and knows the last `order` tokens only."""

    def rule(key: tuple[int, ...]) -> torch.Tensor:
        return mix * target.logits(key) + (1 - mix) * 1.5 * noise(seed, key, target.card.vocabulary)

    return TableModel(rule, order, target.card.vocabulary)


def toy(kind: int, seed: int) -> TableModel:
    """Make one of several kinds of languages."""
    models = (
        lambda: hashed(13, 2, seed),
        lambda: hashed(6, 1, seed, sharpness=8.0),
        lambda: tied(13, 2, seed),
        lambda: hashed(31, 3, seed, sharpness=4.0),
        lambda: tied(3, 1, seed),
    )
    return models[kind % len(models)]()


def engine(model: TableModel, drafter: TableModel | None = None) -> Engine:
    """Make an engine without a tokenizer; its drafter is a correlated one unless given."""
    return Engine(model, Codec(), drafter or correlated(model), parts_of(model))


def parts_of(model: TableModel) -> Parts:
    """Make small parts of every kind for a model."""
    return Parts(
        {
            "tables": lambda progress: toy_tables.make(model),
            "medusa": lambda progress: toy_heads.make(model),
            "kangaroo": lambda progress: toy_adapter.make(model),
            "eagle": lambda progress: toy_eagle.make(model),
            "dflash": lambda progress: toy_dflash.make(model),
            "datastore": lambda progress: toy_store.make(model),
        }
    )


def prompt_for(model: TableModel, seed: int, longest: int = 12) -> tuple[int, ...]:
    """Draw random tokens of the model's vocabulary; every other seed repeats some of them."""
    source = random.Random(seed)
    ids = [source.randrange(model.card.vocabulary) for _ in range(source.randint(1, longest))]
    return tuple(ids * 2 if seed % 2 else ids)


def plain(model: TableModel, prompt: Sequence[int], count: int, penalty: float = 1.0) -> tuple[int, ...]:
    """Write greedy text without the engine: the lowest of the likeliest ids, one at a time."""
    text = list(prompt)
    for _ in range(count):
        row = model.logits(text).numpy().copy()
        for token in set(text) if penalty != 1.0 else ():
            row[token] = row[token] * penalty if row[token] < 0 else row[token] / penalty
        text.append(int(np.flatnonzero(row == row.max())[0]))
    return tuple(text[len(prompt) :])


def counted_text(words: int = 12) -> TableModel:
    """Count an n-gram model of a text that repeats itself with changes, as real text does."""
    source = random.Random(1)
    phrases = [[source.randrange(words) for _ in range(source.randint(3, 6))] for _ in range(8)]
    return counted([token for _ in range(150) for token in source.choice(phrases)], 3, words, "counted")
