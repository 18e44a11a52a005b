"""Replays chains that stop earlier than the recorded ones.

A rule that accepts fewer guesses in a step than the record begins the next step at a position where no recorded step
begins. What the recorded step drafted from there on is the position's *tail*. A drafter that writes token by token from
the text alone, as a draft model or an early exit does, would draft exactly these tokens there, since accepted guesses
are the text. After the last guess of a fully accepted chain, the record does not show what the drafter would guess:
that guess may be wrong, which gives the most steps, or right, which gives the fewest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..metrics.columns import Array
from ..metrics.result import UnknownError
from ..metrics.selection import Selection
from .positions import Positions
from .replay import Certainty, Replay, RulePath

_LONGEST = 64  # guesses of a chain: no method's settings allow more
_ROUNDED = 2e-6  # probabilities are recorded with six digits: closer to a threshold, either side is possible
_NEVER = 2**31

EXACT = "the record has every guess that this rule would make"
BOUNDED = "the record lacks what follows a chain that was accepted as a whole: each such guess may be right or wrong"
DIVERGED = "assumes that where no recorded step begins, the drafter would go on as it did in the step around it"
SAMPLED = "the guesses were drawn: another rule writes another text, and is assumed to fare as on this one"


@dataclass(frozen=True, slots=True)
class ChainRule:
    """When a chain ends."""

    length: int  # most guesses
    least: float = 0.0  # end after a guess below this
    product: bool = False  # which is the product of the probabilities so far, not that of one guess
    gain: Array | None = None  # adaptive: entry n is the cost of a step that verifies n guesses of those drafted


@dataclass(frozen=True, slots=True)
class _Drafts:
    """What a rule drafts at every position, as far as the record shows."""

    verified: Array  # (P,)
    drafted: Array  # (P,)
    open: Array  # (P,) whether it would go on after the tail
    near: Array  # (P,) whether a recorded probability is so close to the threshold that rounding decides


@dataclass(frozen=True, slots=True)
class ChainRecord:
    """Recorded chains."""

    at: Positions
    length: Array  # (S,) guesses of a step
    whole: Array  # (S,) whether the chain ended for another reason than its length, so that no rule makes it longer
    confidence: Array | None  # (S, K) the drafter's probability of each guess; None if not recorded
    from_text: bool  # whether the drafter knows nothing but the text
    drawn: bool  # whether the guesses were drawn
    ends: dict[tuple[float, bool], tuple[Array, Array]] = field(default_factory=dict)  # by threshold

    @classmethod
    def of(cls, selection: Selection, longest: int, *, from_text: bool, drawn: bool) -> ChainRecord:
        """Read the chains of a selection whose settings allow `longest` guesses."""
        at = Positions.of(selection)
        confidence, length = _chains(selection)
        if (length > longest).any():
            raise UnknownError(f"this record has chains longer than the {longest} guesses of its settings")
        if (at.accepted > length).any():
            raise UnknownError("this record accepts more guesses than were made")
        if (length > at.room[at.start]).any():
            at.room[:] = np.inf  # another limit ended these runs
        return cls(at, length, (length < longest) & ~at.cut_off, confidence, from_text, drawn)

    def replay(self, rule: ChainRule) -> Replay:
        """Replay a rule."""
        at, drafts = self.at, self._drafts(rule)
        left = at.accepted[at.step] - at.offset  # guesses of the tail that are the text
        after = at.after(np.minimum(drafts.verified, left))
        visited = at.walk(after)
        slow = self._path(rule, drafts, after, visited)
        inside = bool(at.offset[visited].any())
        near, goes_on = bool(drafts.near[visited].any()), bool(drafts.open[visited].any())
        predictable = self.from_text and not self.drawn
        same = bool((drafts.drafted[at.start] == self.length).all())  # fewer guesses may shift what is drawn next
        if (predictable or (not inside and (same or not self.drawn))) and not near and not goes_on:
            return Replay(Certainty.EXACT, EXACT, slow)
        # The chain would go on, and all that is known of it was accepted.
        lacking = drafts.open & (drafts.verified == drafts.drafted) & (left >= drafts.verified)
        fast = self._fast(rule, drafts, after, lacking) if lacking[visited].any() else None
        guessed = self.length > 0  # a guess that the record lacks is as often right as the first one of a step
        right = float((at.accepted[guessed] > 0).mean()) if guessed.any() else 0.0
        if predictable and not near and rule.gain is None:
            return Replay(Certainty.BOUNDED, BOUNDED, slow, fast, right)
        return Replay(Certainty.ESTIMATED, SAMPLED if self.drawn else DIVERGED, slow, fast, right)

    def _drafts(self, rule: ChainRule) -> _Drafts:
        """Run a rule at every position over its tail."""
        at = self.at
        tail = self.length[at.step] - at.offset
        most = np.minimum(rule.length, at.room)
        recorded = np.maximum(0, np.minimum(tail, most)).astype(np.int64)
        drafted, stopped, near = recorded, np.zeros(len(tail), bool), np.zeros(len(tail), bool)
        if rule.least > 0.0:
            end, close = self._ends(rule.least, rule.product)
            drafted = np.minimum(recorded, end)
            stopped, near = end <= recorded, close <= drafted
        fresh = (tail == 0) & (at.offset > 0)  # after a chain that was accepted as a whole another one begins
        goes_on = ~stopped & (drafted < most) & (fresh | ~self.whole[at.step])
        verified = drafted if rule.gain is None else self._worth(rule.gain, drafted)
        return _Drafts(verified, drafted, goes_on, near)

    def _ends(self, least: float, product: bool) -> tuple[Array, Array]:
        """Return how many guesses every position's tail has up to the first unsure one, and to the first near one."""
        if (least, product) not in self.ends:
            assert self.confidence is not None
            at, ends = self.at, list[Array]()
            if not product:
                exists = np.arange(self.confidence.shape[1]) < self.length[:, None]
                low = (self.confidence < least) & exists
                for where in (low, (np.abs(self.confidence - least) <= _ROUNDED) & exists):
                    column = np.where(where, np.arange(where.shape[1]), _NEVER)
                    first = np.minimum.accumulate(column[:, ::-1], axis=1)[:, ::-1]
                    first = np.concatenate((first, np.full((len(first), 1), _NEVER)), axis=1)
                    offset = np.minimum(at.offset, where.shape[1])
                    ends.append(first[at.step, offset] - at.offset + 1)
            else:
                ends = self._product_ends(least)
            self.ends[least, product] = ends[0], ends[1]
        return self.ends[least, product]

    def _product_ends(self, least: float) -> list[Array]:
        assert self.confidence is not None
        at = self.at
        tail = self.length[at.step] - at.offset
        end, close = np.full(len(tail), _NEVER), np.full(len(tail), _NEVER)
        going, product = np.arange(len(tail)), np.ones(len(tail))
        for place in range(int(self.length.max(initial=0))):
            more = tail[going] > place
            going, product = going[more], product[more]
            product = product * self.confidence[at.step[going], at.offset[going] + place]
            near = np.abs(product - least) <= (place + 1) * _ROUNDED
            close[going[near]] = np.minimum(close[going[near]], place + 1)
            unsure = product < least
            end[going[unsure]] = place + 1
            going, product = going[~unsure], product[~unsure]
        return [end, close]

    def _worth(self, gain: Array, drafted: Array) -> Array:
        """Choose at every position the prefix with the most expected tokens for its cost."""
        assert self.confidence is not None
        at = self.at
        survival, tokens = np.ones(len(drafted)), np.ones(len(drafted))
        best, chosen = tokens / gain[0], np.zeros(len(drafted), np.int64)
        for place in range(int(drafted.max(initial=0))):
            going = np.flatnonzero(drafted > place)
            survival[going] *= self.confidence[at.step[going], at.offset[going] + place]
            tokens[going] += survival[going]
            rate = tokens[going] / gain[place + 1]
            better = rate > best[going]
            best[going[better]], chosen[going[better]] = rate[better], place + 1
        return chosen

    def _fast(self, rule: ChainRule, drafts: _Drafts, after: Array, lacking: Array) -> RulePath:
        """Return the path on which every guess that the record lacks is right."""
        at = self.at
        furthest = at.after(np.minimum(rule.length, at.room)).astype(np.int64)
        # A right guess leads into the next recorded chain, of which a chain that began earlier accepts no more.
        ahead = np.where(lacking, furthest, after)
        following = at.next_step(at.step)
        inner = np.flatnonzero(lacking & (following < at.limit))
        fastest = ahead.copy()
        fastest[inner] = np.minimum(furthest[inner], ahead[following[inner]])
        return self._path(rule, drafts, fastest, at.walk(fastest))

    def _path(self, rule: ChainRule, drafts: _Drafts, after: Array, visited: Array) -> RulePath:
        """Count the steps that begin at these positions; an open chain is as long as the others are on average."""
        at = self.at
        later = visited[~at.reads_prompt[visited]]
        closed = at.start[~drafts.open[at.start]]
        used = drafts.verified == drafts.drafted  # a prefix that is not worth more rows does not depend on the rest
        counts = []
        for each, unknown in ((drafts.verified, drafts.open & used), (drafts.drafted, drafts.open)):
            goes_on, count = unknown[later], each[later].astype(float)
            mean = each[closed].mean() if len(closed) else rule.length
            most = np.minimum(rule.length, at.room[later[goes_on]])
            count[goes_on] = np.minimum(most, np.maximum(count[goes_on] + 1.0, mean))
            counts.append(count)
        return RulePath(len(visited), int((after[later] - later).sum()), counts[0], counts[1])


def _chains(selection: Selection) -> tuple[Array | None, Array]:
    """Return the confidences of every step's chain, and its length."""
    nodes, guesses = selection.nodes, selection.guesses
    step, depth = selection.step_of_node[guesses], nodes.maybe("depth")[guesses].astype(np.int64)
    length = np.bincount(step, minlength=len(selection.steps))
    drafted = selection.steps.maybe("drafted")
    if not (np.isnan(drafted) | (drafted == length)).all():
        raise UnknownError("this record lacks some of the guesses of its steps")
    widest = int(length.max(initial=0))
    place = np.arange(len(step)) - np.repeat(length.cumsum() - length, length)
    if widest > _LONGEST or (depth != place + 1).any():
        raise UnknownError("these drafts are no chains")
    share = nodes.maybe("confidence")[guesses]
    if not widest or np.isnan(share).any():
        return None, length
    confidence = np.ones((len(length), widest))
    confidence[step, place] = share
    return confidence, length
