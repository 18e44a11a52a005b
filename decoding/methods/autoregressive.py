"""Autoregressive decoding: one token at a time.

The baseline of every comparison. It runs through the same loop as everything else, so it pays the same overhead.

Algorithm
  L1  feed the last token alone
  L2  commit the target's choice of the next token
"""

from __future__ import annotations

from dataclasses import dataclass

from ..params import Params
from ..types import Draft, Role, Verdict
from .base import Context, Method


@dataclass(frozen=True, slots=True)
class AutoregressiveParams(Params):
    """No settings."""


class Autoregressive(Method):
    """Propose the root alone."""

    name = "autoregressive"
    label = "Autoregressive"
    paper = "the ordinary way"
    Params = AutoregressiveParams

    def __init__(self, context: Context, params: AutoregressiveParams) -> None:
        self._context = context

    @property
    def may_guess(self) -> bool:
        """Return False: there are never guesses."""
        return False

    def propose(self) -> Draft:
        """Propose the root without guesses."""
        return Draft((self._context.text[-1],), (-1,), (Role.ROOT,), ("root",))  # L1, L2

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Learn nothing."""
