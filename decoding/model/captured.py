"""Passes that a CUDA device replays as one graph, where the host would have to launch each of their kernels.

A graph has fixed shapes and addresses. So a step's rows are filled up to one of a few numbers, and all that differs
from one step to the next stands in a buffer that is written in one copy. A pass is captured when its shape is met for
the second time. Wherever that cannot be, the pass is run as usual.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

import numpy as np
import torch

from ..errors import ModelError
from ..tree import closure, depths
from .attention import BLOCK
from .cache import Cache
from .queued_tree import Parents, QueuedTree
from .upload import write

if TYPE_CHECKING:
    from .rope import RopeTables
    from .upload import Tokens

VARIABLE = "SPECSCOPE_GRAPHS"  # "off": nothing is captured
# The rows that every pass shall have. Products of one shape give a row the same numbers whatever the others are, so
# that bfloat16 writes one text, by every method.
SAME_ROWS = "SPECSCOPE_STEP_ROWS"
ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)  # what a step's rows are filled up to
ATTEMPTS = 3  # to record, in succession, before everything is run as usual
MOST = 8  # graphs of a session: the one that was not used for the longest time goes first
_REMEMBERED = 64  # shapes that were met and have no graph yet


def captures() -> bool:
    """Whether steps shall be captured; ModelError if the environment says it in another way than by "off"."""
    said = os.environ.get(VARIABLE, "")
    if said not in ("", "off"):
        raise ModelError(f'{VARIABLE} must be "off" or left out, not {said[:20]!r}')
    return not said


def step_rows() -> int | None:
    """The rows that every pass of a model shall have, if the environment says so; ModelError if it says it wrong."""
    said = os.environ.get(SAME_ROWS, "")
    if not said:
        return None
    if not (said.isascii() and said.isdigit() and 1 <= int(said[:5]) <= ROWS[-1]):
        raise ModelError(f"{SAME_ROWS} must be a whole number from 1 to {ROWS[-1]}, not {said[:20]!r}")
    return int(said)


def filled(rows: int) -> int:
    """The rows of the graph for a step of so many; 0 where there is none."""
    return next((each for each in ROWS if each >= rows), 0)


class RecordedGraph(Protocol):
    """Work that was recorded on a device."""

    def replay(self) -> None:
        """Have the device do it again, on the same addresses."""
        ...


_recording = threading.Lock()  # of all models: the caching allocator cannot serve two captures at once on a device


@cache
def _recording_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream on which everything is recorded: each further one would keep a workspace of cuBLAS of its own."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class Recorder:
    """Records the passes of one model as CUDA graphs, which share a pool of memory.

    Other threads may go on using the device meanwhile, and may allocate memory there.
    """

    def __init__(self, device: torch.device) -> None:
        # What comes out of a graph stands in the shared memory: before it is copied, no other may be queued.
        self.lock = threading.RLock()
        self._device = device
        self._graphs = WeakSet[Any]()  # that are alive
        self._shared_pool: Any = None
        self._failures = dict[Hashable, list[str]]()  # why each attempt in succession failed, by what was recorded

    @property
    def failed(self) -> str | None:
        """Why something is not recorded that should be."""
        return next((reasons[-1] for reasons in self._failures.values()), None)

    def works(self, what: Hashable) -> bool:
        """Whether to try: one failure may be another thread's doing, several in succession are the work's own."""
        return len(self._failures.get(what, ())) < ATTEMPTS

    def record(self, what: Hashable, work: Callable[[], None]) -> RecordedGraph | None:
        """Do some work, and record what the device does for it; None, and the reason in `failed`, if it cannot."""
        try:
            recording = self._record(work)
        except RuntimeError as error:
            self._failures.setdefault(what, []).append(str(error))
            return None
        self._failures.pop(what, None)
        return recording

    def _pool(self) -> Any:
        """The pool of the living graphs; a new one where there is none, since a pool dies with its last graph."""
        if not self._graphs:
            self._shared_pool = torch.cuda.graph_pool_handle()
        return self._shared_pool

    def _record(self, work: Callable[[], None]) -> RecordedGraph:
        """Record with `capture_begin`, since the context `torch.cuda.graph` has the host wait for the whole device."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self._device), _recording:
            stream, others = _recording_stream(self._device), torch.cuda.current_stream()
            stream.wait_stream(others)
            try:
                with torch.cuda.stream(stream):
                    work()  # kernels prepare things in their first call that no graph may hold
                    graph.capture_begin(pool=self._pool(), capture_error_mode="thread_local")
                    try:
                        work()
                    finally:  # a stream that goes on recording would fail all later work
                        graph.capture_end()
            finally:
                others.wait_stream(stream)
            self._graphs.add(graph)
        return graph


