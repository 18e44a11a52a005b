"""The embedded models speak the language as it was when they were trained: a change here asks for new models."""

from __future__ import annotations

import hashlib
from random import Random

import pytest

from lab.pocket.language import drills
from lab.pocket.language.kinds import KINDS
from lab.pocket.language.sample import Sample

DIGESTS = {
    "drills": "7d69c38adb5a8de5",
    "chat": "56ea7636f41a45a7",
    "translation": "d49e16debcf2fc96",
    "summary": "b463842548039604",
    "qa": "e0a332c134684669",
    "arithmetic": "be35f1cf31dc9145",
    "rag": "bd78239e287f4557",
    "code": "b834536cc73e8c34",
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
