"""Decides which value an entry should have that a drafter's configuration lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from decoding.types import JSON

from .fit import TargetFit, compare_fit
from .measure import AcceptedGuesses, measure_wiring
from .probes import UNDECIDED, Check
from .verdict import Fault, interval

if TYPE_CHECKING:
    from .probes import Examined
    from .texts import Text

_TOLD_APART, _ERROR = 2.0, 0.05  # standard errors, at least, and the chance that an interval misses a difference


class Decision(NamedTuple):
    """Which value an entry should have that is missing, with the other entries as in the wiring."""

    fault: Fault
    wiring: Any
    best: AcceptedGuesses


def undecided(checks: Sequence[Check], faults: Sequence[Fault]) -> list[Check]:
    """List the checks of missing entries whose other value is not a fault that was measured."""
    mended = {fault.flag for fault in faults}
    return [check for check in checks if check.better == UNDECIDED and check.flag not in mended]


def decide(examined: Examined, check: Check, wiring: Any, fit: TargetFit, texts: Sequence[Text], seed: int) -> Decision:
    """Choose between the two values by the distance from the target's distributions, and say how sure the choice is.

    After a short training hardly a guess is right, but the distance shows which states the drafter learnt from.
    """
    other = next(probe for probe in examined.probes(wiring) if probe.flag == check.flag)
    change = compare_fit(fit.divergence(wiring), fit.divergence(other.wiring))
    used, tried = (measure_wiring(examined, each, texts, examined.depth) for each in (wiring, other.wiring))
    sides = [(other.given, wiring, used, change.before), (other.other, other.wiring, tried, change.after)]
    (worse, _, less, far), (value, chosen, best, near) = sides if change.sureness > 0 else sides[::-1]
    sentence = (
        f"{check.sentence}: with {_spelt(value)} it is {near:.2f} nats from the target's distributions and writes "
        f"{best.tokens_per_step:.2f} tokens per step, with {_spelt(worse)} {far:.2f} and {less.tokens_per_step:.2f}"
    )
    if abs(change.sureness) < _TOLD_APART:
        sentence += ", which is no sure difference"
    sentence += f": set {check.flag} to {_spelt(value)} in config.json"
    gain = interval(less, best, _ERROR, seed)
    tokens = round(less.tokens_per_step, 4), round(best.tokens_per_step, 4)
    return Decision(Fault(check.name, check.flag, None, value, *tokens, gain, sentence), chosen, best)


def _spelt(value: JSON) -> str:
    return str(value).lower()
