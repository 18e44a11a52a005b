"""The embedded models speak the language as it was when they were trained: a change here asks for new models."""

from __future__ import annotations

import hashlib
from random import Random

import pytest

from decoding.training.language import drills
from decoding.training.language.kinds import KINDS
from decoding.training.language.sample import Sample

DIGESTS = {
    "drills": "7d69c38adb5a8de5",
    "chat": "f7d98e4fab9e96c7",
    "translation": "d489c5924e06c9ce",
    "summary": "a5c91ede77e54c55",
    "qa": "0ee3fb02e62c89d6",
    "arithmetic": "d175314bca22d44e",
    "rag": "eb991c0e8ca742b2",
    "code": "95fa335453e40456",
}
MAKERS = {"drills": drills.make} | {name: kind.make for name, kind in KINDS.items()}


def written(sample: Sample) -> bytes:
    return "\n".join(text for turn in sample.turns for text in (turn.prompt, turn.answer)).encode()


@pytest.mark.parametrize("name", MAKERS)
def test_a_seed_makes_the_conversations_that_the_models_were_trained_on(name: str) -> None:
    sha, rng = hashlib.sha256(), Random(f"frozen/{name}")
    for _ in range(1000):
        sha.update(written(MAKERS[name](rng)))
    assert sha.hexdigest()[:16] == DIGESTS[name]
