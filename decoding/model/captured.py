"""Passes that a CUDA device replays as one graph, so that the host need not launch each of their kernels.

A graph has fixed shapes and addresses. So a step's rows are padded to one of a few sizes, and everything that differs
between steps is in a buffer that is written in one copy. A pass is captured when its shape occurs for the second time.
A pass that cannot be captured is run as usual.
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

# The number of rows of every pass. In products of one shape a row's numbers do not depend on the other rows, so that
# all methods write the same text in bfloat16.
SAME_ROWS = "SPECSCOPE_STEP_ROWS"
ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)  # a step's rows are padded to one of these


def step_rows() -> int | None:
    """Return the number of rows of every pass, if the environment sets one; ModelError if it is invalid."""
    value = os.environ.get(SAME_ROWS, "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and 1 <= int(value[:5]) <= ROWS[-1]):
        raise ModelError(f"{SAME_ROWS} must be a whole number from 1 to {ROWS[-1]}, not {value[:20]!r}")
    return int(value)


def filled(rows: int) -> int:
    """Return the rows of the graph for a step of `rows` rows; 0 if there is none."""
    return next((each for each in ROWS if each >= rows), 0)


@dataclass(frozen=True, slots=True)
class PassSpec:
    """The layers that a pass runs, and what it returns."""

    start: int
    stop: int
    taps: tuple[int, ...] = ()  # layers whose entering states are returned
    answers: bool = True  # whether the final norm and the head follow
    judge: Hashable = None  # the key of a judge, whose numbers are returned instead of the answers


class PassJudge(Protocol):
    """Computes, on the device, what the engine needs from a pass's logits and hidden states."""

    key: Hashable  # equal for judges that compute the same; None: the judge is used once
    uniforms: Sequence[float]  # uniform numbers, by depth
    guesses: Sequence[bool]  # by node, whether it may be accepted; empty if not needed
    fixed: bool  # whether drafts on the device are at the same addresses for the same key
    kept: Outputs  # computed with the numbers, and left on the device

    def numbers(self, logits: torch.Tensor, hidden: torch.Tensor, nodes: StepBuffer) -> Outputs:
        """Compute the numbers."""
        ...


@dataclass(frozen=True, slots=True)
class Judged:
    """The outputs of a pass with a judge; valid until the pass is replayed again."""

    states: Outputs  # that enter the tapped layers
    flat: torch.Tensor  # (N,) the judge's numbers, in float64
    sizes: Sequence[int]  # of the tensors that were flattened
    kept: Outputs = ()  # as in `PassJudge`

    def split(self, numbers: list[float]) -> list[list[float]]:
        """Split fetched numbers into the judge's outputs."""
        return split(numbers, self.sizes)


class PassRows(NamedTuple):
    """The rows of a pass: a tree after a cached text."""

    tokens: Tokens
    parents: Parents
    first: int  # the position of the root
    hidden: torch.Tensor | None = None  # (T, H) the first layer's input, if not the embeddings
    judge: PassJudge | None = None


class StoredText(NamedTuple):
    """A cached text that a recorded pass follows."""

    cache: Cache
    tables: RopeTables
    cut: int | None  # the prefix that the pass is recorded for; None: it serves every text


class StepBuffer:
    """The inputs that differ between steps of the same shape, in one block of the device's memory.

    Padding rows see only themselves and what all rows see; they are written after the step's rows.
    """

    ahead = 0

    def __init__(self, rows: int, device: torch.device) -> None:
        self.rows = rows
        numbers = 8 * 6 * rows
        self._bytes = torch.zeros(numbers + rows * rows, dtype=torch.uint8, device=device)
        columns = self._bytes[:numbers].view(torch.long).view(6, rows)
        self.ids, self.depths, self.slots, self.above, self.guesses, uniforms = columns.unbind(0)
        self.uniforms = uniforms.view(torch.float64)  # uniform numbers, by depth
        self.first = self.slots[:1]  # (1,) of the root: every row sees the slots before it
        self.seen = self._bytes[numbers:].view(torch.bool).view(rows, rows)

    @property
    def positions(self) -> torch.Tensor:
        """Return the rows' positions in the text."""
        return self.depths + self.first

    @property
    def goals(self) -> torch.Tensor:
        """Return each row's uniform number."""
        return self.uniforms.index_select(0, self.depths)

    def fill(self, step: PassRows) -> None:
        """Write the inputs that the host knows; call `take` afterwards."""
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
        """Write the step's inputs that only the device knows."""
        nodes = len(step.parents)
        if isinstance(step.tokens, torch.Tensor):
            self.ids[:nodes].copy_(step.tokens)
        if isinstance(step.parents, QueuedTree):
            self.depths[:nodes].copy_(step.parents.depths)
            self.seen[:nodes, :nodes].copy_(step.parents.seen)


# Runs a pass over the rows in a buffer, with the first layer's input if it is not the embeddings.
BufferedPass = Callable[[StepBuffer, torch.Tensor | None, StoredText, PassSpec], Outputs]


@dataclass(slots=True)
class _RecordedPass:
    """A pass on fixed addresses."""

    buffer: StepBuffer
    entering: torch.Tensor | None  # (B, H) the first layer's input, if not the embeddings
    text: StoredText  # its addresses were recorded
    outputs: Outputs = ()  # with a judge only the states, in memory of their own
    judged: Judged | None = None
    graph: RecordedGraph | None = None

    def fill(self, step: PassRows) -> None:
        """Write the inputs of a step, except those that the graph itself takes from fixed addresses."""
        self.buffer.fill(step)
        if step.judge is None or not step.judge.fixed:
            self._take(step)

    def run(self, forward: BufferedPass, spec: PassSpec, step: PassRows) -> None:
        """Run the pass for `step`, so that recording it writes no other rows to the cache."""
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
        """`cut` maps a text's length to the prefix that a pass is recorded for; None: one pass serves every text."""
        super().__init__(recorder)
        self._run, self._lock, self._cache, self._cut = run, recorder.lock, cache, cut

    def replay(
        self, spec: PassSpec, step: PassRows, tables: RopeTables, same_rows: int | None = None
    ) -> Outputs | Judged | None:
        """Replay a pass; None if it must be run as usual. `same_rows`: pad all steps to this number of rows."""
        nodes, cut, hidden, judge = len(step.parents), self._cut(step.first), step.hidden, step.judge
        rows = filled(nodes)
        if same_rows is not None:
            rows = same_rows if nodes <= same_rows else 0
        before = step.first if cut is None else cut + BLOCK  # slots before the rows
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
