"""Examines a drafter: checks its files, then compares its wiring as given with every single change of it.

The best change is kept, and the next round starts from the changed wiring. That finds a second fault, and drops changes
that only compensated for the first one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from decoding.errors import ModelError, ParamError, UnfitError
from decoding.types import JSON

from .decision import decide, undecided
from .evidence import ADVICE, STEEPNESS, gather
from .fit import AT_FIRST, FEW, FitChange, TargetFit, compare_fit
from .measure import AcceptedGuesses, measure_wiring
from .probes import AS_STORED, Check, Probe
from .references import exit_name, promise, references
from .verdict import FEWEST, Fault, ProbeOutcome, compare

if TYPE_CHECKING:
    from ..reporting import Reporting
    from .probes import Examined
    from .texts import Text

ROUNDS = 3  # faults of one drafter that are looked for by measuring
_TWICE = {"taps", "norm_scale"}  # entries of which several may be wrong
_PROMISING, _FITTING = 12, 4  # changes of weights per round that are tried on all texts, and that are measured
# Judged by acceptance alone: a later layer brings the first guess of any drafter closer to the target. Of guesses that
# are judged apart, most are of tokens that no layer knows yet.
_DEEPER = {"taps", "exit_layer"}
_LITTLE = 1.5  # tokens per step
_DAMAGE = {"weights", "blocks", "range", "rounding"}  # checks of weights that no change of their order mends
_DOUBTFUL = {"verifier", "sparse"}  # checks of what need not matter: where the guesses fit, they are remarks


@dataclass(frozen=True, slots=True)
class ExaminationReport:
    """The result of an examination."""

    method: str
    model: str
    drafter: str
    checks: tuple[Check, ...]
    outcomes: tuple[ProbeOutcome, ...]  # of the first round
    faults: tuple[Fault, ...]
    given: AcceptedGuesses | None  # None if the files could not be read
    best: AcceptedGuesses | None  # with all faults mended that a change of the wiring can mend
    prompts: int
    seconds: float
    evidence: tuple[Check, ...] = ()  # what was seen of the drafter, with all faults mended
    references: Mapping[str, float] = field(default_factory=dict)  # how often simple first guesses are right
    tried: int = 0  # changes of its wiring and weights, of the first round
    hint: str = ""  # what was better, where it is not the cause
    remark: str = ""  # what the files say that the guesses contradict

    @property
    def healthy(self) -> bool:
        """Return True if there is no fault and all evidence is in the drafter's favour."""
        return self.condition == "healthy"

    @property
    def condition(self) -> str:
        """Return "healthy", "faulty" (a wrong entry is named), or "poor" (it drafts poorly for an unknown reason)."""
        if self.faults:
            return "faulty"
        return "healthy" if self.evidence and all(each.fine for each in self.evidence) else "poor"

    @property
    def verdict(self) -> str:
        """Return the result in plain words."""
        count = "One fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        sentences = "; ".join(fault.sentence for fault in self.faults)
        if self.given is None or self.best is None:
            return f"{count}: {sentences}.{self.remark} Nothing could be measured."
        given, best = self.given.tokens_per_step, self.best.tokens_per_step
        looked = f"{len(self.checks)} checks of its files and {self.tried} changes of its wiring and weights"
        places = int(self.given.places.sum())
        basis = f"Based on {looked}, measured at {places:,} positions of {self.prompts} texts in {self.seconds:.0f} s."
        seen = "; ".join(each.sentence for each in self.evidence if not each.fine and each.flag != STEEPNESS)
        if self.condition == "healthy":
            parts = next(each.sentence for each in self.evidence if each.flag == "parts")
            gains = f" It is wired right, but gains little. {_capital(parts)}."
            little = gains if given < _LITTLE else ""
            first = _capital(self.evidence[0].sentence)
            found = "no change surely improves it" if self._nearly_better else "no change improves it"
            healthy = f"Healthy: {given:.2f} tokens per step, and {found}. {first}.{self._nearly_better}{little}"
            return f"{healthy}{self.remark} {basis}"
        if self.condition == "poor":
            poor = [each for each in self.evidence if not each.fine]
            sentences = " ".join(_capital(f"{each.sentence}.") for each in poor)
            what = f"Works poorly, cause unknown: {ADVICE[poor[0].flag]}. It writes {given:.2f} tokens per step."
            return f"{what} {sentences}{self.hint}{self.remark} {basis}"
        [one, *others] = self.faults
        told = not others and one.tokens_per_step_better == round(best, 4)  # by the fault's own sentence
        mending = (
            f" With {'all faults' if others else 'this'} mended: {best:.2f} tokens per step instead of {given:.2f}."
        )
        gain = mending if best > given and not told else ""
        mended = all(fault.interval is not None or fault.flag == "verifier" for fault in self.faults)
        rest = f" Something else may be wrong as well: {seen}." if seen and mended else ""
        return f"{count}: {sentences}.{gain}{rest}{self.remark} {basis}"

    @property
    def _nearly_better(self) -> str:
        """Return a sentence about the change that more texts may show to be better; empty if there is none."""
        most = max((each for each in self.outcomes if each.may_be_better), key=lambda each: each.gain, default=None)
        if most is None:
            return ""
        low, high = most.interval
        gain = f"{most.gain:+.2f} tokens per step, interval {low:+.2f} to {high:+.2f}"
        return f" With {most.probe.name} it may be better ({gain}): examine it on more texts."

    def to_json(self) -> dict[str, JSON]:
        """Return the report as `--json` prints it."""
        given, best = self.given, self.best
        return {
            "healthy": self.healthy,
            "condition": self.condition,
            "faults": [fault.to_json() for fault in self.faults],
            "method": self.method,
            "model": self.model,
            "drafter": self.drafter,
            "tokens_per_step_given": given and round(given.tokens_per_step, 4),
            "tokens_per_step_best": best and round(best.tokens_per_step, 4),
            "acceptance_given": [] if given is None else [round(share, 4) for share in given.survival],
            "acceptance_best": [] if best is None else [round(share, 4) for share in best.survival],
            "checks": _rows(self.checks),
            "evidence": _rows(self.evidence),
            "references": {name: round(share, 4) for name, share in self.references.items()},
            "probes": [outcome.to_json() for outcome in self.outcomes],
            "tried": self.tried,
            "prompts": self.prompts,
            "places": 0 if given is None else int(given.places.sum()),
            "seconds": round(self.seconds, 2),
            "remark": self.remark.strip(),
            "verdict": self.verdict,
        }


