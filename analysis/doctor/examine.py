"""An examination: the files, then the wiring as given against each change of it, and again after the best change.

Where a change is better, the next round starts from it: so a second fault is found as well, and what had only made up
for the first one is better no more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from decoding.errors import ModelError, ParamError, UnfitError
from decoding.types import JSON

from .measure import AcceptedGuesses, measure
from .probes import Check
from .verdict import FEWEST, Fault, ProbeOutcome, compare

if TYPE_CHECKING:
    from ..prompts.tasks import Task
    from .probes import Examined, Probe
    from .texts import Reporting, Text

_Result = TypeVar("_Result")
ROUNDS = 3  # faults of one drafter that are looked for by measuring


@dataclass(frozen=True, slots=True)
class ExaminationReport:
    """What an examination found."""

    method: str
    model: str
    drafter: str
    checks: tuple[Check, ...]
    outcomes: tuple[ProbeOutcome, ...]  # of the first round
    faults: tuple[Fault, ...]
    given: AcceptedGuesses | None  # None where the files could not be read
    best: AcceptedGuesses | None  # with all faults mended that a change of the wiring can mend
    prompts: int
    seconds: float

    @property
    def healthy(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    @property
    def verdict(self) -> str:
        """The result in plain words."""
        count = "One fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        sentences = "; ".join(fault.sentence for fault in self.faults)
        if self.given is None or self.best is None:
            return f"{count}: {sentences}. Nothing could be measured."
        given, best = self.given.tokens_per_step, self.best.tokens_per_step
        looked = f"{len(self.checks)} checks of its files and {len(self.outcomes)} changes of its wiring"
        places = int(self.given.places.sum())
        basis = f"{looked}, measured at {places:,} positions of {self.prompts} texts in {self.seconds:.0f} s"
        if self.healthy:
            return f"Healthy: {given:.2f} tokens per step, and no change improves it. Based on {basis}."
        gain = f" With all faults mended: {best:.2f} tokens per step instead of {given:.2f}." if best > given else ""
        return f"{count}: {sentences}.{gain} Based on {basis}."

    def to_json(self) -> dict[str, JSON]:
        """Return the report as `--json` prints it."""
        checks = [{"name": c.name, "flag": c.flag, "fine": c.fine, "sentence": c.sentence} for c in self.checks]
        given, best = self.given, self.best
        return {
            "healthy": self.healthy,
            "faults": [fault.to_json() for fault in self.faults],
            "method": self.method,
            "model": self.model,
            "drafter": self.drafter,
            "tokens_per_step_given": given and round(given.tokens_per_step, 4),
            "tokens_per_step_best": best and round(best.tokens_per_step, 4),
            "acceptance_given": [] if given is None else [round(share, 4) for share in given.survival],
            "acceptance_best": [] if best is None else [round(share, 4) for share in best.survival],
            "checks": checks,
            "probes": [outcome.to_json() for outcome in self.outcomes],
            "prompts": self.prompts,
            "places": 0 if given is None else int(given.places.sum()),
            "seconds": round(self.seconds, 2),
            "verdict": self.verdict,
        }


def refused(method: str, model: str, drafter: str, error: ModelError) -> ExaminationReport:
    """Report on a drafter whose files cannot be used."""
    flag = error.flag if isinstance(error, UnfitError) else "files"
    check = Check(flag.replace("_", " "), flag, fine=False, sentence=str(error))
    return ExaminationReport(
        method=method,
        model=model,
        drafter=drafter,
        checks=(check,),
        outcomes=(),
        faults=(Fault.seen(check),),
        given=None,
        best=None,
        prompts=0,
        seconds=0.0,
    )


def finish(progress: Reporting[_Result], report: Callable[[str, float], None]) -> _Result:
    """Go on to the end, and report on the way."""
    while True:
        try:
            report(*next(progress))
        except StopIteration as end:
            result: _Result = end.value
            return result


def sample(tasks: Sequence[Task], count: int, seed: int) -> tuple[Task, ...]:
    """Choose some of the tasks, by the seed."""
    return tuple(random.Random(seed).sample([*tasks], min(count, len(tasks))))


def examine(
    examined: Examined,
    texts: Sequence[Text],
    model: str,
    seed: int = 0,
    started: float | None = None,  # by `perf_counter`, where writing the texts counts too
) -> Reporting[ExaminationReport]:
    """Examine a drafter on the target's own texts, those of the model of that name."""
    started, depth = perf_counter() if started is None else started, examined.depth
    texts = [text for text in texts if len(text.places(depth))]
    if len(texts) < FEWEST:
        raise ParamError(
            f"{len(texts)} of these texts are longer than the {depth} guesses of a step, but {FEWEST} are needed: "
            "ask for more prompts or tokens"
        )
    checks, faults = tuple(examined.checks()), list[Fault]()
    wiring, given = examined.given, measure(examined, examined.given, texts, depth)
    rounds, best = list[tuple[ProbeOutcome, ...]](), given
    while len(rounds) < ROUNDS:
        mended = {fault.flag for fault in faults}
        probes = [probe for probe in examined.probes(wiring) if probe.flag not in mended or probe.flag == "taps"]
        outcomes = yield from _round(examined, best, probes, texts, seed + len(rounds))
        rounds.append(outcomes)
        best_outcome = max((each for each in rounds[-1] if each.is_better), key=lambda each: each.gain, default=None)
        if best_outcome is None:
            break
        faults.append(Fault.measured(best_outcome))
        wiring, best = best_outcome.probe.wiring, best_outcome.other
    measured = {fault.flag for fault in faults}
    seen = [Fault.seen(check) for check in checks if not check.fine and check.flag not in measured]
    return ExaminationReport(
        method=examined.method,
        model=model,
        drafter=examined.about,
        checks=checks,
        outcomes=rounds[0],
        faults=(*seen, *faults),
        given=given,
        best=best,
        prompts=len(texts),
        seconds=perf_counter() - started,
    )


def _round(
    examined: Examined, best: AcceptedGuesses, probes: Sequence[Probe], texts: Sequence[Text], seed: int
) -> Reporting[tuple[ProbeOutcome, ...]]:
    """Compare every probe with the wiring that it changes."""
    outcomes = list[ProbeOutcome]()
    for number, probe in enumerate(probes):
        yield f"trying {probe.name}", number / len(probes)
        other = measure(examined, probe.wiring, texts, examined.depth)
        outcomes.append(compare(probe, best, other, len(probes), seed))
    return tuple(outcomes)
