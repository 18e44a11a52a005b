"""JSON lines of SpecDecode-Bench's simulator: how far each drafter would have come from every position of a text.

Names as in its data and request.py: `prompt_token_ids`, `generated_token_ids`, and `acc_len` in `acc_ngram`,
`acc_eagle` or `acc`, or a bare list `acc_eagle_three`. Entry i counts the tokens of a step after i + 1 tokens of the
text, the target's own one included. It is no run: the steps are those that a run would have taken.
"""

from __future__ import annotations

from .cuts import starts_of
from .fields import Fields
from .records import Contents
from .tables import Imported, ImportedRows

NAME, TITLE = "specdecode-bench", "SpecDecode-Bench's record"
_DRAFTERS = {"acc_ngram": "ngram", "acc_eagle": "eagle", "acc_eagle_three": "eagle3", "acc": "speculative"}
_SHORT = 2  # entries that may be missing at the text's end, where nothing is left to be guessed


def recognises(first: Fields) -> bool:
    """Return True if this is a text with a drafter's lengths."""
    return "generated_token_ids" in first and any(name in first for name in _DRAFTERS)


def read(contents: Contents) -> Imported:
    """Read a run from each text and drafter."""
    tables = ImportedRows()
    for fields in contents.records():
        prompt_ids, ids = fields.ids("prompt_token_ids"), fields.ids("generated_token_ids")
        if ids is None:
            fields.refuse("generated_token_ids", "is missing")
        for name, method in _DRAFTERS.items():
            if name in fields:
                _add(tables, fields, method, _lengths(fields, name, len(ids)), prompt_ids, ids)
    tables.missing["steps.drafted"] = "the record holds what was accepted at every position, not what was drafted"
    tables.missing["runs.steps"] = "no run took these steps: the record has the length of a step from each position"
    return tables.finished(contents.name, NAME, TITLE, format=NAME)


def _add(
    tables: ImportedRows, fields: Fields, method: str, lengths: list[int], prompt_ids: list[int] | None, ids: list[int]
) -> None:
    written, accepted, place = ([1], [0], 1) if ids else ([], [], 0)
    while place < len(ids):
        step = lengths[place - 1] if place <= len(lengths) else 1
        written.append(min(step, len(ids) - place))  # the text may end with a guess
        accepted.append(min(step - 1, written[-1]))
        place += written[-1]
    prompt = None if prompt_ids is None else len(prompt_ids)
    run = tables.add_run(
        fields.where,
        question=fields.label("id") or str(len(tables)),
        method=method,
        engine="vllm",
        prompt_ids=prompt_ids,
        ids=ids,
        prompt_tokens=prompt,
        new_tokens=len(ids),
    )
    starts = () if prompt is None else starts_of(written, prompt)
    drafted = [0 if not step else None for step in range(len(written))]
    tables.add_steps(fields.where, run, accepted, written=written, start=starts, drafted=drafted)


def _lengths(fields: Fields, name: str, tokens: int) -> list[int]:
    inner = fields if isinstance(fields.plain[name], list) else fields.inside(name)
    label = name if inner is fields else "acc_len"
    lengths = inner.counts(label)
    if not 0 <= tokens - len(lengths) <= _SHORT:
        inner.refuse(label, f"has {len(lengths)} entries, but generated_token_ids has {tokens} tokens")
    for place, length in enumerate(lengths):
        if not 1 <= length <= tokens - place:
            inner.refuse(f"{label}[{place}]", f"is {length}, but from 1 to {tokens - place} tokens can come there")
    return lengths
