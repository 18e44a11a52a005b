"""Names the kinds of sources in words: "branch" in a record is a guess of the drafter's tree.

The templates in viz describe a single guess, such as "guess 2 after the root, ranked 1 by the drafter".
"""

from __future__ import annotations

# By the kind before the colon of a source (`Draft.sources`). Each reads well after "came from the".
WORDS = {
    "draft": "draft model",
    "jacobi": "Jacobi block",
    "window": "window",
    "pool": "pool of n-grams",
    "prompt": "prompt",
    "output": "output",
    "reference": "reference document",
    "bigram": "model's bigrams",
    "chain": "chains of the model's bigrams",
    "unigram": "model's unigrams",
    "medusa": "Medusa heads",
    "exit": "early exit",
    "eagle": "drafter's chain",
    "branch": "drafter's tree",
    "block": "tokens drawn from the drafter's block",
    "place": "drafter's block",
    "datastore": "datastore",
    "local": "text so far",
    "global": "earlier answers",
    "recycled": "recycled tokens",
}


def source_label(kind: str) -> str:
    """Return the words for a kind; an unknown one is returned as it is."""
    return WORDS.get(kind, kind)


def source_in_sentence(kind: str) -> str:
    """Return the words for a kind with their article; an unknown one is quoted."""
    return f"the {WORDS[kind]}" if kind in WORDS else repr(kind)
