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

ProgressCallback = Callable[[str, float], None]  # hears what is going on and which share of it is done


@dataclass(frozen=True, slots=True)
class Reading:
    """The model's outputs for the requested rows."""

    logits: torch.Tensor  # (R, V)
    hidden: torch.Tensor  # (R, H) after the final norm; (R, 0) for a model without hidden states
    experts: float | None = None  # different ones that the pass read in a layer, on average; None without a mixture
    judged: Judged | None = None  # what was asked about the answers, and then they are left out


class Session(Protocol):
    """One text in one cache. `length` tokens have their key/value stored; row i of a reading is fed token i."""

    @property
    def length(self) -> int:
        """Tokens stored."""
        ...

    capacity: int  # tokens that can be stored
    # A text that has outgrown this many tokens is read in another way, and must be read anew once; None: it never is.
    seam: int | None
    largest_step: int  # rows that fit into one reading

    def read(self, tokens: Tokens, parents: Parents, skip: int = 0, only: Sequence[int] | None = None) -> Reading:
        """Feed a tree whose root stands right behind the stored tokens; answer for rows `skip` and later.

        With `only`, which ascends, it answers for these rows alone: logits of many tokens take most of a small model's
        time.

        Raises ModelError before anything is written when the rows do not fit.
        """
        ...

    def commit(self, rows: Sequence[int]) -> None:
        """Store the rows of the last reading that form a path from its root; the others are forgotten."""
        ...

    def rewind(self, length: int) -> None:
        """Forget stored tokens behind `length`: at most `largest_step` of them."""
        ...

    def keep(self, length: int, prompt_length: int) -> bool:
        """Start a text whose first `length` tokens are those stored; False, with nothing done, where that cannot be."""
        ...

    def reset(self, prompt_length: int) -> None:
        """Start a new text. Scaled rotary embeddings of some models depend on the length of its prompt."""
        ...


@runtime_checkable
class JudgingSession(Session, Protocol):
    """A session that may work out with a pass what is asked about its answers; if not, it answers as usual."""

    judges: bool  # whether it is worth asking

    def read(
        self,
        tokens: Tokens,
        parents: Parents,
        skip: int = 0,
        only: Sequence[int] | None = None,
        judge: PassJudge | None = None,
    ) -> Reading:
        """As in `Session`."""
        ...


@runtime_checkable
class TapSession(Session, Protocol):
    """A session that records what stands between its layers, for a drafter that reads it."""

    def tap(self, *layers: int) -> None:
        """From now on record the hidden states with which each stored token enters these layers; none: stop.

        They ascend, and may end with the number of layers: what leaves the last.
        """
        ...

    def tapped(self) -> torch.Tensor:  # (n, layers * H)
        """The hidden states recorded since the last call, of the last n stored tokens. A reset deletes them."""
        ...


@runtime_checkable
class ExitSession(TapSession, Protocol):
    """A session whose layers can be run in two parts: an early exit reads what stands between them."""

    def enter(
        self, tokens: Tokens, layer: int, ahead: int = 0, parents: tuple[int, ...] | None = None
    ) -> torch.Tensor:  # (n, H)
        """Run a chain through the layers in front of `layer`; it stands `ahead` rows behind the stored tokens.

        With `parents` it is a tree.
        The rows in between are those of earlier calls. Nothing is stored before `resume` and `commit`.
        """
        ...

    def resume(self, tokens: Tokens, parents: tuple[int, ...], layer: int, hidden: torch.Tensor) -> Reading:
        """Go on from `layer` with the hidden states of a tree that has entered it; answer for every row."""
        ...


class Model(Protocol):
    """Weights on a device, or on several."""

    card: ModelCard
    device: torch.device  # where logits and hidden states come out: what works on them belongs there
    devices: tuple[torch.device, ...]  # of the layers, in their order; the last is `device`
    dtype: torch.dtype  # of logits and hidden states
    precision: str  # how numbers are held, as `load` takes it: "bfloat16", "int8+bfloat16"
    step_rows: int | None  # what the rows of every pass are filled up to, if to anything: no step may have more

    window: int | None  # the smallest sliding window among the layers
    rolling: int | None  # the largest, where every layer has one: its cache rolls
    lacks: Mapping[str, str]  # what methods may need and its sessions cannot do, and why

    @property
    def attention(self) -> str:
        """The kernels that run, in words that the user is shown."""
        ...

    def open(self, capacity: int, largest_step: int) -> Session:
        """A session for texts of up to `capacity` tokens."""
        ...


def catch_up(
    session: Session,
    tokens: Sequence[int],
    room: int,
    chunk: int,
    interrupted: Callable[[], bool] = lambda: False,
    progress: ProgressCallback | None = None,
) -> Sequence[int]:
    """Store `tokens` in chunks until at most `room` of them are left, to be read together with a draft; return those.

    An interrupted run stops between two chunks; what was stored stays.
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
