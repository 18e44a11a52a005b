"""Recomputes what a record says about the target, in one plain pass over its text, and replays its draws.

The pass reads the text that was written. So it answers for the nodes of the accepted paths and for the guesses after
them, and for no others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from decoding.engine import Engine
from decoding.methods import METHODS
from decoding.sampling import Draws, Sampling, draw, probabilities
from decoding.stops import trim
from decoding.types import Step, Trace

from .contradiction import Contradiction, differs, first_of
from .derived_step import ROUNDED

_SAMPLING_NEEDS = {"draft_model", "early_exit", "features"}  # of methods that may draw their guesses


@dataclass(slots=True)
class Numbers:
    """Compares the columns of the steps with rows of logits as these arrive."""

    trace: Trace
    contradictions: list[Contradiction] = field(default_factory=list)
    replayed: int = 0  # tokens whose draw was repeated

    def look(self, first: int, logits: torch.Tensor, noise: float) -> None:
        """Compare the rows for the new tokens from `first` on."""
        header = self.trace.header
        sampling, start = Sampling.parse(header.sampling), len(header.prompt)
        written = 0 if header.branch is None else header.branch.written + start - header.branch.prompt
        draws = Draws(sampling.seed)
        for step in self.trace.steps:
            for depth in range(len(step.emitted)):
                row = step.start - start + depth - first
                if 0 <= row < len(logits):
                    target = _Row(logits[row], sampling, noise)
                    if depth < len(step.path):
                        self.contradictions += first_of(_at(step, step.path[depth], target))
                    if not sampling.greedy and _drawn(self.trace, step, depth):
                        self.replayed += 1
                        token = target.draw(draws.at(written + first + row), step.emitted[depth])
                        if token != step.emitted[depth]:
                            self.contradictions.append(
                                differs(step.index, "emitted", step.emitted[depth], "the draws of the seed", token)
                            )


class _Row:
    """The target's distribution at one position of the text."""

    def __init__(self, logits: torch.Tensor, sampling: Sampling, noise: float) -> None:
        self.logits, self.p = logits, probabilities(logits, sampling).double()
        self._noise = noise * (1.0 if sampling.greedy else 1.0 / max(sampling.temperature, 1e-6))
        self._spread = min(math.expm1(min(2 * self._noise, 50.0)), 1.0)
        self.sure = sampling.greedy or not self._on_an_edge(logits, sampling)
        entropy = torch.special.entr(self.p).sum()
        self.entropy, self.margin = float(entropy), float(logits.max())

    def slack(self, p: float) -> float:
        """Return by how much a probability may differ between step shapes, and by rounding."""
        return p * self._spread + 2 * ROUNDED

    @property
    def entropy_slack(self) -> float:
        """Return the same for the entropy."""
        return 4 * self._noise * (1.0 + self.entropy) + 20 * ROUNDED

    def share(self, token: int) -> float:
        """Return a token's probability; 0 for one that the model does not have."""
        return float(self.p[token]) if token < len(self.p) else 0.0

    def chooses(self, token: int) -> bool:
        """Return True if a token is the likeliest, within the noise."""
        return token < len(self.p) and self.margin - float(self.logits[token]) <= self._noise

    def draw(self, uniform: float, recorded: int) -> int:
        """Return the token that a number draws, or the recorded one where noise may have decided between them."""
        token = draw(self.p, uniform)
        if token == recorded or float(self.p[recorded]) == 0.0:
            return token
        after = float(self.p[: recorded + 1].sum())
        before, goal = after - float(self.p[recorded]), uniform * float(self.p.sum())
        slack = self._spread + 1e-6
        return recorded if before - slack <= goal <= after + slack or not self.sure else token

    def _on_an_edge(self, logits: torch.Tensor, sampling: Sampling) -> bool:
        """Return True if noise may decide which tokens the filters leave."""
        step, top_p = self._spread + 1e-6, sampling.top_p
        wider = replace(sampling, top_p=min(1.0, top_p + step), min_p=max(0.0, sampling.min_p * (1 - step)))
        if top_p < 1.0:
            top_p = max(0.0, top_p - step)
        tighter = replace(sampling, top_p=top_p, min_p=min(1.0, sampling.min_p * (1 + step)))
        kept = [probabilities(logits, each) > 0 for each in (wider, tighter)]
        if 0 < sampling.top_k < len(logits):
            values = logits.topk(sampling.top_k + 1).values
            if float(values[-2] - values[-1]) <= self._noise:
                return True
        return not torch.equal(*kept)


def _at(step: Step, node: int, target: _Row) -> Iterator[Contradiction]:
    """Compare what a step recorded at a node of its path, and about the tokens after it."""
    where = step.index
    if step.choices and not target.chooses(step.choices[node]):
        yield differs(
            where, f"choices[{node}]", step.choices[node], "the plain pass's numbers", int(target.logits.argmax())
        )
    if not target.sure:
        return
    if step.entropy and abs(step.entropy[node] - target.entropy) > target.entropy_slack:
        yield differs(where, f"entropy[{node}]", step.entropy[node], "the plain pass's numbers", target.entropy)
    if step.top:
        listed = [token for token, _ in step.top[node]]
        yield from _shares(where, f"top[{node}]", step.top[node], target)
        least = float(target.p.topk(min(len(listed), len(target.p))).values[-1]) if listed else 0.0
        for token in listed:
            p = target.share(token)
            if p < least - target.slack(least):
                yield Contradiction(where, f"top[{node}]", f"lists token {token}, of which {len(listed)} are likelier")
    if step.draft_top:
        pairs = [(token, p) for token, _, p in step.draft_top[node]]
        yield from _shares(where, f"draft_top[{node}]", pairs, target)
    if step.p:
        for child, parent in enumerate(step.parents):
            recorded = step.p[child]
            if parent == node and recorded is not None:
                yield from _shares(where, f"p[{child}]", [(step.tokens[child], recorded)], target)


def _shares(step: int, name: str, pairs: Sequence[tuple[int, float]], target: _Row) -> Iterator[Contradiction]:
    for token, recorded in pairs:
        p = target.share(token)
        if abs(recorded - p) > target.slack(p):
            yield Contradiction(step, name, f"gives token {token} {recorded:.6g}, but the plain pass gives it {p:.6g}")


def _drawn(trace: Trace, step: Step, depth: int) -> bool:
    """Return True if the target's own draw at this position is the token: no guess there was sampled or typical."""
    if not trace.header.lossless:
        return depth == step.accepted  # guesses are accepted without a draw
    if step.q:
        return all(q is None for q in step.q)
    method = METHODS.get(trace.header.method)
    return step.drafted == 0 or (method is not None and not method.needs & _SAMPLING_NEEDS)


def texts(engine: Engine, trace: Trace) -> Iterator[Contradiction]:
    """Compare the text and the display texts with the tokenizer's."""
    codec, header = engine.codec, trace.header
    text = trim(codec.continuation(header.prompt, trace.ids), header.stop)
    if trace.summary is not None and trace.summary.text != text:
        yield differs(None, "summary.text", trace.summary.text, "the tokens", text)
    if trace.summary is not None and header.stop:
        stopped = text != codec.continuation(header.prompt, trace.ids)
        if stopped != (trace.summary.finish == "stop") and trace.ids[-1:] and trace.ids[-1] not in header.end_tokens:
            yield differs(
                None, "finish", trace.summary.finish, "the stop strings", "stop" if stopped else "another end"
            )
    for token, piece in trace.texts.items():
        if token < engine.model.card.vocabulary and codec.piece(token) != piece:
            yield differs(None, f"texts[{token}]", piece, "the tokenizer's entries", codec.piece(token))
