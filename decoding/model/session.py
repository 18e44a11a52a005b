"""The interface of models: a session reads a tree of tokens, stores the accepted rows, and drops the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..types import ModelCard

if TYPE_CHECKING:
    import torch

    from .captured import Judged, PassJudge
    from .queued_tree import Parents
    from .upload import Tokens

ProgressCallback = Callable[[str, float], None]  # called with the current activity, and the share of it that is done


@dataclass(frozen=True, slots=True)
class Reading:
    """The model's outputs for the requested rows."""

    logits: torch.Tensor  # (R, V)
    hidden: torch.Tensor  # (R, H) after the final norm; (R, 0) for a model without hidden states
    experts: float | None = None  # distinct experts that the pass read per layer, on average; None without experts
    judged: Judged | None = None  # a judge's results, which replace logits and hidden states


class TreeSession(Protocol):
    """One text in one cache. `length` tokens have their key/value stored; row i of a reading is fed token i."""

    @property
    def length(self) -> int:
        """Return the number of stored tokens."""
        ...

    largest_step: int  # rows that fit into one reading

    def read(self, tokens: Tokens, parents: Parents, skip: int = 0, only: Sequence[int] | None = None) -> Reading:
        """Feed a tree whose root follows the stored tokens; answer for rows `skip` and later.

        With `only`, which ascends, answer for these rows alone: logits of many tokens take most of a small model's
        time. Raise ModelError, before writing, if the rows do not fit.
        """
        ...

    def commit(self, rows: Sequence[int]) -> None:
        """Store those rows of the last reading, a path from its root; forget the others."""
        ...

    def rewind(self, length: int) -> None:
        """Forget stored tokens after `length`: at most `largest_step` of them."""
        ...


class Session(TreeSession, Protocol):
    """A session that can start another text."""

    capacity: int  # tokens that can be stored
    # A text longer than this is rotated differently, and must be read again once; None: there is no such length.
    seam: int | None

    def keep(self, length: int, prompt_length: int) -> bool:
        """Start a text with the first `length` stored tokens; return False, and do nothing, if that is impossible."""
        ...

    def reset(self, prompt_length: int) -> None:
        """Start a new text. Scaled rotary embeddings of some models depend on the length of its prompt."""
        ...


@runtime_checkable
class JudgingSession(Session, Protocol):
    """A session that may run a judge with a pass; if not, it answers as usual."""

    judges: bool  # whether it runs judges; then `resume` takes one too

    def read(
        self,
        tokens: Tokens,
        parents: Parents,
        skip: int = 0,
        only: Sequence[int] | None = None,
        judge: PassJudge | None = None,
    ) -> Reading:
        """See `TreeSession.read`."""
        ...


@runtime_checkable
class LayerStates(Protocol):
    """Access to the states between a target's layers, for a drafter that reads them."""

    @property
    def length(self) -> int:
        """Return the number of stored tokens."""
        ...

    def tap(self, *layers: int) -> None:
        """Record the hidden states entering these layers for every stored token; without layers, stop recording.

        They ascend; the number of layers stands for the output of the last.
        """
        ...

    def tapped(self) -> torch.Tensor:  # (n, layers * H)
        """Return the states recorded since the last call, of the last n stored tokens. A reset deletes them."""
        ...


@runtime_checkable
class FirstLayers(LayerStates, Protocol):
    """`LayerStates` of a target whose first layers can run ahead of the stored text."""

    def enter(
        self, tokens: Tokens, layer: int, ahead: int = 0, parents: tuple[int, ...] | None = None
    ) -> torch.Tensor:  # (n, H)
        """Run a chain, or a tree, `ahead` rows after the stored tokens through the layers before `layer`.

        The rows in between come from earlier calls. Nothing is stored before `resume` and `commit`.
        """
        ...


@runtime_checkable
class TapSession(Session, LayerStates, Protocol):
    """A session that records the states between its layers."""


@runtime_checkable
class ExitSession(TapSession, FirstLayers, Protocol):
    """A session whose layers can be run in two parts."""

    def resume(self, tokens: Tokens, parents: tuple[int, ...], layer: int, hidden: torch.Tensor) -> Reading:
        """Continue from `layer` with the hidden states of a tree that has entered it; answer for every row."""
        ...


class Model(Protocol):
    """Weights on a device, or on several."""

    card: ModelCard
    device: torch.device  # of logits and hidden states
    devices: tuple[torch.device, ...]  # of the layers, in their order; the last is `device`
    dtype: torch.dtype  # of logits and hidden states
    precision: str  # the format of numbers, as `load` takes it: "bfloat16", "int8+bfloat16"
    step_rows: int | None  # the number of rows that every pass is padded to, and the most of a step; None: no padding

    window: int | None  # the smallest sliding window among the layers
    rolling: int | None  # the largest, if every layer has one: then its cache rolls
    lacks: Mapping[str, str]  # needs of methods that its sessions cannot meet, with the reason

    @property
    def attention(self) -> str:
        """Name the kernels that run, for the user."""
        ...

    def open(self, capacity: int, largest_step: int) -> Session:
        """Open a session for texts of up to `capacity` tokens."""
        ...


def catch_up(
    session: TreeSession,
    tokens: Sequence[int],
    room: int,
    chunk: int,
    interrupted: Callable[[], bool] = lambda: False,
    progress: ProgressCallback | None = None,
) -> Sequence[int]:
    """Store `tokens` in chunks, and return the last, at most `room`, to be read together with a draft.

    An interrupted run stops between two chunks, and keeps the tokens stored so far.
    """
    fed = 0
    while len(tokens) - fed > room and not interrupted():
        part = tokens[fed : fed + min(chunk, session.largest_step)]
        session.read(part, tuple(range(-1, len(part) - 1)), skip=len(part))
        session.commit(range(len(part)))
        fed += len(part)
        if progress is not None:
            progress("reading the prompt", fed / len(tokens))
    return tokens[fed:]
