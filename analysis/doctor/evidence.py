"""Gathers evidence for and against a drafter whose wiring no change improves.

A drafter with little training is seldom right, but its confidence is low as well: its distributions are as sharp as
they should be, and each of its parts does more good than harm. A drafter with wrong wiring gets other inputs than in
its training: some of its parts add noise, and it is sure of wrong guesses. So both can be told apart without knowing
what is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from .edits import SHARES, VITAL
from .fit import FEW, LEAST, FitChange, TargetFit, compare_fit
from .heads import FEWEST, KEPT, check_heads, count_right, guess_names, is_below, share_error
from .measure import AcceptedGuesses
from .probes import Check, Probe
from .references import Promise

if TYPE_CHECKING:
    from .probes import Examined
    from .texts import Text

ADVICE = {  # what to do first where the cause of poor guesses is unknown, by the flag of what was seen
    "first_guess": "check that it was trained for this model, and fetch its files again",
    "later_guesses": "fetch or train again what makes the later guesses",
    "certainty": "compare its norms and its output layer with those that were trained",
    "parts": "fetch or train again the part that is named here",
    "card": "examine it on prompts like those of its card, then fetch its files again",
}
SCALES = (0.125, 0.25, 1 / 3, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 8.0)  # of logits
STEEPNESS = "logit_scale"  # the flag of a check that names what is wrong
_EXPLAINED = 0.5  # of the divergence that a wrong scale of the logits is the cause of
_OF_USE = 2.0  # standard errors, at least, that what a part does is from nothing
_TOO_SURE = 3.0  # standard errors of the mean
_QUIET = 0.15  # of the divergence, the most that a part which learnt nothing yet moves it by
_UNSURE = 0.1  # of the divergence that another scale takes away from a drafter that works
_LABELS = 0.3  # the same of guesses apart, most of which learn tokens instead of distributions: they become too sure
_CARD = 0.5  # of the acceptance on the card: sound drafters keep 0.6 of it on texts unlike those of their training


def gather(
    examined: Examined,
    wiring: Any,
    fit: TargetFit,
    texts: Sequence[Text],
    measured: AcceptedGuesses,
    shares: Mapping[str, float],
    promised: Promise | None,
) -> list[Check]:
    """List the evidence about a drafter; each item is fine or not."""
    scaled, few = fit.divergences(wiring, SCALES), fit.divergence(wiring, FEW)
    numbers, of_few = fit.numbers(), fit.numbers(FEW)  # of guesses: heads learn several, any other drafter one
    given, count = scaled[SCALES.index(1.0)], int(numbers.max()) + 1
    parts = [list[tuple[Probe, FitChange]]() for _ in range(count)]
    for part in examined.shares(wiring):
        # Of a part that is missed, a few texts tell.
        changes = _changes(few, fit.divergence(part.wiring, FEW), of_few)
        if not all(change.is_worse for change in changes):
            changes = _changes(given, fit.divergence(part.wiring), numbers)
        for of_guess, change in zip(parts, changes, strict=True):
            of_guess.append((part, change))
    right = count_right(examined, wiring, texts) if examined.apart else []
    good = [share > max(shares.values()) for share in [head.right for head in right] or measured.survival[:1]]
    return [
        _check_first(texts, examined.depth, measured, shares),
        check_heads(right, examined.apart) if right else check_fall(measured),
        _check_certainties(examined.apart, scaled, numbers, good, parts),
        _merged(examined.apart, [_check_parts(each, examined.young) for each in parts]),
        *([check_promise(promised, measured)] if promised else []),
    ]


def _changes(given: torch.Tensor, other: torch.Tensor, numbers: torch.Tensor) -> list[FitChange]:
    """Compare two wirings for the first guess, the second, and so on."""
    return [compare_fit(given[numbers == each], other[numbers == each]) for each in range(int(numbers.max()) + 1)]


def _merged(called: str, checks: Sequence[Check]) -> Check:
    """Make one check of those of every guess that is judged apart, which names those that are not fine."""
    if len(checks) == 1 or all(check.fine for check in checks):
        return checks[0]
    wrong = [(number, check) for number, check in enumerate(checks, start=1) if not check.fine]
    sentence = f"{guess_names(called, [number for number, _ in wrong])}: {wrong[0][1].sentence}"
    return replace(wrong[0][1], sentence=sentence)


def _check_first(texts: Sequence[Text], depth: int, measured: AcceptedGuesses, shares: Mapping[str, float]) -> Check:
    """Compare the first guess with the one token that is right most often, and with what needs no drafter."""
    wanted = Counter(text.ids[place + 1] for text in texts for place in text.places(depth))
    blind = max(wanted.values()) / wanted.total()
    first = measured.survival[0]
    best = max(shares, key=lambda name: shares[name])
    sentence = f"the first guess is right at {first:.0%} of the positions, {best} alone at {shares[best]:.0%}"
    if first <= blind:
        sentence += f", and one and the same token everywhere at {blind:.0%}"
    return Check("first guess", "first_guess", fine=first > blind, sentence=sentence, given=first, better=shares[best])


def check_fall(measured: AcceptedGuesses) -> Check:
    """Look for a guess that is seldom right although all guesses before it were."""
    places, survival = float(measured.places.sum()), measured.survival
    kept = [
        (at, later / earlier, earlier * places)
        for at, (earlier, later) in enumerate(zip(survival, survival[1:], strict=False), start=2)
        if earlier * places >= FEWEST
    ]
    if not kept:
        return Check("later guesses", "later_guesses", fine=True, sentence="nothing to compare")
    bound, bound_error = KEPT * survival[0], KEPT * share_error(survival[0], places)
    fell = [each for each in kept if is_below(each[1], each[2], bound, bound_error)]
    at, share, _ = min(fell or kept, key=lambda each: each[1])
    sentence = (
        f"guess {at} is right in {share:.0%} of the steps in which all before it were, the first in {survival[0]:.0%}"
    )
    return Check("later guesses", "later_guesses", fine=not fell, sentence=sentence)


def _check_certainties(
    apart: str,
    scaled: Sequence[torch.Tensor],
    numbers: torch.Tensor,
    good: Sequence[bool],
    parts: Sequence[Sequence[tuple[Probe, FitChange]]],
) -> Check:
    """Compare how sure each head is with how sure it should be; of other drafters, the first guess.

    A scale of the logits is the cause only where all heads have it.
    """
    scales = [best_scale([each[numbers == number] for each in scaled]) for number in range(len(parts))]
    named = all(_is_steep(*best, is_good) for best, is_good in zip(scales, good, strict=True))
    checks = list[Check]()
    for best, is_good, of_head in zip(scales, good, parts, strict=True):
        learning = bool(apart) and all(change.is_worse for _, change in of_head)
        checks.append(check_certainty(apart, *best, is_good, learning, named))
    return _merged(apart, checks)


def best_scale(scaled: Sequence[torch.Tensor]) -> tuple[float, FitChange]:
    """Return the scale of the logits with which they are closest to the target's, and what it changes."""
    best = min(range(len(SCALES)), key=lambda at: float(scaled[at].mean()))
    return SCALES[best], compare_fit(scaled[SCALES.index(1.0)], scaled[best])


