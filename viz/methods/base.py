"""What the views show of one method, as an object; a method without one gets the defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from decoding.types import Header, Role, Step

from ..run_state import RunState
from ..sources import SHARED_WORDS
from ..view import Picture, StagePicture

Words = Callable[[RunState, Step], str]


def say_nothing(run: RunState, step: Step) -> str:
    """Return no words."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What shared views, sentences and the stream need of a method. Its label is in its class in `METHODS`."""

    guesses: bool = True  # False: the method never guesses, so there is no tree and no rate
    chain: bool = False  # whether its guesses are one chain; else they branch, and at most one branch can be right
    heeds_budget: bool = True  # whether it stops guessing where only one more token is asked for
    bandwidth_known: bool = True  # whether all that the target reads is read in passes that the record counts

    # Words. Those after "Guessed 3 tokens" begin with a blank, a comma or a colon.
    sources: Mapping[str, str] = field(default_factory=dict)  # by the kind of a source, as in `sources.SHARED_WORDS`
    origin: Words = say_nothing  # where the step's guesses came from
    agreed: Words = say_nothing  # a remark on the accepted guesses, in brackets
    learned: Words = say_nothing  # a sentence on what the method took from the step for later ones
    no_guess: Words = say_nothing  # why a step has no guess

    # Pictures of its own: what it guesses from, and a window of guesses that iterations refine.
    pool: Picture | None = None
    window: Picture | None = None
    stage: StagePicture | None = None  # the idea of the method, from left to right; else text and tree are shown

    # The tree.
    depth: Callable[[Header], int] = lambda header: 4  # how deep guesses can go, as far as that is known beforehand
    weights: Callable[[Step, Sequence[int]], Mapping[int, float]] = lambda step, guesses: {}  # how likely, 0 to 1
    weights_are_ranks: str = ""  # a sentence for where a weight is no probability
    notes: Callable[[RunState, Step, Sequence[int]], Sequence[tuple[int, str]]] = lambda run, step, guesses: ()
    notes_follow: bool = False  # whether these words are beside the nodes; else below them
    row_name: Callable[[Step, int], str] | None = None  # what a branch is called, by its node below the root
    depth_name: str = ""  # comes before a depth's number
    inspired: Callable[[RunState, int], Set[int]] | None = None  # nodes of step k that an earlier answer helped to make

    def why_no_guess(self, run: RunState, step: Step) -> str:
        """Return words that follow "no guess"; none if the record does not say why."""
        if self.heeds_budget and run.wants_one(step):
            return "only one more token is needed"
        columns = zip(step.roles, step.sources, strict=True)
        fed = any(role is Role.EXPLORE and source[:6] != "window" for role, source in columns)
        # Guesses that were fed could not be taken yet; a record without nodes says nothing.
        return "" if fed or not step.tokens else self.no_guess(run, step)

    @property
    def source_words(self) -> dict[str, str]:
        """The templates for all sources of the method's guesses."""
        return SHARED_WORDS | dict(self.sources)
