"""The oracle: one plain pass over prompt and output tells whether every emitted token is the target's own choice.

It shares nothing with the loop that wrote the tokens but the model itself: no tree, no draft, no acceptance rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .errors import ParamError
from .lending import Lender
from .model.session import Model, Session, catch_up
from .sampling import Sampler, Sampling, likeliest
from .types import Trace

_ROWS = 256  # rows per reading
_LEAST_NOISE = 1e-5
_PROBE = 8  # tokens on which rounding noise between step shapes is measured


@dataclass(frozen=True, slots=True)
class Place:
    """An emitted token that is not the plain pass's choice."""

    position: int  # among the new tokens
    token: int
    choice: int
    margin: float  # by how much the choice's logit exceeds the token's


@dataclass(frozen=True, slots=True)
class Rescore:
    """The outcome. Greedy runs: every token against the likeliest one. Sampled runs: every token must be possible."""

    checked: int
    exact: int
    near_ties: int  # within the noise that this device and dtype show between step shapes
    violations: int
    noise: float  # that noise, measured, in logits
    places: tuple[Place, ...]


@torch.inference_mode()
def rescore(trace: Trace, model: Model, lender: Lender) -> Rescore:
    """Check a run's tokens."""
    prompt, ids = trace.header.prompt, trace.ids
    text = [*prompt, *ids]
    if not prompt or max(text) >= model.card.vocabulary or len(text) > model.card.context:
        raise ParamError(f"this trace was not written by {model.card.name}: load the model that its header names")
    session = lender.borrow(model, len(text), _ROWS)
    try:
        logits = _plain_pass(session, text, len(prompt)) if ids else torch.empty(0, model.card.vocabulary)
        noise = max(_LEAST_NOISE, 4 * _shape_noise(session, text, len(prompt)))
    finally:
        lender.give_back(model, session)
    sampling = Sampling.parse(trace.header.sampling)
    sampler = Sampler(sampling, model.card.vocabulary, model.device, prompt)
    if sampling.repetition_penalty != 1.0:
        logits = sampler.penalise(logits, [ids[:row] for row in range(len(ids))])
    return _judge(ids, logits, sampler, noise)


def _plain_pass(session: Session, text: Sequence[int], prompt_length: int) -> torch.Tensor:  # (new tokens, V)
    """Logits in front of every new token."""
    session.reset(prompt_length)
    parts = []
    for begin in range(0, len(text) - 1, _ROWS):
        rows = text[begin : min(begin + _ROWS, len(text) - 1)]
        skip = min(len(rows), max(0, prompt_length - 1 - begin))
        parts.append(session.read(rows, tuple(range(-1, len(rows) - 1)), skip=skip).logits)
        session.commit(range(len(rows)))
    return torch.cat([part for part in parts if len(part)])


def _shape_noise(session: Session, text: Sequence[int], prompt_length: int) -> float:
    """The largest difference in a logit between reading the text's end at once and token by token."""
    rows = text[-_PROBE:]
    session.reset(prompt_length)
    catch_up(session, text[: -len(rows)], room=0, chunk=_ROWS)
    together = session.read(rows, tuple(range(-1, len(rows) - 1))).logits
    alone = []
    for token in rows:
        alone.append(session.read([token], (-1,)).logits[0])
        session.commit([0])
    return float((together.double() - torch.stack(alone).double()).abs().max())


def _judge(ids: Sequence[int], logits: torch.Tensor, sampler: Sampler, noise: float) -> Rescore:
    exact, places = 0, list[Place]()
    for position, (token, choice) in enumerate(zip(ids, likeliest(logits) if len(ids) else [], strict=True)):
        row = logits[position]
        if sampler.sampling.greedy:
            fine, best = token == choice, row[choice]
        else:
            allowed = sampler.probabilities(row) > 0
            fine, best = bool(allowed[token]), row[allowed].min()
        if fine:
            exact += 1
        else:
            places.append(Place(position, token, choice, round(float(best) - float(row[token]), 6)))
    near = sum(place.margin <= noise for place in places)
    return Rescore(len(ids), exact, near, len(places) - near, noise, tuple(places))