def refused(method: str, model: str, drafter: str, error: ModelError, names: Sequence[Check] = ()) -> ExaminationReport:
    """Report on a drafter whose files cannot be used; `names` is the check of its configuration's names."""
    flag = error.flag if isinstance(error, UnfitError) else "files"
    check = Check(flag.replace("_", " "), flag, fine=False, sentence=str(error))
    return ExaminationReport(
        method=method,
        model=model,
        drafter=drafter,
        checks=(check, *names),
        outcomes=(),
        faults=(Fault.seen(check),),
        given=None,
        best=None,
        prompts=0,
        seconds=0.0,
        remark=_notes(names),
    )


def examine(
    examined: Examined,
    texts: Sequence[Text],
    model: str,
    seed: int = 0,
    started: float | None = None,  # by `perf_counter`, where writing the texts counts too
) -> Reporting[ExaminationReport]:
    """Examine a drafter on texts that the target wrote; `model` is the target's name."""
    started, depth = perf_counter() if started is None else started, examined.depth
    texts = [text for text in texts if len(text.places(depth))]
    if len(texts) < FEWEST:
        raise ParamError(
            f"{len(texts)} of these texts are longer than the {depth} guesses of a step, but {FEWEST} are needed: "
            "ask for more prompts or tokens"
        )
    checks, faults = tuple(examined.checks()), list[Fault]()
    wiring, given = examined.given, measure_wiring(examined, examined.given, texts, depth)
    rounds, best, fit = list[Round](), given, TargetFit(examined, texts)
    shares, hint = references(examined.model, texts, depth), ""
    while len(rounds) < ROUNDS:
        mended = {fault.flag for fault in faults}
        rounds.append((yield from _round(examined, best, wiring, fit, mended, shares, texts, seed + len(rounds))))
        outcomes = rounds[-1].outcomes
        best_outcome = max((each for each in outcomes if each.is_better), key=lambda each: each.gain, default=None)
        if best_outcome is None:
            break
        faults.append(Fault.measured(best_outcome))
        wiring, best = best_outcome.probe.wiring, best_outcome.other
    yield "looking at what each part does", 0.9
    decisions = [decide(examined, check, wiring, fit, texts, seed) for check in undecided(checks, faults)]
    wiring, best = next(((each.wiring, each.best) for each in decisions), (wiring, best))
    promised = promise(examined.folder) if examined.folder else None
    evidence = gather(examined, wiring, fit, texts, best, shares, promised)
    damaged = any(not check.fine and check.name in _DAMAGE for check in checks)
    if (damaged or not all(each.fine for each in evidence)) and any(_spares(fault) for fault in faults):
        better = "; ".join(f"with {each.name}, {each.tokens_per_step_better:.2f} tokens per step" for each in faults)
        hint = f" Better, but still wrong: {better}."
        faults, wiring, best = [], examined.given, given
        decisions = [decide(examined, check, wiring, fit, texts, seed) for check in undecided(checks, faults)]
        wiring, best = next(((each.wiring, each.best) for each in decisions), (wiring, best))
        evidence = gather(examined, wiring, fit, texts, best, shares, promised)
    faults += [each.fault for each in decisions]
    measured = {fault.flag for fault in faults}
    steep = [each for each in evidence if each.flag == STEEPNESS]
    fits = all(each.fine for each in evidence) and best.tokens_per_step >= _LITTLE
    other = [check for check in checks if check.flag in _DOUBTFUL and not check.fine and fits]
    checks = tuple(replace(check, fine=True) if check in other else check for check in checks)
    named = [*checks, *(steep if all(check.fine for check in checks if check.name == "norms") else [])]
    seen = [Fault.seen(check) for check in named if not check.fine and check.flag not in measured]
    return ExaminationReport(
        method=examined.method,
        model=model,
        drafter=examined.about,
        checks=checks,
        outcomes=rounds[0].outcomes,
        faults=(*seen, *faults),
        given=given,
        best=best,
        prompts=len(texts),
        seconds=perf_counter() - started,
        evidence=tuple(evidence),
        references=shares,
        tried=rounds[0].tried,
        hint=hint,
        remark="".join(f" Its guesses fit this model, although {check.sentence}." for check in other) + _notes(checks),
    )


