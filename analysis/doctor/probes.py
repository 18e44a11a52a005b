"""The interface of every kind of drafter: checks of its files, its wiring, and the changes of it to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from decoding.model.precision import spelt
from decoding.types import JSON

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

from .edits import Edit
from .texts import Text

AS_STORED = "as in the file"  # the given value of a change of weights
UNDECIDED = "as measured"  # the better value of an entry that is missing, until both values were measured


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check of the files."""

    name: str
    flag: str  # the entry of the files that it is about
    fine: bool
    sentence: str
    given: JSON = None  # where it is not fine
    better: JSON = None
    note: bool = False  # whether it is worth a look although it is fine


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
    model: AnyDecoder  # the target
    drafted: torch.Tensor | None  # the tokens that `rows` is over; None: all
    folder: Path | None  # with its card, if any
    about: str
    depth: int  # guesses one after the other, at most
    given: Any  # the wiring that its files ask for
    apart: str  # what its guesses are called where none depends on those before it: "head", "guess"; else ""
    young: bool  # whether its norms are nearly ones, with which training begins

    def checks(self) -> Sequence[Check]:
        """Check what the drafter's files show without a run."""
        ...

    def layers(self) -> Sequence[int]:
        """Return the target's layers whose inputs any wiring reads, ascending."""
        ...

    def probes(self, wiring: Any) -> Sequence[Probe]:
        """List every change of a wiring that is worth a try."""
        ...

    def guess(self, wiring: Any, text: Text, places: Sequence[int], depth: int) -> torch.Tensor:  # (P, depth) ids
        """Return the likeliest chain at every position, whose token the target has chosen but not read.

        Guesses after the first wrong one mean nothing.
        """
        ...

    def rows(self, wiring: Any, text: Text, places: Sequence[int]) -> tuple[torch.Tensor, list[int]]:  # (R, n), R
        """Return logits of guesses at every position, and the rows of the target's that they were learnt from."""
        ...

    def edits(self, wiring: Any) -> Sequence[Probe]:
        """List the changes of the weights that may undo what a file has wrong."""
        ...

    def shares(self, wiring: Any) -> Sequence[Probe]:
        """List changes that leave out or halve a part of the drafter. None of them helps a drafter that works."""
        ...


def probe(wiring: Any, name: str, flag: str, given: JSON, other: JSON, remedy: str, **entries: Any) -> Probe:
    """Make the probe that changes these entries of a wiring."""
    return Probe(name, flag, given, other, replace(wiring, **entries), remedy)


def edit_probes(wiring: Any, edits: Sequence[Edit]) -> list[Probe]:
    """Make the probes that change weights on top of those that a wiring has changed already."""
    return [
        probe(wiring, edit.name, edit.flag, AS_STORED, edit.name, edit.remedy, edits=(*wiring.edits, edit))
        for edit in edits
    ]


def probe_dtype(wiring: Any, part: str) -> Probe:
    """Compute in bfloat16 instead of another dtype, or else in float32."""
    dtype = torch.float32 if wiring.dtype == torch.bfloat16 else torch.bfloat16
    name = f"computed in {spelt(dtype)}"
    return probe(
        wiring, name, "dtype", spelt(wiring.dtype), spelt(dtype), f"compute the {part} in {spelt(dtype)}", dtype=dtype
    )


def on(flag: bool) -> str:
    """Name a flag's value."""
    return "on" if flag else "off"


def chains(best: torch.Tensor, rows: Sequence[int], depth: int) -> torch.Tensor:  # (T,) -> (P, depth)
    """Collect the guesses of a drafter that reads its guesses as it reads the text.

    `best` holds its likeliest token after every row of the text. As long as its guesses are right they are the text, so
    the tokens after them are in the next rows.
    """
    return torch.stack([best[row : row + depth] for row in rows])