def _is_steep(scale: float, change: FitChange, is_good: bool) -> bool:
    """Return whether a wrong scale is what is wrong: the choices are good, and another makes nearly all good."""
    return is_good and change.gain > _EXPLAINED * change.before and not 0.5 < scale < 2


def check_certainty(
    apart: str, scale: float, change: FitChange, is_good: bool, learning: bool, named: bool = True
) -> Check:
    """Compare the drafter's certainty with the certainty that fits the target.

    If its choices are good, and rescaled logits are nearly as sure as they should be, the scale is wrong; it is called
    the fault if it may be `named`. Heads start as the target's own output layer, which is sure of another position's
    token. Heads that are still `learning`, so that all they have learnt brings them closer to the target, may still be
    as sure.
    """
    sentence = f"its distributions are {change.before:.2f} nats from the target's"
    # By the mean: a drafter that is too sure loses little at most positions, and much where it is wrong.
    share = _LABELS if apart else _UNSURE
    if change.gain < max(LEAST, _TOO_SURE * change.error, share * change.before):
        return Check("certainty", "certainty", fine=True, sentence=sentence)
    what = "less" if scale < 1 else "more"
    sentence += f", and {change.after:.2f} if it is made {what} sure of itself (logits times {scale:.3g})"
    if named and _is_steep(scale, change, is_good):
        sentence += f": multiply the final norm or the output layer by {scale:.3g}"
        return Check("certainty", STEEPNESS, fine=False, sentence=sentence, given=1.0, better=round(scale, 3))
    return Check("certainty", "certainty", fine=learning and not is_good, sentence=sentence)


def _check_parts(parts: Sequence[tuple[Probe, FitChange]], young: bool) -> Check:
    """Look for a part without which, or with half of which, the drafter is closer to the target, or no further away.

    Training begins with parts that add nothing, and norms of ones. A part of a `young` drafter, whose norms are still
    nearly ones, may add little; one that is damaged adds as much as ever, and what it adds is wrong.
    """
    harmful = [(probe.name, change) for probe, change in parts if change.is_better]
    if harmful:
        name, change = max(harmful, key=lambda each: each[1].gain)
        sentence = f"with {name} it is {change.after:.2f} nats from the target's distributions, not {change.before:.2f}"
        return Check("parts", "parts", fine=False, sentence=sentence)
    useless = [(probe.name, change) for probe, change in parts if probe.flag == VITAL and change.sureness > -_OF_USE]
    if useless:
        learning = young and all(change.moved <= _QUIET * change.before for _, change in useless)
        why = ", as after a short training: norms are nearly ones" if learning else ", or is damaged"
        sentence = f"with {useless[0][0]} it is as good as with 100%. That part has learnt nothing yet{why}"
        return Check("parts", "parts", fine=learning, sentence=sentence)
    tested = len(parts) // len(SHARES)
    which = f"each of {tested} parts" if tested > 1 else "the one part that was tested"
    sentence = f"{which} does more good than harm" if parts else "nothing to compare"
    return Check("parts", "parts", fine=True, sentence=sentence)


def check_promise(promised: Promise, measured: AcceptedGuesses) -> Check:
    """Compare the first guess with the acceptance on the drafter's card or in its training log."""
    first, wanted = measured.survival[0], promised.shares[min(promised.shares)]
    where = "on its card" if promised.source == "card" else f"in its {promised.source}"
    sentence = f"the first guess is right at {first:.0%} of the positions, and {wanted:.0%} {where}"
    fine = first + _OF_USE * measured.first_error >= _CARD * wanted
    return Check("card", "card", fine=fine, sentence=sentence, given=first, better=wanted)
