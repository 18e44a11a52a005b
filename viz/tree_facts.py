"""What the methods tell of their guesses beside the tree itself: how likely they were, and whose they are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from decoding import tree
from decoding.types import Header, Step

from . import panel
from .layout import rows
from .story import Story

_Named = TypeVar("_Named")

BACK = 512  # steps in which the origin of a phrase is looked for
_ROWS = 20  # names of rows that have room
_OF_RANK = (0.9, 0.3, 0.3)  # weights of the first ranks where there is no probability; the others have none


def weights(header: Header, step: Step, guesses: Sequence[int]) -> dict[int, float]:
    """How likely the method held a guess to be, from 0 to 1: by its probability, count or rank, where it tells one."""
    sure, bigrams = confidences(step), _bigrams(step)
    found = dict[int, float]()
    for node in guesses:
        kind, numbers = panel.detail(step.sources[node])
        q = step.q[node] if step.q else None
        if q is not None:
            found[node] = q
        elif kind in ("exit", "draft") and numbers and numbers[0] <= len(sure):
            found[node] = sure[numbers[0] - 1]
        elif kind == "bigram" and numbers and numbers[0] in bigrams:
            found[node] = bigrams[numbers[0]]
        elif kind in ("medusa", "unigram") and numbers and numbers[-1] < len(_OF_RANK):
            found[node] = _OF_RANK[numbers[-1]]
        elif kind == "datastore" and numbers:
            above = panel.detail(step.sources[step.parents[node]])[1]
            read = above[0] if above else panel.whole(panel.part(step.panel, "read"))
            found[node] = numbers[0] / read if read else 0.0
    return found


def _bigrams(step: Step) -> dict[int, float]:
    """The model's probability of the token that a bigram's row begins with, by its rank."""
    listed = step.panel.get("rows")
    rows = [row for row in listed[:64] if panel.part(row, "strategy") == "bigram"] if isinstance(listed, list) else []
    told = ((panel.part(row, "rank"), panel.share(panel.part(row, "p"))) for row in rows)
    return {rank: p for rank, p in told if type(rank) is int and p is not None}


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
    known: dict[int, set[int]] = story.sums.setdefault("inspired", {})
    if k not in known:
        known[k] = _inspired(story, k)
    return known[k]


def _inspired(story: Story, k: int) -> set[int]:
    step = story.steps[k]
    if story.header.method != "ouroboros":
        return set()
    entries: dict[int, list[int]] = {}
    for node, source in enumerate(step.sources):
        kind, numbers = panel.detail(source)
        if kind == "pool" and len(numbers) == 2:
            entries.setdefault(numbers[0], []).append(node)
    if not entries:
        return set()
    trunk = next(iter(entries.values()))[0]
    key = step.tokens[step.parents[trunk]]
    suffixes = panel.ngrams(panel.part(step.panel, "suffixes"))
    chosen = [i for i, phrase in enumerate(suffixes) if learned(story, k, (key, *phrase)) is not None]
    return {node for entry in chosen for node in entries.get(entry, ())}


def learned(story: Story, k: int, phrase: tuple[int, ...]) -> int | None:
    """The last step before k whose verification had inspired or refined a phrase, given behind its key."""
    known: _Learned = story.sums.setdefault("learned", _Learned())
    for step in story.steps[known.read :]:
        for made in _learned(step):
            known.steps.setdefault(made, []).append(step.index)
        known.read += 1
    steps = known.steps.get(phrase, [])
    before = bisect_left(steps, k)
    return steps[before - 1] if before and steps[before - 1] >= k - BACK else None


@dataclass(slots=True)
class _Learned:
    """The steps in which a phrase was learned, as far as the steps were read."""

    read: int = 0
    steps: dict[tuple[int, ...], list[int]] = field(default_factory=dict)


def _learned(step: Step) -> list[tuple[int, ...]]:
    """The phrases that are new by what the target said; one that it left as it was is not."""
    found = [(event.key, *event.ngram) for event in panel.events(step.panel.get("inspired")) if event.new]
    before, refined = panel.ngrams(step.panel.get("suffixes")), panel.ngrams(step.panel.get("refined"))
    drafted = [node for node, source in enumerate(step.sources) if panel.detail(source)[0] == "draft"]
    held = set(map(tuple, before))
    changed = [new for new in refined if tuple(new) not in held]
    return found + [(step.tokens[drafted[-1]], *phrase) for phrase in changed if drafted]
