"""Small labs: questions that are token ids, on models that are tables."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from decoding.engine import Engine
from lab.papers.experiment import Experiment, Question, Variant
from tests.toys import counted_text, engine

KINDS = ("code", "chat", "arithmetic")


def make_experiment(
    engine: Engine,
    budget: int,
    kinds: Sequence[str] = KINDS,
    variants: Mapping[str, Variant] | None = None,
    length: int = 10,
) -> Experiment:
    """Make an experiment with a random prompt of every kind named."""
    source, questions = random.Random(5), list[Question]()
    for kind in kinds:
        ids = tuple(source.randrange(engine.model.card.vocabulary) for _ in range(length))
        questions.append(Question(kind, ids, engine.generate(ids, max_new_tokens=budget, record="off").ids))
    return Experiment(engine, questions, budget, variants)


@pytest.fixture
def experiment() -> Experiment:
    """Run every method on a language that repeats itself."""
    return make_experiment(engine(counted_text()), 16)
