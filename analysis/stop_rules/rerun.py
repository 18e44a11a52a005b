"""Runs SuffixDecoding again over recorded texts: it guesses from the tokens alone, so any of its settings is exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from decoding.methods import METHODS, Context
from decoding.types import JSON, Draft, Verdict

from ..metrics.columns import Array
from ..metrics.result import UnknownError
from ..metrics.selection import Selection
from .replay import Certainty, Replay, RulePath

FROM_TOKENS = ("suffix",)  # methods that know nothing but tokens, and learn only what was written
_LARGEST_STEP = 256  # nodes that a step has room for
_UNBOUNDED = 2**31

EXACT = "the method guesses from the tokens of the text alone, and was run again over the recorded texts"


@dataclass(frozen=True, slots=True)
class RecordedText:
    """A run's text."""

    prompt: Sequence[int]
    ids: Sequence[int]
    question: str
    budget: int  # most new tokens


def run_texts(selection: Selection) -> tuple[list[RecordedText], frozenset[int]]:
    """Return the texts of a selection's runs in their order, and the tokens that are known to end one."""
    table = selection.runs.columns.table.take(selection.runs.rows).select(
        ["question", "prompt_ids", "ids", "finish", "new_tokens"]
    )
    rows, texts, ends = table.to_pylist(), list[RecordedText](), set[int]()
    # Runs that ended by themselves had the budget of the others, as in an evaluation; `repeats_record` notices if not.
    used_up = [len(row["ids"] or ()) for row in rows if row["finish"] == "length"]
    for row in rows:
        if not row["prompt_ids"] or not row["ids"]:
            raise UnknownError("this record lacks the tokens of its prompts or texts")
        budget = len(row["ids"]) if row["finish"] == "length" else max(used_up, default=_UNBOUNDED)
        texts.append(RecordedText(row["prompt_ids"], row["ids"], row["question"], budget))
        if row["finish"] == "end_of_text":
            ends.add(row["ids"][-1])
    return texts, frozenset(ends)


def rerun(
    method: str, params: Mapping[str, JSON], texts: Sequence[RecordedText], ends: frozenset[int]
) -> list[list[Any]]:
    """Run a method over texts; return the accepted and drafted guesses of every step, a list for each text."""
    kind = METHODS[method]
    settings, memory, question = kind.Params.parse(dict(params)), dict[str, Any](), None
    runs = []
    for each in texts:
        if each.question != question:  # what is learned lasts for the turns of a question
            question, memory = each.question, {}
        text = [*each.prompt]
        context = Context(
            text=text,
            prompt_length=len(text),
            max_new_tokens=each.budget,
            sampler=cast(Any, None),  # nothing is drawn
            end_tokens=ends,
            largest_step=_LARGEST_STEP,
            memory=memory,
        )
        running, steps, done = kind(context, settings), [], 0
        while done < len(each.ids):
            draft = running.propose()
            assert isinstance(draft, Draft)
            path = accepted_path(draft, each.ids[done:])
            emitted = tuple(each.ids[done : done + len(path)])
            steps.append((len(path) - 1, len(draft.tokens) - 1))
            text.extend(emitted)
            done += len(emitted)
            running.observe(draft, Verdict(path, emitted, ()))
        runs.append(steps)
    return runs


def accepted_path(draft: Draft, text: Sequence[int]) -> tuple[int, ...]:
    """Walk a draft along the text that follows."""
    pairs = zip(draft.parents, draft.tokens, strict=True)
    children = {(parent, token): node for node, (parent, token) in enumerate(pairs)}
    path = [0]
    for token in text:
        node = children.get((path[-1], token))
        if node is None:
            break
        path.append(node)
    return tuple(path)


def replay_settings(runs: list[list[Any]], texts: Sequence[RecordedText]) -> Replay:
    """Summarise a run over texts."""
    later = [step for steps in runs for step in steps[1:]]
    verified = np.array([drafted for _, drafted in later], np.int64)
    tokens = sum(len(text.ids) for text in texts)
    first = sum(min(steps[0][0] + 1, len(text.ids)) for steps, text in zip(runs, texts, strict=True))
    return Replay(Certainty.EXACT, EXACT, RulePath(sum(map(len, runs)), tokens - first, verified, verified))


def repeats_record(runs: list[list[Any]], selection: Selection) -> bool:
    """Return whether a run with the recorded settings takes the recorded steps."""
    steps = [step for each in runs for step in each]
    accepted, drafted = selection.steps.maybe("accepted"), selection.steps.maybe("drafted")
    if len(steps) != len(accepted):
        return False
    ours: Array = np.asarray(steps, float).reshape(-1, 2)
    return bool((ours[:, 0] == accepted).all() and (np.isnan(drafted) | (ours[:, 1] == drafted)).all())
