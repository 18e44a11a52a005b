"""What is asked of every kind of drafter: checks of its files, its wiring, and the changes of it that are tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ..types import JSON

if TYPE_CHECKING:
    import torch

    from .texts import Text


@dataclass(frozen=True, slots=True)
class Check:
    """What a look at the files found."""

    name: str
    flag: str  # the entry of the files that it is about
    fine: bool
    sentence: str
    given: JSON = None  # where it is not fine
    better: JSON = None


@dataclass(frozen=True, slots=True)
class Probe:
    """A drafter with one entry of its wiring changed."""

    name: str  # "norm_before_residual on"
    flag: str
    given: JSON
    other: JSON
    wiring: Any  # what `Examined.guess` takes
    remedy: str  # what to change where the probe is better: "set norm_before_residual to true in config.json"


class Examined(Protocol):
    """A drafter under examination. A wiring is a value of its own kind, which no probe changes in place."""

    method: str
    about: str
    depth: int  # guesses one behind the other, at most
    given: Any  # the wiring that its files ask for

    def checks(self) -> Sequence[Check]:
        """What its files show without a run."""
        ...

    def layers(self) -> Sequence[int]:
        """The target's layers whose inputs any wiring reads, ascending."""
        ...

    def probes(self, wiring: Any) -> Sequence[Probe]:
        """Every change of a wiring that is worth a try."""
        ...

    def guess(self, wiring: Any, text: Text, places: Sequence[int], depth: int) -> torch.Tensor:  # (P, depth) ids
        """The likeliest chain behind every place, whose token the target has chosen but not read."""
        ...


def on(flag: bool) -> str:
    """A flag in words."""
    return "on" if flag else "off"
