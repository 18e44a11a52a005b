"""Answer files of Spec-Bench: one line a question, with all its turns.

Names as its evaluation/eval.py writes them: `question_id`, `category`, `model_id`, and in the one entry of `choices`
lists by turn, `turns`, `new_tokens`, `wall_time` (and `decoding_steps`, or `idxs`), and `accept_lengths`, the tokens of
each step, the target's own one included, of all turns in a row.
"""

from __future__ import annotations

from itertools import accumulate

from .fields import Fields
from .records import Contents
from .tables import Imported, ImportedRows

NAME, TITLE = "spec-bench", "Spec-Bench's answer file"


def recognises(first: Fields) -> bool:
    """Return True if this is a question's answer with the tokens of every step."""
    return "question_id" in first and any("accept_lengths" in choice for choice in first.seen("choices"))


def read(contents: Contents) -> Imported:
    """Read a run from each turn."""
    tables = ImportedRows()
    for fields in contents.records():
        choice = fields.only("choices")
        texts, tokens, seconds = choice.texts("turns"), choice.counts("new_tokens"), choice.numbers("wall_time")
        for name, values in (("new_tokens", tokens), ("wall_time", seconds)):
            choice.agree(name, len(values), "the entries of turns", len(texts))
        for turn, lengths in enumerate(_by_turn(choice, tokens)):
            run = tables.add_run(
                fields.where,
                question=fields.label("question_id") or str(len(tables)),
                category=fields.label("category") or "",
                turn=turn + 1,
                method=fields.text("model_id") or "speculative",
                engine=NAME,
                text=texts[turn],
                new_tokens=tokens[turn],
                tokens_per_second=tokens[turn] / seconds[turn] if seconds[turn] else None,
            )
            accepted = [length - 1 for length in lengths]
            tables.add_steps(choice.where, run, accepted, written=lengths)
    tables.missing |= {
        "runs.model": "model_id names model and method together, and is in the column method",
        "runs.prefill_seconds": "wall_time is the time of a whole answer",
        "runs.decode_seconds": "wall_time is the time of a whole answer",
    }
    return tables.finished(contents.name, NAME, TITLE, format=NAME)


def _by_turn(choice: Fields, tokens: list[int]) -> list[list[int]]:
    """Return the steps of every turn; their tokens must be those of the turn."""
    lengths = choice.counts("accept_lengths")
    for step, length in enumerate(lengths):
        if length == 0:
            choice.refuse(f"accept_lengths[{step}]", "is 0: a step writes at least one token")
    ends = _ends(choice, lengths, tokens)
    steps, begun = [], 0
    for turn, end in enumerate(ends):
        part = lengths[begun:end]
        begun, whole = end, sum(lengths[begun:end])
        # Some methods count the token that the prompt's own pass writes, some do not; an end may cut the last step.
        if not (whole in (tokens[turn], tokens[turn] - 1) or (part and whole - part[-1] < tokens[turn] < whole)):
            choice.refuse(f"new_tokens[{turn}]", f"is {tokens[turn]}, but accept_lengths of the turn make {whole}")
        steps.append(part)
    if begun != len(lengths):
        choice.refuse("accept_lengths", f"has {len(lengths)} steps, but the tokens of all turns need {begun}")
    return steps


def _ends(choice: Fields, lengths: list[int], tokens: list[int]) -> list[int]:
    """Return where each turn's steps end: by their number, else by the tokens that they make."""
    for name in ("decoding_steps", "idxs"):
        if name in choice:
            steps = choice.counts(name)
            choice.agree(name, len(steps), "the entries of new_tokens", len(tokens))
            if sum(steps) == len(lengths):
                return [*accumulate(steps)]
            if sum(steps) + len(steps) == len(lengths):  # EAGLE's numbers count from 0
                return [*accumulate(step + 1 for step in steps)]
    if len(tokens) == 1:
        return [len(lengths)]
    ends, end = [], 0
    for wanted in tokens:
        made = 0
        while made < wanted and end < len(lengths):
            made += lengths[end]
            end += 1
        ends.append(end)
    return ends
