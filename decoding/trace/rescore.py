"""Checks, in one plain pass over prompt and output, that every emitted token is the target's own choice.

It shares only the model with the loop that wrote the tokens: no tree, no draft, no acceptance rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from ..errors import ParamError
from ..model.session import Model, ProgressCallback, Session, catch_up
from ..ranking import likeliest
from ..sampling import Sampler, Sampling
from ..session_pool import SessionPool
from ..types import Trace

ROWS = 256  # rows per reading
_LEAST_NOISE = 1e-5
_PROBE = 16  # tokens on which rounding noise between step shapes is measured


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An emitted token that is not the plain pass's choice."""

    position: int  # among the new tokens
    token: int
    choice: int
    margin: float  # of the choice's logit over the token's


@dataclass(frozen=True, slots=True)
class Rescore:
    """The result: in a greedy run every token must be the likeliest one, in a sampled run it must be possible."""

    checked: int
    exact: int
    near_ties: int  # mismatches within `noise`
    violations: int
    noise: float  # of this device and dtype between step shapes, measured in logits
    places: tuple[Mismatch, ...]


@torch.inference_mode()
def rescore(
    trace: Trace,
    model: Model,
    session_pool: SessionPool,
    progress: ProgressCallback | None = None,
    look: Callable[[int, torch.Tensor, float], None] | None = None,
) -> Rescore:
    """Check a run's tokens. `look` gets the index of a new token, the logits for it and later ones, and the noise."""
    prompt, ids = trace.header.prompt, trace.ids
    text = [*prompt, *ids]
    if not prompt or not 0 <= min(text) <= max(text) < model.card.vocabulary or len(text) > model.card.context:
        raise ParamError(f"this trace was not written by {model.card.name}: load the model that its header names")
    sampler = Sampler(Sampling.parse(trace.header.sampling), model.card.vocabulary, model.device, prompt)
    session, places = session_pool.acquire(model, len(text), ROWS), list[Mismatch]()
    try:
        noise = max(_LEAST_NOISE, _shape_noise(session, text, len(prompt)))
        for first, logits in plain_passes(session, text, len(prompt)):
            logits = sampler.penalise(logits, [ids[:row] for row in range(first, first + len(logits))])
            places += _judge(ids, first, logits, sampler)
            if look is not None:
                look(first, logits, noise)
            if progress is not None:
                progress("checking the text", (first + len(logits)) / len(ids))
    finally:
        session_pool.release(model, session)
    near = sum(place.margin <= noise for place in places)
    return Rescore(len(ids), len(ids) - len(places), near, len(places) - near, noise, tuple(places))


def plain_passes(
    session: Session, text: Sequence[int], prompt_length: int
) -> Iterator[tuple[int, torch.Tensor]]:  # (R, V)
    """Yield the logits that choose the new tokens, with the index of the first token for each batch of rows."""
    begun, last = prompt_length, len(text) - 1
    if session.seam is not None and prompt_length <= session.seam < last:
        yield from _pass(session, text[: session.seam], begun, prompt_length)
        begun = session.seam + 1  # from here on the text is rotated differently, and read again
    yield from _pass(session, text[:last], begun, prompt_length)


def _pass(
    session: Session, text: Sequence[int], begun: int, prompt_length: int
) -> Iterator[tuple[int, torch.Tensor]]:  # (R, V)
    """Read `text` as one that began with `begun` tokens; yield the logits at the last of these and after it."""
    session.reset(begun)
    for start in range(0, len(text), ROWS):
        rows = text[start : start + ROWS]
        skip = min(len(rows), max(0, begun - 1 - start))
        logits = session.read(rows, tuple(range(-1, len(rows) - 1)), skip=skip).logits
        session.commit(range(len(rows)))
        if len(logits):
            yield start + skip + 1 - prompt_length, logits


def _shape_noise(session: Session, text: Sequence[int], prompt_length: int) -> float:
    """Estimate how much logits differ between step shapes: four times the difference at the text's end, read both ways.

    A few tokens may agree by chance to the last bit, so it is at least one rounding of the largest logit.
    """
    rows = text[-_PROBE:]
    session.reset(prompt_length)
    catch_up(session, text[: -len(rows)], room=0, chunk=ROWS)
    together = session.read(rows, tuple(range(-1, len(rows) - 1))).logits
    alone = []
    for token in rows:
        alone.append(session.read([token], (-1,)).logits[0])
        session.commit([0])
    difference = float((together.double() - torch.stack(alone).double()).abs().max())
    rounding = torch.finfo(together.dtype).eps / 2 * float(together.abs().max())
    return 4 * max(difference, rounding)


def _judge(ids: Sequence[int], first: int, logits: torch.Tensor, sampler: Sampler) -> Iterator[Mismatch]:
    """Yield the new tokens from `first` on that the penalised logits do not choose."""
    for row, (choice, scores) in enumerate(zip(likeliest(logits), logits, strict=True), start=first):
        token = ids[row]
        if sampler.sampling.greedy:
            fine, best = token == choice, scores[choice]
        else:
            allowed = sampler.probabilities(scores) > 0
            fine, best = bool(allowed[token]), scores[allowed].min()
        if not fine:
            yield Mismatch(row, token, choice, round(float(best) - float(scores[token]), 6))
