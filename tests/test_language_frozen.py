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
    "chat": "56ea7636f41a45a7",
    "translation": "28c7655120c96bb5",
    "summary": "b463842548039604",
    "qa": "decc09a89c7afa4d",
    "arithmetic": "7a7da3cac462e82d",
    "rag": "780a8751315f9772",
    "code": "1b91cdb1cba3e0a1",
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