@dataclass(frozen=True, slots=True)
class PassSpec:
    """Which layers a pass runs, and what comes out of it."""

    start: int
    stop: int
    taps: tuple[int, ...] = ()  # layers whose entering states are asked for
    answers: bool = True  # whether the final norm and the head follow
    judge: Hashable = None  # the key of what is asked about the answers, and is all that comes out of them


Outputs = tuple[torch.Tensor, ...]  # those of a part, (B, ...) each


class PassJudge(Protocol):
    """What is asked about a pass's answers."""

    key: Hashable  # equal where the same is asked; None: it is asked once
    uniforms: Sequence[float]  # numbers of the seed, by depth
    guesses: Sequence[bool]  # of the nodes, which may be accepted; empty where that is not asked for
    fixed: bool  # whether what is read of a draft on the device is at the same addresses for the same key

    def numbers(self, logits: torch.Tensor, hidden: torch.Tensor, nodes: StepBuffer) -> Outputs:
        """Work it out on the device."""
        ...


@dataclass(frozen=True, slots=True)
class Judged:
    """What comes out of a pass whose answers were asked about, until it is replayed again."""

    states: Outputs  # as of any pass
    flat: torch.Tensor  # (N,) all numbers, in float64
    sizes: Sequence[int]  # how many each of them is

    def split(self, numbers: list[float]) -> list[list[float]]:
        """The numbers, one by one, once they have been fetched."""
        bounds = pairwise(accumulate(self.sizes, initial=0))
        return [numbers[begin:end] for begin, end in bounds]


class StepBuffer:
    """What differs between two steps of the same shape, in one block of the device's memory.

    Rows that only fill up see nothing but themselves and what all rows see; they are written behind the step's own.
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
        """The places of the rows in the text."""
        return self.depths + self.first

    @property
    def goals(self) -> torch.Tensor:
        """Each row's number of the seed."""
        return self.uniforms.index_select(0, self.depths)

    def fill(self, tokens: Tokens, parents: Parents, first: int, judge: PassJudge | None = None) -> None:
        """Write what the host knows of a tree whose root stands at place `first`; `take` is to follow."""
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
        write(torch.from_numpy(together), self._bytes)

    def take(self, tokens: Tokens, parents: Parents) -> None:
        """Write what only the device knows of the same tree."""
        nodes = len(parents)
        if isinstance(tokens, torch.Tensor):
            self.ids[:nodes].copy_(tokens)
        if isinstance(parents, QueuedTree):
            self.depths[:nodes].copy_(parents.depths)
            self.seen[:nodes, :nodes].copy_(parents.seen)


@dataclass(frozen=True, slots=True)
class RecordedPass:
    """A pass on fixed addresses."""

    buffer: StepBuffer
    hidden: torch.Tensor | None  # (B, H) what enters the first layer, where that is not the embeddings
    outputs: Outputs  # with a judge those of its states, in memory of their own
    recording: RecordedGraph
    tables: RopeTables  # whose addresses were recorded
    judged: Judged | None


# A pass over what stands in a buffer, behind a prefix of so many slots, or, None, behind what the device counts.
BufferedPass = Callable[[StepBuffer, torch.Tensor | None, Cache, "RopeTables", int | None, PassSpec], Outputs]


