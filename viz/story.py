"""A run as the views read it: the header and the steps so far, with what every view asks about them.

It only grows. All views are functions of a story and a step's number, and look at no later step: so a frame is the
same whether the run is still going on, has just ended, or comes from a file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from decoding.types import Header, Role, Step, Trace

from . import panel
from .palette import Fate

_RECENT = 32  # steps whose facts are kept: more than a figure shows at once


@dataclass(slots=True)
class Story:
    """The steps so far, and display texts of the tokens in them."""

    header: Header
    texts: dict[int, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)  # prompt and everything emitted
    ends: frozenset[int] = field(init=False)  # tokens that end a text
    # In which steps an n-gram went into the pool, by the key in front of it and as much of it as a guess holds.
    pool: dict[tuple[int, ...], list[int]] = field(default_factory=lambda: defaultdict(list))
    # What a view adds up from step to step, by the view's name: a long run must not be counted anew for every step.
    sums: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, trace: Trace) -> Story:
        """The story of a whole trace."""
        story = cls(trace.header)
        story.tell(trace.texts)
        for step in trace.steps:
            story.add(step)
        return story

    def __post_init__(self) -> None:
        self.ids.extend(self.header.prompt)
        self.ends = frozenset(self.header.end_tokens)

    def tell(self, texts: Mapping[int, str]) -> None:
        """Learn display texts."""
        self.texts.update(texts)

    def add(self, step: Step) -> None:
        """The next step."""
        self.steps.append(step)
        self.ids.extend(step.emitted)
        length = panel.guessed(self.header)
        for event in panel.events(panel.part(step.panel.get("pool"), "inserted")):
            self.pool[event.key, *event.ngram[:length]].append(step.index)

    def text(self, token: int | None) -> str:
        """A token's display text."""
        return "" if token is None or token < 0 else self.texts.get(token, f"#{token}")


def node_fates(step: Step) -> tuple[Fate, ...]:
    """What became of every node of a step."""
    return _node_fates(step.tokens, step.parents, step.roles, step.path, step.choices, step.emitted)


@lru_cache(maxsize=_RECENT)
def _node_fates(
    tokens: tuple[int, ...],
    parents: tuple[int, ...],
    roles: tuple[Role, ...],
    path: tuple[int, ...],
    choices: tuple[int, ...],
    emitted: tuple[int, ...],
) -> tuple[Fate, ...]:
    accepted, said = set(path), _said(tokens, parents, path, choices, emitted)
    fates: list[Fate] = []
    for node, (token, parent, role) in enumerate(zip(tokens, parents, roles, strict=True)):
        if role is Role.ROOT:
            fates.append(Fate.ROOT)
        elif role is Role.EXPLORE:
            fates.append(Fate.EXPLORED)
        elif node in accepted:
            fates.append(Fate.ACCEPTED)
        else:
            # Right where it stands, but its like was taken, or it hangs off a guess that was not accepted.
            fates.append(Fate.MATCHED if said[parent] == token else Fate.REJECTED)
    return tuple(fates)


def said(step: Step, node: int) -> int:
    """What the target took behind a node: what was written there, else what is likeliest; -1 where nothing tells."""
    return _said(step.tokens, step.parents, step.path, step.choices, step.emitted)[node]


@lru_cache(maxsize=_RECENT)
def _said(
    tokens: tuple[int, ...],
    parents: tuple[int, ...],
    path: tuple[int, ...],
    choices: tuple[int, ...],
    emitted: tuple[int, ...],
) -> tuple[int, ...]:
    places = _places(tokens, parents)
    written = {places[node]: token for node, token in zip(path, emitted, strict=False)}
    return tuple(written.get(place, choices[node] if choices else -1) for node, place in enumerate(places))


def siblings(step: Step, node: int) -> list[int]:
    """The guesses for the place behind a node, in the order of the draft, every token once.

    They hang off the node or off one with the same tokens before it: the engine walks those together. Of guesses with
    the same token the accepted one stands for all, else the first.
    """
    return [*siblings_of(step, [node])[0].values()]


def siblings_of(step: Step, nodes: Sequence[int]) -> list[Mapping[int, int]]:
    """The guesses behind each of some nodes, by their tokens."""
    if not step.tokens:
        return [{} for _ in nodes]
    places, behind = places_of(step), _siblings(step.tokens, step.parents, step.roles, step.path)
    return [behind.get(places[node], {}) for node in nodes]


@lru_cache(maxsize=_RECENT)
def _siblings(
    tokens: tuple[int, ...], parents: tuple[int, ...], roles: tuple[Role, ...], path: tuple[int, ...]
) -> dict[int, dict[int, int]]:
    """For every place the guesses behind it, by their tokens."""
    places, taken = _places(tokens, parents), set(path)
    found: dict[int, dict[int, int]] = {}
    for guess, (token, parent, role) in enumerate(zip(tokens, parents, roles, strict=True)):
        if role is Role.VERIFY:
            behind = found.setdefault(places[parent], {})
            if token not in behind or guess in taken:
                behind[token] = guess
    return found


def branches(step: Step) -> bool:
    """Whether several guesses hang off one node."""
    guesses = Counter(parent for parent, role in zip(step.parents, step.roles, strict=True) if role is Role.VERIFY)
    return max(guesses.values(), default=0) > 1


def places_of(step: Step) -> tuple[int, ...]:
    """The place in the text that every node stands for: the first node with the same tokens from the root to it."""
    return _places(step.tokens, step.parents)


@lru_cache(maxsize=_RECENT)
def _places(tokens: tuple[int, ...], parents: tuple[int, ...]) -> tuple[int, ...]:
    known, places = dict[tuple[int, int], int](), list[int]()
    for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
        places.append(known.setdefault((places[parent], token), node) if parent >= 0 else node)
    return tuple(places)


def emitted_fates(step: Step) -> tuple[Fate, ...]:
    """What every token that a step emitted was: accepted guesses, then a bonus or a correction."""
    guesses = min(step.accepted, len(step.emitted))
    if guesses == len(step.emitted):
        return (Fate.ACCEPTED,) * guesses  # the run was cut before the target's own token
    behind = siblings(step, step.path[-1] if step.path else 0)
    return (*(Fate.ACCEPTED,) * guesses, Fate.CORRECTION if behind else Fate.BONUS)
