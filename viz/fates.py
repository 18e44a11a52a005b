"""Computes the fate of every node and token of a step, and which guesses are for the same position of the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from decoding.types import Role, Step

from .palette import Fate

JUDGED = (Fate.ACCEPTED, Fate.REJECTED, Fate.MATCHED, Fate.TWIN)  # guesses; until they are judged they are proposed
_RECENT = 32  # steps whose facts are remembered: more than a figure shows at once


def seen_fate(fate: Fate, *, judged: bool) -> Fate:
    """Return the fate that is shown before or after the target's judgement."""
    return fate if judged or fate not in JUDGED else Fate.PROPOSED


def node_fates(step: Step) -> tuple[Fate, ...]:
    """Return the fate of every node of a step."""
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
    accepted, choices_of_places = set(path), _target_choices(tokens, parents, path, choices, emitted)
    places = _places(tokens, parents)
    taken = {places[node] for node in path}
    fates: list[Fate] = []
    for node, (token, parent, role) in enumerate(zip(tokens, parents, roles, strict=True)):
        if role is Role.ROOT:
            fates.append(Fate.ROOT)
        elif role is Role.EXPLORE:
            fates.append(Fate.EXPLORED)
        elif node in accepted:
            fates.append(Fate.ACCEPTED)
        elif places[node] in taken:
            fates.append(Fate.TWIN)
        else:
            # Right at its position, but a child of a guess that was not accepted.
            fates.append(Fate.MATCHED if choices_of_places[parent] == token else Fate.REJECTED)
    return tuple(fates)


def target_choices(step: Step) -> tuple[int, ...]:
    """Return the target's token after every node: the written one, else the likeliest; -1 if not recorded."""
    return _target_choices(step.tokens, step.parents, step.path, step.choices, step.emitted)


@lru_cache(maxsize=_RECENT)
def _target_choices(
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
    """Return the guesses for the position after a node, in the order of the draft, every token once.

    Their parent is the node, or one with the same tokens before it: the engine walks those together. Of guesses with
    the same token the accepted one is kept, else the first.
    """
    return [*siblings_of(step, [node])[0].values()]


def siblings_of(step: Step, nodes: Sequence[int]) -> list[Mapping[int, int]]:
    """Return the guesses after each of some nodes, by their tokens."""
    if not step.tokens:
        return [{} for _ in nodes]
    places, behind = places_of(step), _siblings(step.tokens, step.parents, step.roles, step.path)
    return [behind.get(places[node], {}) for node in nodes]


@lru_cache(maxsize=_RECENT)
def _siblings(
    tokens: tuple[int, ...], parents: tuple[int, ...], roles: tuple[Role, ...], path: tuple[int, ...]
) -> dict[int, dict[int, int]]:
    """Return the guesses after every position, by their tokens."""
    places, taken = _places(tokens, parents), set(path)
    guesses: dict[int, dict[int, int]] = {}
    for guess, (token, parent, role) in enumerate(zip(tokens, parents, roles, strict=True)):
        if role is Role.VERIFY:
            behind = guesses.setdefault(places[parent], {})
            if token not in behind or guess in taken:
                behind[token] = guess
    return guesses


def is_branching(step: Step) -> bool:
    """Return True if a node has several children."""
    guesses = Counter(parent for parent, role in zip(step.parents, step.roles, strict=True) if role is Role.VERIFY)
    return max(guesses.values(), default=0) > 1


def places_of(step: Step) -> tuple[int, ...]:
    """Return for every node the first node with the same tokens from the root to it: both are one position."""
    return _places(step.tokens, step.parents)


@lru_cache(maxsize=_RECENT)
def _places(tokens: tuple[int, ...], parents: tuple[int, ...]) -> tuple[int, ...]:
    first, places = dict[tuple[int, int], int](), list[int]()
    for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
        places.append(first.setdefault((places[parent], token), node) if parent >= 0 else node)
    return tuple(places)


def emitted_fates(step: Step) -> tuple[Fate, ...]:
    """Return the fate of every emitted token: the accepted guesses, then the target's own token."""
    guesses = min(step.accepted, len(step.emitted))
    if guesses == len(step.emitted):
        return (Fate.ACCEPTED,) * guesses  # the run was cut before the target's own token
    if not guesses:
        return (Fate.CORRECTION if step.drafted else Fate.OWN,)
    behind = siblings(step, step.path[-1] if step.path else 0)
    return (*(Fate.ACCEPTED,) * guesses, Fate.CORRECTION if behind else Fate.BONUS)
