"""Prompt lookup's drafts against its rules, written out as scans, and against transformers' own generator."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from decoding.errors import ParamError
from decoding.methods.base import Context
from decoding.methods.prompt_lookup import PromptLookup, PromptLookupParams
from decoding.sampling import Sampler, Sampling
from decoding.types import Draft
from tests.toys import cycle, engine

REFERENCE_CODE = PromptLookupParams.presets["As in the reference code"]
TRANSFORMERS = PromptLookupParams.presets["As in transformers"]


def proposal(text: Sequence[int], reference: Sequence[int] = (), remaining: int = 99, **params: Any) -> Draft:
    """Return the draft for a text; its first three tokens are the prompt."""
    prompt = min(3, len(text))
    sampler = Sampler(Sampling(), 9, torch.device("cpu"), text)
    context = Context(list(text), prompt, len(text) - prompt + remaining, sampler, reference=reference)
    return PromptLookup(context, PromptLookupParams(**params)).propose()


def first_full_match(text: Sequence[int], longest: int, count: int) -> list[int]:
    """Return the reference code's rule: the earliest earlier occurrence with all `count` tokens after it."""
    for n in range(longest, 0, -1):
        for start in range(len(text) - n):
            end = start + n
            if list(text[start:end]) == list(text[-n:]) and end + count <= len(text):
                return list(text[end : end + count])
    return []


def latest_match(text: Sequence[int], longest: int, count: int) -> list[int]:
    """Return our rule: the latest earlier occurrence; a copy that meets the end of the text goes on into itself."""
    for n in range(min(longest, len(text)), 0, -1):
        for end in range(len(text) - 1, n - 1, -1):
            if list(text[end - n : end]) == list(text[-n:]):
                grown = list(text)
                for step in range(count):
                    grown.append(grown[end + step])
                return grown[len(text) :]
    return []


def random_texts() -> list[list[int]]:
    """Return texts of a few words, so that endings do recur."""
    chance = random.Random(0)
    return [[chance.randrange(chance.choice((2, 4, 8))) for _ in range(chance.randint(1, 40))] for _ in range(400)]


def test_the_reference_preset_is_the_reference_rule() -> None:
    """A self-match, the latest instead of the earliest match, or a tail that is too short to be allowed."""
    hits = 0
    for text in random_texts():
        expected = first_full_match(text, 3, 10)
        assert list(proposal(text, **REFERENCE_CODE).tokens) == [text[-1], *expected]
        hits += bool(expected)
    assert hits > 100


def test_the_default_is_the_latest_match() -> None:
    """A copy that starts at the wrong place, or wraps around at the wrong length."""
    hits = 0
    for text in random_texts():
        expected = latest_match(text, 3, 10)
        assert list(proposal(text).tokens) == [text[-1], *expected]
        hits += bool(expected)
    assert hits > 100


def test_the_transformers_preset_drafts_what_transformers_drafts() -> None:
    """People compare our acceptance with theirs: the candidates have to be the same."""
    from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

    generator = PromptLookupCandidateGenerator(
        eos_token_id=None, num_output_tokens=10, max_matching_ngram_size=2, max_length=1000, vocab_size=9,
        logits_processor=None,
    )  # fmt: skip
    hits = 0
    for text in random_texts():
        candidates = generator.get_candidates(torch.tensor([text]))[0][0].tolist()
        assert list(proposal(text, **TRANSFORMERS).tokens) == [text[-1], *candidates[len(text) :]]
        hits += len(candidates) > len(text)
    assert hits > 100


def test_the_reference_document_is_asked_second() -> None:
    """The text itself knows best what comes next; the document helps where the text has no match of that length."""
    document = (7, 1, 2, 6, 6)
    assert proposal((1, 2, 5, 1, 2), document, K=2).tokens == (2, 5, 1)
    assert proposal((1, 2), document, K=2).tokens == (2, 6, 6)
    assert proposal((8, 2), document, K=9).sources == ("root", "reference:3", "reference:4")
    assert proposal((2, 8, 1, 2), document, K=1).tokens == (2, 6), "two tokens of the document outweigh one of the text"


def test_sources_name_the_copied_places() -> None:
    """The screen draws an arrow from every guess to the place it was copied from."""
    draft = proposal((1, 2, 3, 4, 1, 2), K=6)
    assert draft.tokens == (2, 3, 4, 1, 2, 3, 4)
    assert draft.sources == ("root", "prompt:2", "output:3", "output:4", "output:5", "prompt:2", "output:3")
    assert draft.parents == (-1, 0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(("remaining", "drafted"), [(1, 0), (2, 1), (5, 4), (99, 10)])
def test_no_guess_is_made_behind_the_budget(remaining: int, drafted: int) -> None:
    """Rows that can never be emitted cost time and are counted as rejected."""
    assert len(proposal((1, 1, 1, 1), remaining=remaining).tokens) == 1 + drafted


def test_a_range_of_endings_must_not_be_empty() -> None:
    """Settings that can never match look like a method that does not work."""
    with pytest.raises(ParamError, match="min_ngram must be at most max_ngram"):
        PromptLookupParams(max_ngram=2, min_ngram=3)


def test_the_panel_tells_what_matched() -> None:
    """A panel left over from the step before explains the wrong guess."""
    steps = engine(cycle()).generate((3, 4, 5, 6, 0, 1, 2), "prompt_lookup", max_new_tokens=20).trace.steps
    assert steps[0].panel == {} and steps[0].drafted == 0
    assert steps[1].panel == {"n": 1, "ending": [3], "copied_from": "prompt:1"}
    assert steps[2].panel["n"] == 3
