"""Passes that a CUDA device replays as one graph, where the host would have to launch each of their kernels.

A graph has fixed shapes and addresses. So a step's rows are filled up to one of a few numbers, and all that differs
from one step to the next is in a buffer that is written in one copy. A pass is captured when its shape is met for the
second time. A pass that cannot be captured is run as usual.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import torch

from ..errors import ModelError
from ..tree import closure, depths
from .attention import BLOCK
from .cache import Cache
from .download import split
from .graphs import Graphs, Outputs, RecordedGraph, Recorder
from .queued_tree import Parents, QueuedTree
from .upload import write_from_host

if TYPE_CHECKING:
    from .rope import RopeTables
    from .upload import Tokens

# The rows that every pass shall have. Products of one shape give a row the same numbers whatever the others are, so
# that bfloat16 writes one text, by every method.
SAME_ROWS = "SPECSCOPE_STEP_ROWS"
ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)  # what a step's rows are filled up to


def step_rows() -> int | None:
    """Return the number of rows of every pass, if the environment names one, and check it."""
    value = os.environ.get(SAME_ROWS, "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and 1 <= int(value[:5]) <= ROWS[-1]):
        raise ModelError(f"{SAME_ROWS} must be a whole number from 1 to {ROWS[-1]}, not {value[:20]!r}")
    return int(value)


def filled(rows: int) -> int:
    """Return the rows of the graph for a step of so many; 0 where there is none."""
    return next((each for each in ROWS if each >= rows), 0)


@dataclass(frozen=True, slots=True)
class PassSpec:
    """Which layers a pass runs, and what it returns."""

    start: int
    stop: int
    taps: tuple[int, ...] = ()  # layers whose entering states are returned
    answers: bool = True  # whether the final norm and the head follow
    judge: Hashable = None  # the key of a judge, whose numbers are returned instead of the answers


class PassJudge(Protocol):
    """Computes what the engine needs from a pass's answers, on the device."""

    key: Hashable  # equal where the same is computed; None: it is computed once
    uniforms: Sequence[float]  # numbers of the seed, by depth
    guesses: Sequence[bool]  # of the nodes, which may be accepted; empty where that is not needed
    fixed: bool  # whether what is read of a draft on the device is at the same addresses for the same key
    kept: Outputs  # computed with the numbers, for others on the device

    def numbers(self, logits: torch.Tensor, hidden: torch.Tensor, nodes: StepBuffer) -> Outputs:
        """Compute the numbers."""
        ...


@dataclass(frozen=True, slots=True)
class Judged:
    """What a pass with a judge returns; valid until the pass is replayed again."""

    states: Outputs  # as of any pass
    flat: torch.Tensor  # (N,) all numbers, in float64
    sizes: Sequence[int]  # how many each of them is
    kept: Outputs = ()  # as in `PassJudge`

    def split(self, numbers: list[float]) -> list[list[float]]:
        """Split the numbers, once they have been fetched, into those that the judge returned."""
        return split(numbers, self.sizes)


class PassRows(NamedTuple):
    """The rows of a pass: a tree after a cached text."""

    tokens: Tokens
    parents: Parents
    first: int  # the position of the root
    hidden: torch.Tensor | None = None  # (T, H) what enters the first layer, where that is not the embeddings
    judge: PassJudge | None = None


class StoredText(NamedTuple):
    """A cached text, as a pass after it is recorded for."""

    cache: Cache
    tables: RopeTables
    cut: int | None  # the prefix that the pass is recorded for; None: it serves every text


class StepBuffer:
    """What differs between two steps of the same shape, in one block of the device's memory.

    Rows that only fill up see nothing but themselves and what all rows see; they are written after the step's own.
    """

    ahead = 0

    def __init__(self, rows: int, device: torch.device) -> None:
        self.rows = rows
        numbers = 8 * 6 * rows
        self._bytes = torch.zeros(numbers + rows * rows, dtype=torch.uint8, device=device)
        whole = self._bytes[:numbers].view(torch.long)
        self.ids, self.depths, self.slots, self.above, self.guesses, uniforms = whole.view(6, rows).unbind(0)
        self.uniforms = uniforms.view(torch.float64)  # numbers of the seed, by depth
        self.first = self.slots[:1]  # (1,) of the root: every row sees what is in front of it
        self.seen = self._bytes[numbers:].view(torch.bool).view(rows, rows)

    @property
    def positions(self) -> torch.Tensor:
        """The rows' positions in the text."""
        return self.depths + self.first

    @property
    def goals(self) -> torch.Tensor:
        """Each row's number of the seed."""
        return self.uniforms.index_select(0, self.depths)

    def fill(self, step: PassRows) -> None:
        """Write what the host knows of a step; `take` is to follow."""
        tokens, parents, first, _, judge = step
        rows, nodes = self.rows, len(parents)
        numbers, seen = np.zeros(6 * rows, np.int64), np.eye(rows, dtype=np.bool_)
        if not isinstance(tokens, torch.Tensor):
            numbers[:nodes] = tokens
        if not isinstance(parents, QueuedTree):
            numbers[rows : rows + nodes] = depths(parents)
            seen[:nodes, :nodes] = closure(parents)
            numbers[3 * rows : 3 * rows + nodes] = np.maximum(parents, 0)
        numbers[2 * rows : 3 * rows] = first + np.arange(rows)
        if judge is not None:
            numbers[4 * rows : 4 * rows + len(judge.guesses)] = judge.guesses
            uniforms = judge.uniforms[:rows]  # no node is deeper than there are nodes
            numbers[5 * rows : 5 * rows + len(uniforms)] = np.array(uniforms, np.float64).view(np.int64)
        together = np.concatenate((numbers.view(np.uint8), seen.reshape(-1).view(np.uint8)))
        write_from_host(torch.from_numpy(together), self._bytes)

    def take(self, step: PassRows) -> None:
        """Write what only the device knows of the same step."""
        nodes = len(step.parents)
        if isinstance(step.tokens, torch.Tensor):
            self.ids[:nodes].copy_(step.tokens)
        if isinstance(step.parents, QueuedTree):
            self.depths[:nodes].copy_(step.parents.depths)
            self.seen[:nodes, :nodes].copy_(step.parents.seen)


