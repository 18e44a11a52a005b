"""Measures a model of the family: right answers of every kind, and its entropy while it wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import torch

from analysis.prompts.tasks import Task
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.model.session import ProgressCallback
from decoding.trace.rescore import ROWS, plain_passes

from .language.code import parses
from .language.kinds import KINDS

_BUDGET = 256  # new tokens per answer: more than the language's longest


@dataclass(slots=True)
class Quality:
    """The results on the suite's questions of one kind, counted by turns."""

    turns: int = 0
    right: int = 0
    parseable: int = 0  # of code: answers that are Python
    tokens: int = 0
    bits: float = 0.0  # entropy of the next token, summed over the answers' tokens
    wrong: list[tuple[str, str, str]] = field(default_factory=list)  # prompt, answer, reference

    @property
    def share(self) -> float:
        """The share of right answers."""
        return self.right / self.turns

    @property
    def entropy(self) -> float:
        """Mean entropy of the next token, in bits."""
        return self.bits / self.tokens


def measure(engine: Engine, tasks: Sequence[Task], progress: ProgressCallback) -> dict[str, Quality]:
    """Answer every question greedily, judge the answers, and read them again for the entropies."""
    by_kind = {kind: Quality() for kind in KINDS}
    for number, task in enumerate(tasks):
        progress(f"answering the suite: {task.category}", number / len(tasks))
        if task.category not in KINDS or len(task.reference) != len(task.turns):
            raise ParamError(f"question {task.id}: only the embedded family's own tasks can be judged")
        _judge(engine, task, by_kind[task.category])
    return {kind: quality for kind, quality in by_kind.items() if quality.turns}


def total(qualities: Mapping[str, Quality]) -> Quality:
    """Sum all kinds."""
    counts = ("turns", "right", "parseable", "tokens", "bits")
    return Quality(**{count: sum(getattr(quality, count) for quality in qualities.values()) for count in counts})


def _judge(engine: Engine, task: Task, quality: Quality) -> None:
    """Judge one conversation: a later turn's prompt holds the model's own earlier answers."""
    chat: list[dict[str, str]] = []
    for prompt, reference in zip(task.turns, task.reference, strict=True):
        chat.append({"role": "user", "content": prompt})
        ids = engine.encode(chat)
        result = engine.generate(ids, max_new_tokens=_BUDGET, record="off")
        chat.append({"role": "assistant", "content": result.text})
        good = KINDS[task.category].right(prompt, result.text, reference)
        quality.turns += 1
        quality.right += good
        quality.parseable += task.category == "code" and parses(result.text)
        quality.tokens += len(result.ids)
        quality.bits += _bits(engine, ids, result.ids)
        if not good:
            quality.wrong.append((prompt, result.text, reference))


@torch.inference_mode()
def _bits(engine: Engine, prompt: Sequence[int], answer: Sequence[int]) -> float:
    """Sum the entropies of the distributions that an answer's tokens were chosen from."""
    text, nats = [*prompt, *answer], 0.0
    for _, logits in plain_passes(engine.model.open(len(text), ROWS), text, len(prompt)):
        log_p = logits.double().log_softmax(-1)
        nats -= float((log_p.exp() * log_p).sum())
    return nats / log(2)
