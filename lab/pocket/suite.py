"""The files beside the models: held-out questions in Spec-Bench's form, and conversations for retrieval drafting."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from .language.kinds import KINDS, held_out_sample, training_sample
from .language.sample import Sample

QUESTIONS = 24  # of each kind
_STORE_BYTES = 500_000


def write_tasks(path: Path, seed: int, questions: int = QUESTIONS) -> None:
    """Write `questions` of every kind, which no training shows: one JSON object a line."""
    rng = Random(f"{seed}/suite")
    samples = [held_out_sample(kind, rng) for kind in KINDS for _ in range(questions)]
    with path.open("w", encoding="utf-8") as file:
        for number, sample in enumerate(samples, start=1):
            file.write(json.dumps(_question(number, sample)) + "\n")


def write_store(path: Path, seed: int, size: int = _STORE_BYTES) -> None:
    """Write conversations of the training split, of about `size` bytes: one JSON object a line, in the usual form."""
    rng = Random(f"{seed}/store")
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < size:
            turns = training_sample(rng, 1.0).turns
            spoken = [message for turn in turns for message in (("user", turn.prompt), ("assistant", turn.answer))]
            messages = [{"role": role, "content": text} for role, text in spoken]
            file.write(json.dumps({"messages": messages}) + "\n")


def _question(number: int, sample: Sample) -> dict[str, object]:
    return {
        "question_id": number,
        "category": sample.kind,
        "turns": [turn.prompt for turn in sample.turns],
        "reference": [turn.answer for turn in sample.turns],
    }
