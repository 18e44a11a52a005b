"""Reads the verdicts on the same claims from a page of paper checks on another model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from decoding.errors import ParamError

from .claims import ClaimOutcome, Paper

_MODEL = re.compile(r"\A# What the papers found, on ([^\n]+)\n")
_VERDICT = "|".join(outcome.value for outcome in ClaimOutcome)
_PAPER = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.M | re.S)
_CLAIM = re.compile(rf"^### (.+?)\n(?:(?!^###).)*?^\*\*({_VERDICT})\.\*\* (.+?)\n\n", re.M | re.S | re.I)


@dataclass(frozen=True, slots=True)
class OtherPage:
    """The verdicts on the claims on another model, with the sentences that explain them."""

    model: str
    outcomes: dict[tuple[str, str], tuple[ClaimOutcome, str]]  # by the titles of paper and claim

    @classmethod
    def read(cls, path: Path) -> OtherPage:
        """Read a page that `page` has written."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ParamError(f"--beside: {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
        model = _MODEL.match(text)
        outcomes = {
            (paper, heading.partition(": ")[2]): (ClaimOutcome(verdict.lower()), " ".join(says.split()))
            for paper, section in _PAPER.findall(text)
            for heading, verdict, says in _CLAIM.findall(section)
        }
        if model is None or not outcomes:
            raise ParamError(f"--beside: {path} is no page that paper-checks has written")
        return cls(model[1], outcomes)

    def outcome(self, paper: Paper, claim: str) -> tuple[ClaimOutcome, str]:
        """Return the verdict on a claim there."""
        return self.outcomes.get((paper.title, claim), (ClaimOutcome.UNMEASURED, "No page tells."))
