"""Computes the cost of a selection's steps, in steps of the autoregressive runs of its folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from decoding.types import JSON

from . import intervals
from .columns import Array
from .result import UnknownError
from .selection import Selection
from .times import later_steps


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of a step after the first, in autoregressive steps of the same run folder.

    NaN where not recorded. For resamples, all are arrays.
    """

    tokens: Any  # that it writes
    plain_tokens: Any  # that an autoregressive step writes: 1
    total: Any
    rows: Any  # that the target reads
    # Known where the record splits the time:
    draft: Any
    passes: Any  # the target's pass, in autoregressive passes
    verification: Any  # what its rows cost beyond those of an autoregressive pass
    outside: Any  # time in no pass beyond that of an autoregressive step
    outside_share: Any  # time in no pass, of the step

    @property
    def split(self) -> bool:
        """Whether the time is split into drafting, passes and the rest."""
        return bool(np.isfinite(self.outside))

    @property
    def free(self) -> Any:
        """The speed if a step cost no more than one of one token."""
        return self.tokens / self.plain_tokens

    @property
    def speed(self) -> Any:
        """Measured on the steps: how many times as fast as one token at a time."""
        return self.free / self.total


@dataclass(frozen=True, slots=True)
class Pair:
    """A selection and the autoregressive runs of its folder, on the questions that both have."""

    drafting: Selection
    plain: Selection
    paired: bool  # whether they have any in common; else the two are all that there is

    @classmethod
    def of(cls, selection: Selection) -> Pair:
        """Pair a selection with its folder's autoregressive runs; raise UnknownError if there are none."""
        plain = selection.baseline
        both = set(selection.questions) & set(plain.questions)
        if not both:
            return cls(selection, plain, False)
        return cls(selection.on_questions(both), plain.on_questions(both), True)

    def sums(self) -> tuple[Array, Array]:
        """Return the sums of both."""
        return self.matched(_sums(self.drafting), _sums(self.plain))

    def matched(self, drafting: Array, plain: Array) -> tuple[Array, Array]:
        """Return numbers of both by question, in the first one's order; in one row where questions are not paired."""
        if not self.paired:
            return drafting.sum(0, keepdims=True), plain.sum(0, keepdims=True)
        places = {name: place for place, name in enumerate(self.plain.questions)}
        return drafting, plain[[places[name] for name in self.drafting.questions]]


def costs(pair: Pair) -> Costs:
    """Compute the costs of a selection relative to the autoregressive runs of its folder."""
    drafting, plain = (side.sum(0) for side in pair.sums())
    priced = _costs(drafting, plain)
    if not (priced.total > 0 and np.isfinite(priced.total) and np.isfinite(priced.free)):
        raise UnknownError("the steps of this folder took no time")
    return priced


def speed_sums(selection: Selection) -> tuple[list[str], Array]:
    """Return questions, and by question tokens and milliseconds of the later steps, then autoregressive ones."""
    pair = Pair.of(selection)
    if not pair.paired:
        raise UnknownError("no question of this selection was answered autoregressively")
    drafting, plain = pair.sums()
    return pair.drafting.questions, np.concatenate((drafting[:, 1:3], plain[:, 1:3]), axis=1)


def _sums(selection: Selection) -> Array:
    """Sum by question later steps, their tokens and milliseconds, then amounts and cases of what steps may lack."""
    steps, later = selection.steps, later_steps(selection)
    amounts = [steps.maybe(column)[later] for column in ("draft_ms", "forward_ms", "fed")]
    values = [np.ones(later.sum()), steps.number("written")[later], steps.number("total_ms")[later]]
    values += [each for column in amounts for each in (np.nan_to_num(column), ~np.isnan(column))]
    return np.stack([selection.by_question(each, later) for each in values], axis=1)


class _Step(NamedTuple):
    """The means of a later step; NaN for what no step records."""

    tokens: Any
    ms: Any
    draft: Any
    forward: Any
    rows: Any

    @classmethod
    def of(cls, sums: Array) -> _Step:
        count, tokens, ms, draft, drafts, forward, passes, rows, fed = np.moveaxis(sums, -1, 0)
        return cls(tokens / count, ms / count, draft / drafts, forward / passes, rows / fed)


def _costs(drafting: Array, plain: Array) -> Costs:
    """Compute the costs from sums over questions; both may have further axes in front, as resamples have."""
    with np.errstate(invalid="ignore", divide="ignore"):
        one, alone = _Step.of(drafting), _Step.of(plain)
        alone_rest = alone.ms - alone.forward
        rest = one.ms - one.draft - one.forward
        return Costs(
            tokens=one.tokens,
            plain_tokens=alone.tokens,
            total=one.ms / alone.ms,
            rows=one.rows,
            draft=one.draft / alone.ms,
            passes=one.forward / alone.forward,
            verification=(one.forward - alone.forward) / alone.ms,
            outside=(rest - alone_rest) / alone.ms,
            outside_share=rest / one.ms,
        )


def resampled(pair: Pair, numbers: Callable[[Costs], list[Any]]) -> list[list[JSON]]:
    """Compute numbers of the costs with their intervals; a resample draws a question with both its runs."""
    drafting, plain = pair.sums()
    width = drafting.shape[1]

    def of(sums: Array) -> Array:
        return np.stack(numbers(_costs(sums[..., :width], sums[..., width:])), axis=-1)

    value, low, high = intervals.of_sums(np.concatenate((drafting, plain), axis=1), of)
    return [list(row) for row in zip(value.tolist(), low.tolist(), high.tolist(), strict=True)]