def _notes(checks: Sequence[Check]) -> str:
    return "".join(f" Note: {check.sentence}." for check in checks if check.note)


def _spares(fault: Fault) -> bool:
    """Return True for a change of weight order or of layer, which may help only because it avoids damaged weights.

    If the drafter is better with such a change but still not good, the change is not the cause.
    """
    return fault.given == AS_STORED or fault.flag in ("exit_layer", "taps")


class Round(NamedTuple):
    """What was tried on one wiring."""

    outcomes: tuple[ProbeOutcome, ...]
    tried: int


def _round(
    examined: Examined,
    best: AcceptedGuesses,
    wiring: Any,
    fit: TargetFit,
    mended: set[str],
    shares: Mapping[str, float],  # how often simple first guesses are right
    texts: Sequence[Text],
    seed: int,
) -> Reporting[Round]:
    """Compare `wiring` with each change of it, but with changes of weights only if they fit the target better."""
    probes = [probe for probe in examined.probes(wiring) if probe.flag not in mended - _TWICE]
    edits = [probe for probe in examined.edits(wiring) if probe.flag not in mended - _TWICE]
    tried, before = len(probes) + len(edits), {most: fit.divergence(wiring, most) for most in (AT_FIRST, FEW, None)}

    def change_of(probe: Probe, most: int | None = None) -> FitChange:
        return compare_fit(before[most], fit.divergence(probe.wiring, most))

    promising = list[tuple[Probe, FitChange]]()
    for number, probe in enumerate(edits):
        yield f"trying: {probe.name}", number / tried
        if (change := change_of(probe, AT_FIRST)).gain > 0:
            promising.append((probe, change))
    promising.sort(key=lambda each: -each[1].gain)
    changes = [(probe, change_of(probe)) for probe, _ in promising[:_PROMISING]]
    changes = sorted((each for each in changes if each[1].gain > 0), key=lambda each: -each[1].gain)[:_FITTING]
    for number, probe in enumerate(probes, start=len(edits)):
        yield f"trying: {probe.name}", min(1.0, number / tried)
        change = change_of(probe, FEW)
        changes.append((probe, change_of(probe) if change.gain > 0 else change))
    outcomes = list[ProbeOutcome]()
    for probe, change in changes:
        if not change.is_worse:
            other = measure_wiring(examined, probe.wiring, texts, examined.depth)
            nearer = None if probe.flag in _DEEPER and not examined.apart else change
            outcomes.append(compare(probe, best, other, tried, seed, nearer, _adds_more(probe, best, other, shares)))
    return Round(tuple(outcomes), tried)


def _adds_more(probe: Probe, given: AcceptedGuesses, other: AcceptedGuesses, shares: Mapping[str, float]) -> bool:
    """Return whether another exit layer adds more to how often the target's own exit there is right.

    The later the exit, the better any adapter guesses, whatever layer it was trained on. True for any other change.
    """

    def added(layer: JSON, measured: AcceptedGuesses) -> float:
        return measured.survival[0] - shares.get(exit_name(int(str(layer))), 1.0)

    return probe.flag != "exit_layer" or added(probe.other, other) > added(probe.given, given)


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _rows(checks: Sequence[Check]) -> list[JSON]:
    return [{"name": c.name, "flag": c.flag, "fine": c.fine, "note": c.note, "sentence": c.sentence} for c in checks]
