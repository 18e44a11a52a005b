"""What most stages have: the end of the text, the target's answers below it, and the guesses that hang off it.

They stand in the same columns, so a guess stands below the place in the text that it was made for. An accepted guess
and the target's own token go up into the text; from then on they are pieces of the text, by their positions in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from decoding import tree
from decoding.types import Role, Step

from ..cells import Phase
from ..fates import emitted_fates, node_fates
from ..palette import Fate
from ..run_state import RunState
from ..wording import count
from .scene import COLUMNS, Place, Scene, Zone

TEXT, GUESSES = "text", "guesses"
Slot = tuple[Phase, Phase | None]
CACHED: Slot = ("verify", None)  # of what is read in this step, and stays
DEEPEST = 8  # guesses in a row that a stage has room for


class Room(NamedTuple):
    """How deep the guesses of a stage may go, and in how many rows they stand."""

    depth: int
    rows: int

    @property
    def root(self) -> int:
        """The column of the text's last token: behind it is room for the guesses and the target's own token."""
        return COLUMNS - self.depth - 2

    def zone(self, title: str = "Guesses") -> Zone:
        """The zone of the guesses; the column behind the deepest is the one of the target's own token."""
        return Zone(GUESSES, title, self.depth + 1, self.rows, fed=True)


def text_zone() -> Zone:
    """The zone of the text."""
    return Zone(TEXT, "Text: what is underlined is in the cache", COLUMNS, 2, fed=True)


def position_name(position: int) -> str:
    """What a piece of the text is called, by its position in it."""
    return f"t{position}"


def draw_end(scene: Scene, run: RunState, k: int, room: Room) -> None:
    """The end of the text; its last token is the root."""
    step = run.steps[k]
    last = step.start - 1
    for position in range(max(0, last - room.root), last + 1):
        place = Place(TEXT, room.root - last + position, 0)
        fate, node = (Fate.ROOT, 0) if position == last else (Fate.PROMPT, -1)
        slot: Slot = ("verify" if position >= last - step.pending else "propose", None)
        scene.piece(position_name(position), run.ids[position], place, fate, node, slot=slot)


def draw_text(scene: Scene, run: RunState, k: int, room: Room) -> None:
    """The end of the text, and the target's answers along the accepted path, the last of them its own token."""
    draw_end(scene, run, k, room)
    step = run.steps[k]
    last = step.start - 1
    for i, (token, fate) in enumerate(zip(step.emitted, emitted_fates(step), strict=True)):
        place = Place(TEXT, room.root + 1 + i, 1)
        name = position_name(step.start + i)
        if i < step.accepted:
            node, answer = step.path[i + 1], f"a{k}.{i}"
            scene.piece(answer, token, place, Fate.PROMPT, node, since="accept", until="commit", faint=True)
            if i >= room.depth:  # no guess so deep is seen, which would go up into the text
                place = place._replace(y=0)
                scene.piece(name, token, place, fate, node, since="commit", origin=answer, slot=CACHED)
            continue
        scene.piece(name, token, place, fate, len(step.tokens), since="accept", origin=position_name(last))
        scene.move(name, "commit", place._replace(y=0))


def node_name(step: Step, node: int, depths: Sequence[int]) -> str:
    """What the piece of a guess is called: an accepted one is on its way into the text."""
    if node == 0 or node in step.path:
        return position_name(step.start - 1 + depths[node])
    return f"g{step.index}.{node}"


def draw_guesses(
    scene: Scene,
    run: RunState,
    k: int,
    room: Room,
    *,
    origin: Callable[[int], str] = lambda node: "",
    share: Mapping[int, float] | None = None,
    note: Mapping[int, str] | None = None,
    shown: Sequence[int] | None = None,
) -> dict[int, str]:
    """The guesses of a step as a tree, from left to right; returns the names of the pieces by their nodes.

    `origin` names the piece that a guess comes out of. Of too many rows the accepted one and the first are seen;
    `shown` are the nodes to choose from, where not all are to be seen.
    """
    step = run.steps[k]
    depths, fates = [depth or 0 for depth in tree.depths(step.parents)], node_fates(step)
    guesses = [node for node, role in enumerate(step.roles) if role is Role.VERIFY]
    rows = rows_of(step, room, shown)
    names = {0: position_name(step.start - 1)}
    for node, row in rows.items():
        name = names[node] = node_name(step, node, depths)
        place, more = Place(GUESSES, depths[node] - 1, row), (share or {}).get(node)
        taken = node in step.path[: len(step.emitted) + 1]
        held: Slot = ("verify", None if taken else "commit")
        scene.piece(
            name,
            step.tokens[node],
            place,
            fates[node],
            node,
            origin=origin(node),
            share=more,
            note=(note or {}).get(node, ""),
            slot=held,
        )
        if taken:
            scene.move(name, "commit", Place(TEXT, room.root + depths[node], 0))
        scene.link(names[step.parents[node]], name, "tree", until="commit" if node in step.path else None)
    if hidden := len(guesses) - len(rows):
        scene.word(f"and {count(hidden, 'guess', 'guesses')} more", Place(GUESSES, 0, room.rows - 0.25))
    return names


def rows_of(step: Step, room: Room, shown: Sequence[int] | None = None) -> dict[int, int]:
    """The row of every guess that is seen: a first child stands behind its parent, every other one begins a row."""
    depths = [depth or 0 for depth in tree.depths(step.parents)]
    guesses = [node for node, role in enumerate(step.roles) if role is Role.VERIFY] if shown is None else shown
    children: dict[int, list[int]] = {}
    wanted = set(guesses)
    for node in guesses:
        if depths[node] <= room.depth:
            children.setdefault(step.parents[node], []).append(node)
    branches = list[list[int]]()

    def follow(node: int) -> None:
        branches[-1].append(node)
        for number, child in enumerate(children.get(node, [])):
            if number:
                branches.append([])
            follow(child)

    for top in children.get(0, []):
        branches.append([])
        follow(top)
    taken = set(step.path) & wanted
    best = sorted(range(len(branches)), key=lambda i: (not taken & set(branches[i]), i))[: room.rows]
    seen = [branches[i] for i in sorted(best)]
    known, rows = {0}, dict[int, int]()
    for row, branch in enumerate(seen):
        for node in branch:
            if step.parents[node] in known:  # else its parent stands in a row that is not seen
                known.add(node)
                rows[node] = row
    return rows