class Captured:
    """The recorded passes of one session, whose cache they write to and read."""

    def __init__(self, run: BufferedPass, recorder: Recorder, cache: Cache, cut: Callable[[int], int | None]) -> None:
        """`cut`: the prefix that a pass behind so many tokens is recorded for; None for one that serves every text."""
        self._run, self._recorder, self._cache, self._cut = run, recorder, cache, cut
        self._passes = OrderedDict[tuple[object, ...], RecordedPass]()
        self._met = OrderedDict[tuple[object, ...], None]()  # shapes that have not been recorded

    def replay(
        self,
        part: PassSpec,
        tokens: Tokens,
        parents: Parents,
        first: int,
        hidden: torch.Tensor | None,
        tables: RopeTables,
        same_rows: int | None = None,
        judge: PassJudge | None = None,
    ) -> Outputs | Judged | None:
        """What comes out of a pass for a tree whose root stands at place `first`; None where it is to be run as usual.

        `hidden`: (T, H) what enters the first layer, where that is not the embeddings. `same_rows`: what rows are
        filled up to, however few they are.
        """
        rows, cut = filled(len(parents)), self._cut(first)
        if same_rows is not None:
            rows = same_rows if len(parents) <= same_rows else 0
        read = first if cut is None else cut + BLOCK  # slots in front of the rows
        if judge is not None:
            part = replace(part, judge=judge.key)
        if not self._recorder.works((rows, part)) or not rows or read + rows > self._cache.slots:
            return None
        key = (id(tables.cos), rows, cut, part)
        if key not in self._passes and key not in self._met:
            self._met[key] = None
            if len(self._met) > _REMEMBERED:
                self._met.popitem(last=False)
            return None
        with self._recorder.lock:
            found = self._passes.get(key)
            if found is None:
                if len(self._passes) == MOST:
                    self._passes.popitem(last=False)
                buffer = StepBuffer(rows, self._cache.data.device)
                entering = None if hidden is None else hidden.new_zeros(rows, hidden.shape[1])
            else:
                self._passes.move_to_end(key)
                buffer, entering = found.buffer, found.hidden
            buffer.fill(tokens, parents, first, judge)

            def take() -> None:
                buffer.take(tokens, parents)
                if hidden is not None and entering is not None:
                    entering[: len(parents)].copy_(hidden)

            fixed = judge is not None and judge.fixed
            if not fixed:
                take()
            if found is None:
                found = self._new(buffer, entering, tables, cut, part, judge, take if fixed else lambda: None)
                if found is None:
                    return None
                self._passes[key] = found
            found.recording.replay()
            outputs = tuple(output[: len(parents)].clone() for output in found.outputs)
            return outputs if found.judged is None else replace(found.judged, states=outputs)

    def _new(
        self,
        buffer: StepBuffer,
        hidden: torch.Tensor | None,
        tables: RopeTables,
        cut: int | None,
        part: PassSpec,
        judge: PassJudge | None,
        take: Callable[[], None],
    ) -> RecordedPass | None:
        """Record a pass. It does what the step that asks for it does, so that nothing else is written to the cache."""
        outputs: Outputs = ()
        judged: Judged | None = None

        def work() -> None:
            nonlocal outputs, judged
            take()
            made, taps = self._run(buffer, hidden, self._cache, tables, cut, part), len(part.taps)
            outputs = states = (torch.cat(made[:taps], 1),) if taps else ()
            if judge is None:
                outputs = *states, *made[taps:]
                return
            final, logits = made[taps:]
            numbers = judge.numbers(logits, final, buffer)
            flat = torch.cat([each.reshape(-1).double() for each in numbers])
            if judged is None:
                judged = Judged((), torch.empty_like(flat), [each.numel() for each in numbers])
            judged.flat.copy_(flat)

        recording = self._recorder.record((buffer.rows, part), work)
        return None if recording is None else RecordedPass(buffer, hidden, outputs, recording, tables, judged)