# A pass over the rows in a buffer, and what enters their first layer if it is not the embeddings.
BufferedPass = Callable[[StepBuffer, torch.Tensor | None, StoredText, PassSpec], Outputs]


@dataclass(slots=True)
class _RecordedPass:
    """A pass on fixed addresses."""

    buffer: StepBuffer
    entering: torch.Tensor | None  # (B, H) what enters the first layer, where that is not the embeddings
    text: StoredText  # whose addresses were recorded
    outputs: Outputs = ()  # with a judge only the states, in memory of their own
    judged: Judged | None = None
    graph: RecordedGraph | None = None

    def fill(self, step: PassRows) -> None:
        """Write the inputs of a step, but for those that the graph itself takes from fixed addresses."""
        self.buffer.fill(step)
        if step.judge is None or not step.judge.fixed:
            self._take(step)

    def run(self, forward: BufferedPass, spec: PassSpec, step: PassRows) -> None:
        """Do what `step` asks for, so that nothing else is written to the cache."""
        judge = step.judge
        if judge is not None and judge.fixed:
            self._take(step)
        made, taps = forward(self.buffer, self.entering, self.text, spec), len(spec.taps)
        self.outputs = (torch.cat(made[:taps], 1),) if taps else ()
        if judge is None:
            self.outputs += made[taps:]
            return
        final, logits = made[taps:]
        numbers = judge.numbers(logits, final, self.buffer)
        flat = torch.cat([each.reshape(-1).double() for each in numbers])
        if self.judged is None:
            kept = tuple(map(torch.empty_like, judge.kept))
            self.judged = Judged((), torch.empty_like(flat), [each.numel() for each in numbers], kept)
        self.judged.flat.copy_(flat)
        for memory, fresh in zip(self.judged.kept, judge.kept, strict=True):
            memory.copy_(fresh)

    def _take(self, step: PassRows) -> None:
        self.buffer.take(step)
        if step.hidden is not None and self.entering is not None:
            self.entering[: len(step.parents)].copy_(step.hidden)


class Captured(Graphs[_RecordedPass]):
    """The recorded passes of one session, whose cache they read and write."""

    def __init__(self, run: BufferedPass, recorder: Recorder, cache: Cache, cut: Callable[[int], int | None]) -> None:
        """`cut`: the prefix that a pass after so many tokens is recorded for; None for one that serves every text."""
        super().__init__(recorder)
        self._run, self._lock, self._cache, self._cut = run, recorder.lock, cache, cut

    def replay(
        self, spec: PassSpec, step: PassRows, tables: RopeTables, same_rows: int | None = None
    ) -> Outputs | Judged | None:
        """Replay a pass; None where it is to be run as usual. `same_rows`: what all steps' rows are filled up to."""
        nodes, cut, hidden, judge = len(step.parents), self._cut(step.first), step.hidden, step.judge
        rows = filled(nodes)
        if same_rows is not None:
            rows = same_rows if nodes <= same_rows else 0
        before = step.first if cut is None else cut + BLOCK  # slots in front of the rows
        if not rows or before + rows > self._cache.slots:
            return None
        spec = spec if judge is None else replace(spec, judge=judge.key)

        def make() -> tuple[_RecordedPass, Callable[[], None]]:
            buffer = StepBuffer(rows, self._cache.data.device)
            entering = None if hidden is None else hidden.new_zeros(rows, hidden.shape[1])
            recorded = _RecordedPass(buffer, entering, StoredText(self._cache, tables, cut))
            return recorded, partial(recorded.run, self._run, spec, step)

        with self._lock:
            key = (tables, rows, cut, spec)
            recorded = self._replay(key, (rows, spec), make, lambda work: work.fill(step))
            if recorded is None:
                return None
            outputs = tuple(output[:nodes].clone() for output in recorded.outputs)
            return outputs if recorded.judged is None else replace(recorded.judged, states=outputs)
