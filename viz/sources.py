"""Where a guess came from, in words: what stands in a record as "window:2,5" is a window's row 2, column 5."""

from __future__ import annotations

from . import panel, visible

# By the kind in front of the colon; {0} and {1} are the numbers behind it. The page's player fills in the same ones.
WORDS: dict[str, str] = {
    "root": "the last token of the text",
    "draft": "token {0} of the draft model",
    "jacobi": "Jacobi block, {0} iterations old",
    "window": "window row {0}, column {1}",
    "pool": "n-gram {0} of the pool, token {1}",
    "prompt": "copied from place {0} of the prompt",
    "output": "copied from place {0}, in the output",
    "reference": "copied from place {0} of the reference",
    "bigram": "model's bigram, rank {0}",
    "chain": "model's bigram, link {0} of the chain",
    "unigram": "model's unigram, rank {0}",
    "medusa": "Medusa head {0}, rank {1}",
    "exit": "token {0} of the early exit",
    "datastore": "datastore, which has it here {0} times",
}
LONGEST = 48  # characters of a source in the stream: a record from elsewhere may hold anything


def in_words(source: str) -> str:
    """A source in words; as it stands where nothing is known of its kind."""
    kind, _, rest = source.partition(":")
    numbers = rest.split(",") if rest else []
    template = WORDS.get(kind)
    if template is None or template.count("{") != len(numbers):
        return source[:LONGEST]
    return template.format(*numbers)[: 2 * LONGEST]


def told(source: str) -> str:
    """A source in a sentence: what a file from elsewhere made up stands in quotation marks, all of it visible."""
    kind, numbers = panel.detail(source)
    return in_words(source) if kind in WORDS and (numbers or kind == source) else visible.quoted(source, LONGEST)
