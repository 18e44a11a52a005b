"""What the methods tell of their guesses beside the tree itself: how likely they were, and whose they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from decoding import tree
from decoding.types import Header, Step

from . import panel
from .layout import rows
from .story import Story

_Named = TypeVar("_Named")

_BACK = 512  # steps in which a phrase may have been inspired
_ROWS = 20  # names of rows that have room
_OF_RANK = (0.9, 0.3, 0.3)  # weights of the first ranks where no probability is known; the others have none


def weights(header: Header, step: Step, guesses: Sequence[int]) -> dict[int, float]:
    """How likely the method held a guess to be, from 0 to 1: by its probability, count or rank, where it tells one."""
    sure = confidences(step)
    found = dict[int, float]()
    for node in guesses:
        kind, numbers = panel.detail(step.sources[node])
        q = step.q[node] if step.q else None
        if q is not None:
            found[node] = q
        elif kind in ("exit", "draft") and numbers and numbers[0] <= len(sure):
            found[node] = sure[numbers[0] - 1]
        elif kind in ("medusa", "bigram", "unigram") and numbers and numbers[-1] < len(_OF_RANK):
            found[node] = _OF_RANK[numbers[-1]]
        elif kind == "datastore" and numbers:
            above = panel.detail(step.sources[step.parents[node]])[1]
            read = above[0] if above else panel.whole(panel.part(step.panel, "read"))
            found[node] = numbers[0] / read if read else 0.0
    return found


def confidences(step: Step) -> list[float]:
    """How sure the drafter was of each token of its chain, where it was asked."""
    return panel.shares(panel.part(step.panel, "confidence"))


def notes(story: Story, step: Step, guesses: Sequence[int]) -> dict[str, Any]:
    """Words beside nodes: how sure the drafter was, against the bound below which it stops; or which suffix it is."""
    known, depths = rows(step), tree.depths(step.parents)
    told = list[tuple[float, float, str]]()
    if story.header.method in ("kangaroo", "draft_model"):
        name = "eta" if story.header.method == "kangaroo" else "threshold"
        bound = panel.share(panel.part(step.panel, name)) or 0.0
        for node, sure in zip(guesses, confidences(step), strict=False):
            unsure = f" &lt; {bound:g}" if sure < bound else ""
            told.append((depths[node], (known[node] or 0) + 0.5, f"{sure:.2f}{unsure}"))
    if story.header.method == "ouroboros":
        parents = set(step.parents)
        for node in guesses:
            kind, numbers = panel.detail(step.sources[node])
            if kind == "pool" and numbers and node not in parents:
                told.append((depths[node] + 0.25, known[node] or 0, f"suffix {numbers[0] + 1}"))
    if not told:
        return {}
    return {"x": [x for x, _, _ in told], "y": [y for _, y, _ in told], "text": [words for _, _, words in told]}


def row_names(story: Story, step: Step, known: Sequence[int | None]) -> list[tuple[int, str]]:
    """What the branches of the root are called: a head's rank, the strategy that filled a row, a number of hits."""
    names = list[tuple[int, str]]()
    for node, row in enumerate(known):
        if row is None or step.parents[node] != 0:
            continue
        kind, numbers = panel.detail(step.sources[node])
        number = numbers[-1] if numbers else 0
        if kind == "medusa":
            names.append((row, f"rank {number}"))
        elif kind in ("bigram", "unigram"):
            names.append((row, f"{kind} {number}"))
        elif kind == "datastore":
            names.append((row, f"{number} hit" + "s" * (number != 1)))
        elif kind in ("prompt", "output") and story.header.method == "ngrammys":
            names.append((row, "context"))
    return thinned(names)


def thinned(names: Sequence[tuple[int, _Named]]) -> list[tuple[int, _Named]]:
    """Of what stands in rows, in their order, as much as there is room for."""
    kept = list[tuple[int, _Named]]()
    apart = names[-1][0] // _ROWS + 1 if names else 1
    for row, name in names:
        if not kept or row - kept[-1][0] >= apart:
            kept.append((row, name))
    return kept


def inspired(story: Story, k: int) -> set[int]:
    """The nodes of phrases that an earlier verification had inspired or refined (Ouroboros)."""
    step = story.steps[k]
    entries: dict[int, list[int]] = {}
    for node, source in enumerate(step.sources):
        kind, numbers = panel.detail(source)
        if kind == "pool" and len(numbers) == 2:
            entries.setdefault(numbers[0], []).append(node)
    if story.header.method != "ouroboros" or not entries:
        return set()
    learned = {tuple(phrase) for earlier in story.steps[max(0, k - _BACK) : k] for phrase in _learned(earlier)}
    trunk = next(iter(entries.values()))[0]
    key = step.tokens[step.parents[trunk]]
    suffixes = panel.rows(panel.part(step.panel, "suffixes"))
    chosen = [i for i, phrase in enumerate(suffixes) if (key, *phrase) in learned]
    return {node for entry in chosen for node in entries.get(entry, ())}


def _learned(step: Step) -> list[list[int]]:
    """The phrases that a step inspired or refined, each behind its key."""
    found = list[list[int]]()
    inserted = panel.part(step.panel, "inspired")
    for item in inserted if isinstance(inserted, list) else ():
        if isinstance(item, list) and len(item) == 3 and type(item[0]) is int:
            found.append([item[0], *panel.tokens(item[1])])
    before, refined = panel.rows(panel.part(step.panel, "suffixes")), panel.rows(panel.part(step.panel, "refined"))
    drafted = [node for node, source in enumerate(step.sources) if panel.detail(source)[0] == "draft"]
    changed = [new for new in refined if new not in before]
    return found + [[step.tokens[drafted[-1]], *phrase] for phrase in changed if drafted]
