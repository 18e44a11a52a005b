"""The engine's loop in miniature: drives one method on a table model and keeps every turn."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from decoding.accept import AcceptanceRule, OneByOne
from decoding.methods.base import Context, Method
from decoding.model.table import TableModel
from decoding.ranking import likeliest, ranked
from decoding.sampling import Sampler, Sampling
from decoding.tree import path_to
from decoding.types import JSON, Draft, Verdict

Rows = list[list[int]]


def hashed(order: int, vocabulary: int, seed: int) -> TableModel:
    """Make a model whose logits are noise, fixed by its last `order` tokens: nothing in it but the order is regular."""

    def rule(key: tuple[int, ...]) -> torch.Tensor:
        return torch.randn(vocabulary, generator=torch.Generator().manual_seed(hash((seed, *key)) & 0xFFFFFFFF))

    return TableModel(rule, order, vocabulary)


def random_prompt(length: int, vocabulary: int, seed: int) -> list[int]:
    """Return a text without structure."""
    return random.Random(seed).choices(range(vocabulary), k=length)


def new_context(
    prompt: Sequence[int],
    sampling: Sampling,
    *,
    vocabulary: int,
    largest_step: int = 4096,
    end_tokens: Iterable[int] = (),
) -> Context:
    """Return what a method gets from the engine."""
    return Context(
        text=list(prompt),
        prompt_length=len(prompt),
        max_new_tokens=10_000,
        sampler=Sampler(sampling, vocabulary, torch.device("cpu"), prompt),
        end_tokens=frozenset(end_tokens),
        largest_step=largest_step,
        random=random.Random(sampling.seed),
    )


@dataclass(frozen=True)
class Turn:
    """One step, and the text in front of it."""

    before: list[int]
    draft: Draft
    verdict: Verdict
    panel: Mapping[str, JSON]


class Drive:
    """A method at work."""

    ranks = 0  # likeliest tokens that it sees at every node

    def __init__(
        self,
        kind: type[Method],
        model: TableModel,
        prompt: Sequence[int],
        sampling: Sampling | None = None,
        end_tokens: Iterable[int] = (),
        **params: JSON,
    ) -> None:
        sampling, vocabulary = sampling or Sampling(), model.card.vocabulary
        self.context = new_context(prompt, sampling, vocabulary=vocabulary, end_tokens=end_tokens)
        setting = kind.Params(**params)
        self.method, self.ranks = kind(self.context, setting), setting.ranked
        self.turns: list[Turn] = []
        self._model = model

    @property
    def written(self) -> list[int]:
        """Return the new tokens."""
        return self.context.text[self.context.prompt_length :]

    def until(self, count: int) -> Drive:
        """Take turns until `count` tokens are written."""
        while len(self.written) < count:
            self.turn()
        return self

    def turn(self) -> Turn:
        """Propose, verify, commit, observe."""
        context, before = self.context, list(self.context.text)
        draft = self.method.propose()
        sentences = [path_to(draft.parents, node)[1:] for node in range(len(draft.tokens))]
        answers = [self._model.logits([*before, *(draft.tokens[i] for i in way)]) for way in sentences]
        logits = torch.stack(answers)  # (T, V)
        argmax, sampler = likeliest(logits), context.sampler
        assert isinstance(draft, Draft), "on a CPU nothing is queued"
        rule = AcceptanceRule(sampler.sampling, sampler.draws, len(self.written))
        answers = OneByOne(draft, rule, sampler.probabilities(logits).__getitem__, argmax)
        best = ranked(logits, self.ranks).tolist() if self.ranks else ()
        verdict = Verdict(*rule.accept(draft, answers), tuple(argmax), ranked=best)
        context.text.extend(verdict.emitted)
        self.method.observe(draft, verdict)
        self.turns.append(Turn(before, draft, verdict, self.method.panel()))
        return self.turns[-1]
