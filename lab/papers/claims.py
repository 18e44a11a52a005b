"""The papers' claims, their measurements here, and the verdicts that code draws from the numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from decoding.errors import SpecscopeError
from decoding.model.session import ProgressCallback

from .experiment import Experiment
from .tables import ResultTable

# One number is more than another if it is at least this share above it. The second is for numbers that depend on clock
# or chance (on a few thousand sampled tokens chance alone moves them by some two per cent), and for differences, which
# are small compared with the numbers that they come from.
CLEAR, ROUGH = 0.01, 0.03

ClaimKey = tuple[str, str]  # a paper's name and a claim's title


class ClaimOutcome(StrEnum):
    """The verdict on a claim."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold here"
    UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Statement:
    """One part of a claim: its numbers in words that fit either outcome, and whether they bear it out."""

    says: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and the sentence that explains it."""

    verdict: ClaimOutcome
    says: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding of a paper, and how it is tested."""

    place: str  # table, figure, equation or section
    title: str
    finding: str  # of the paper
    measured: str  # here
    rule: str  # by which `judge` decides
    take: Callable[[Experiment], ResultTable]
    judge: Callable[[ResultTable], Judgement]


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper and its claims."""

    name: str
    title: str
    citation: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim with its verdict; the table is None if nothing was measured."""

    paper: Paper
    claim: Claim
    table: ResultTable | None
    judgement: Judgement


def check_claims(
    experiment: Experiment,
    papers: Iterable[Paper],
    progress: ProgressCallback,
    tables: Mapping[ClaimKey, ResultTable] | None = None,
    keep: Callable[[ClaimKey, ResultTable], None] = lambda name, table: None,
) -> list[CheckedClaim]:
    """Measure and judge every claim; one that cannot be measured gets the reason and stops no other.

    Claims that have a table already are only judged; `keep` is given the tables of the others.
    """
    asked = [(paper, claim) for paper in papers for claim in paper.claims]
    findings = []
    for number, (paper, claim) in enumerate(asked):

        def report(share: float, what: str = f"{paper.title}: {claim.title}", number: int = number) -> None:
            progress(what, (number + min(share, 1.0)) / len(asked))

        report(0.0)
        experiment.progress = report
        name = (paper.name, claim.title)
        try:
            table = (tables or {}).get(name)
            if table is None:
                table = claim.take(experiment)
                keep(name, table)
        except SpecscopeError as error:
            findings.append(CheckedClaim(paper, claim, None, Judgement(ClaimOutcome.UNMEASURED, _sentence(str(error)))))
        else:
            findings.append(CheckedClaim(paper, claim, table, claim.judge(table)))
    return findings


def combine(*parts: Statement, lead: str = "", remark: str = "") -> Judgement:
    """Combine statements: the claim holds if all support it, in part if some do, and not here if none does."""
    right, wrong = ("; ".join(part.says for part in parts if part.holds is side) for side in (True, False))
    if not wrong:
        verdict, says = ClaimOutcome.HOLDS, right
    elif not right:
        verdict, says = ClaimOutcome.FAILS, wrong
    else:
        verdict, says = ClaimOutcome.PARTLY, f"as in the paper, {right}; unlike it, {wrong}"
    return Judgement(verdict, _sentence("; ".join(text for text in (lead, says, remark) if text)))


def is_more(a: float, b: float, margin: float = CLEAR) -> bool:
    """Return whether `a` is clearly more than `b`."""
    return a > b and a >= b * (1 + margin)


def more(what: str, a: float, than: str, b: float, margin: float = CLEAR) -> Statement:
    """State that `a`, the number of `what`, is clearly more than `b`, that of `than`."""
    return Statement(f"{what} reaches {a:.3f}, against {b:.3f} for {than}", is_more(a, b, margin))


def faster(what: str, a: float, than: str, b: float) -> Statement:
    """State that `what` is clearly faster than `than`, both in multiples of autoregressive decoding's speed."""
    return Statement(f"{what} runs at {a:.2f} times the autoregressive speed, {than} at {b:.2f}", is_more(a, b, ROUGH))


def beats(table: ResultTable, head: str, margin: float = CLEAR) -> Judgement:
    """State whether the first row has clearly more under a head than each of the others."""
    (first, *others), (best, *numbers) = table.names, table.column(head)
    parts = (
        Statement(f"{name} reaches {number:.3f}", is_more(best, number, margin))
        for name, number in zip(others, numbers, strict=True)
    )
    return combine(*parts, lead=f"{first} reaches {best:.3f}")  # in front: after "unlike it" it would read as one


def rises(what: str, values: Sequence[float], margin: float = CLEAR) -> Statement:
    """State that numbers clearly rise from first to last, and nowhere clearly fall between."""
    steady = not any(is_more(before, after, margin) for before, after in zip(values, values[1:], strict=False))
    return Statement(_run(what, values), steady and is_more(values[-1], values[0], margin))


def falls(what: str, values: Sequence[float], margin: float = CLEAR) -> Statement:
    """State that numbers clearly fall from first to last, and nowhere clearly rise between."""
    return Statement(_run(what, values), rises(what, values[::-1], margin).holds)


def _run(what: str, values: Sequence[float]) -> str:
    return f"{what} reaches {', '.join(f'{value:.3f}' for value in values)}"


def _sentence(text: str) -> str:
    """Capitalise a sentence, unless it begins with a name such as k=5."""
    return f"{text[0].upper() if text.split()[0].isalpha() else text[0]}{text[1:]}."
