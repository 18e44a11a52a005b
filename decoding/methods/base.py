"""The interface of methods: they propose a tree and observe the verdict, and cannot change the output."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, TypeVar

from .. import params
from ..drafting.text_so_far import TextSoFar
from ..queued import Proposal
from ..types import JSON, Draft, Verdict

if TYPE_CHECKING:
    import torch

    from ..drafting.drafter import Drafter
    from ..drafting.early_exit import EarlyExit
    from ..drafting.features import Features

Kept = TypeVar("Kept")


@dataclass(slots=True)
class Context(TextSoFar):
    """What a method may know about its run. The engine updates it; methods only read."""

    draft: Drafter | None = None  # the draft model, for methods that need "draft_model"
    target: EarlyExit | None = None  # the target's first layers, for methods that need "early_exit"
    features: Features | None = None  # the states between the target's layers, for methods that need "features"
    parts: Mapping[str, Any] = field(default_factory=dict)  # the method's other needs, by the names in `needs`
    reference: Sequence[int] = ()  # a document to copy from, besides the text
    random: random.Random = field(default_factory=lambda: random.Random(0))  # for choices that cannot change the output
    # What the method keeps between runs, if its settings say so: an engine has one dictionary per method.
    memory: dict[str, Any] = field(default_factory=dict)

    def from_prompt(self) -> int:
        """Return a random token of the prompt."""
        return self.text[self.random.randrange(self.prompt_length)]

    def remember(self, name: str, make: Callable[[], Kept]) -> Kept:
        """Return the value that earlier runs left as `name`, which includes all sizes; else make it and drop others."""
        if name not in self.memory:
            self.memory.clear()
            self.memory[name] = make()
        kept: Kept = self.memory[name]
        return kept


class EmptyPanel(TypedDict):
    """The panel of a method without one."""


class Method(ABC):
    """One decoding method of one run."""

    name: ClassVar[str]
    label: ClassVar[str]
    paper: ClassVar[str]
    Params: ClassVar[type[params.Params]]
    # A TypedDict of what `panel` returns, total=False, since a step need not fill every key. All of it is JSON: a field
    # declared as a tuple is a list at run time, as in a file.
    Panel: ClassVar[type] = EmptyPanel
    # Capabilities of the engine ("hidden", "early_exit", "features") and parts that it must have been loaded with
    # ("draft_model", ...).
    needs: ClassVar[frozenset[str]] = frozenset()
    takes_reference: ClassVar[bool] = False  # whether it can copy from a document as well

    @abstractmethod
    def __init__(self, context: Context, params: Any) -> None:
        """Start with a fresh context; `params` is an instance of this method's Params."""

    @property
    def may_guess(self) -> bool:
        """Return True if the next proposal may hold guesses; if not, a device may begin its pass in advance."""
        return True

    @abstractmethod
    def propose(self) -> Proposal:
        """Propose the tree to verify next; its root is the last token of the text."""

    @abstractmethod
    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Learn from the target's choices. The text already holds the emitted tokens."""

    def guess(self, hidden: torch.Tensor) -> torch.Tensor:  # (H,) -> (n,) or (K, n) ids
        """Make the next step's guesses from the target's hidden state at the last accepted node.

        Methods that need "hidden" implement it. It is called before the host knows which node that is, so it must not
        fetch a number. The verdict holds its result, flat.
        """
        raise NotImplementedError

    @property
    def guess_key(self) -> Hashable:
        """Return all that `guess` depends on besides the hidden state; None if that includes state of the run."""
        return None

    def panel(self) -> Mapping[str, JSON]:
        """Return the method's view of this step, as plain JSON for the record."""
        return {}
