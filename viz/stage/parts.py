"""What most stages have: the end of the text, the target's answers below it, and the guesses that hang off it.

They are in the same columns, so a guess is below the position in the text that it was made for. An accepted guess
and the target's own token go up into the text; from then on they are pieces of the text, by their positions in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from decoding import tree
from decoding.types import Role, Step

from ..fates import emitted_fates, node_fates
from ..palette import Fate
from ..run_state import RunState
from ..wording import count
from .scene import COLUMNS, Scene, Slot, StagePiece, Zone, ZoneCell

TEXT, GUESSES = "text", "guesses"
CACHED: Slot = ("verify", None)  # of what is read in this step, and stays
DEEPEST = 6  # guesses in a row that a stage has room for: on a narrow one the last token of the text is seen too
depths_of = lru_cache(maxsize=32)(tree.depths)


class Room(NamedTuple):
    """How deep the guesses of a stage may go, and how many rows they have."""

    depth: int
    rows: int

    @property
    def root(self) -> int:
        """The column of the text's last token: after it is room for the guesses and the target's own token."""
        return COLUMNS - self.depth - 2

    def zone(self, title: str = "Guesses") -> Zone:
        """Return the zone of the guesses; the column after the deepest is the one of the target's own token."""
        return Zone(GUESSES, title, self.depth + 1, self.rows, fed=True)


def text_zone() -> Zone:
    """Return the zone of the text."""
    return Zone(TEXT, "Text (underlined: in the cache)", COLUMNS, 2, fed=True)


def position_name(position: int) -> str:
    """Name a piece of the text by its position."""
    return f"t{position}"


def landing(step: Step, room: Room, depth: int) -> ZoneCell:
    """Return where a token is once the step is written; a text that outgrows its line has moved to the left."""
    beyond = max(0, room.root + len(step.emitted) - (COLUMNS - 1))
    return ZoneCell(TEXT, room.root + depth - beyond, 0)


def draw_end(scene: Scene, run: RunState, k: int, room: Room) -> None:
    """Draw the end of the text; its last token is the root."""
    step = run.steps[k]
    last = step.start - 1
    for position in range(max(0, last - room.root), last + 1):
        place = ZoneCell(TEXT, room.root - last + position, 0)
        fate, node = (Fate.ROOT, 0) if position == last else (Fate.PROMPT, -1)
        slot: Slot = ("verify" if position >= last - step.pending else "propose", None)
        scene.add(StagePiece(position_name(position), run.ids[position], place, fate, node, slot=slot))


def draw_text(
    scene: Scene, run: RunState, k: int, room: Room, *, own: str = "", answers: str = "the target's answers"
) -> None:
    """Draw the end of the text, and the target's answers along the accepted path, the last of them its own token.

    `own` names the piece that the target's own token comes out of, where it is not the last one of the text;
    `answers` are the words beside the answers.
    """
    draw_end(scene, run, k, room)
    step = run.steps[k]
    last = step.start - 1
    if landing(step, room, 0) != ZoneCell(TEXT, room.root, 0):
        for position in range(max(0, last - room.root), last + 1):
            scene.move(position_name(position), "commit", landing(step, room, position - last))
    for i, (token, fate) in enumerate(zip(step.emitted, emitted_fates(step), strict=True)):
        place = ZoneCell(TEXT, room.root + 1 + i, 1)
        if i < step.accepted:
            node, name = step.path[i + 1], _answer_name(k, i)
            if place.x < COLUMNS:
                scene.add(StagePiece(name, token, place, Fate.PROMPT, node, since="accept", faint=True))
            continue
        name = position_name(step.start + i)
        scene.add(
            StagePiece(name, token, place, fate, len(step.tokens), since="accept", origin=own or position_name(last))
        )
        scene.land(name, landing(step, room, 1 + i))
    scene.word(answers, ZoneCell(TEXT, room.root + 0.9, 1), "left", since="accept")


def _answer_name(k: int, place: int) -> str:
    """Name the target's answer along the accepted path."""
    return f"a{k}.{place}"


def node_name(step: Step, node: int, depths: Sequence[int]) -> str:
    """Name the piece of a guess: an accepted one is on its way into the text."""
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
    one_by_one: bool = False,
) -> dict[int, str]:
    """Return the guesses of a step as a tree, from left to right; returns the names of the pieces by their nodes.

    `origin` names the piece that a guess comes out of. Of too many rows the accepted one and the first are seen;
    `shown` are the nodes to choose from, where not all are to be seen. Guesses that were made on each other come
    `one_by_one`.
    """
    step = run.steps[k]
    depths = depths_of(step.parents)
    guesses = [node for node, role in enumerate(step.roles) if role is Role.VERIFY]
    rows = rows_of(step, room, shown)
    names = {0: position_name(step.start - 1)}
    for node, row in rows.items():
        place, more, words = (
            ZoneCell(GUESSES, depths[node] - 1, row),
            (share or {}).get(node),
            (note or {}).get(node, ""),
        )
        turn = depths[node] * one_by_one
        draw_guess(scene, step, room, names, node, place, origin=origin(node), share=more, note=words, turn=turn)
    land_hidden(scene, k, step, room, names)
    if hidden := len(guesses) - len(rows):
        scene.word(f"and {count(hidden, 'guess', 'guesses')} more", ZoneCell(GUESSES, 0, room.rows - 0.25))
    return names


def draw_guess(
    scene: Scene,
    step: Step,
    room: Room,
    names: dict[int, str],
    node: int,
    place: ZoneCell,
    *,
    linked: bool = True,
    **look: Any,
) -> None:
    """Draw a guess, which moves into the text if it is accepted, and add its piece to `names`."""
    depths, taken = depths_of(step.parents), node in step.path[: len(step.emitted) + 1]
    slot: Slot = ("verify", None if taken else "commit")
    name, fate = node_name(step, node, depths), node_fates(step)[node]
    names[node] = scene.add(StagePiece(name, step.tokens[node], place, fate, node, slot=slot, **look))
    if taken:
        scene.land(names[node], landing(step, room, depths[node]))
    if linked and (above := names.get(step.parents[node])):
        gone = step.parents[node] == 0 and landing(step, room, 0) != ZoneCell(TEXT, room.root, 0)
        scene.link(above, names[node], "tree", until="commit" if gone else None)


def land_hidden(scene: Scene, k: int, step: Step, room: Room, names: Mapping[int, str]) -> None:
    """Draw accepted guesses that there was no room for in the text."""
    for i, node in enumerate(step.path[1 : len(step.emitted) + 1]):
        name, place, answer = position_name(step.start + i), landing(step, room, 1 + i), _answer_name(k, i)
        if node not in names and place.x >= 0:
            scene.add(
                StagePiece(
                    name, step.tokens[node], place, Fate.ACCEPTED, node, since="commit", origin=answer, slot=CACHED
                )
            )


def draw_answers(scene: Scene, step: Step, room: Room, nodes: Sequence[int]) -> None:
    """Draw the target's choices after guesses that it did not accept: it has read them all, each on what is before."""
    for node in nodes if step.choices else ():
        place = ZoneCell(TEXT, room.root + 1 + depths_of(step.parents)[node], 1)
        if place.x < COLUMNS:
            name = answer_name(step, node)
            scene.add(StagePiece(name, step.choices[node], place, Fate.PROMPT, since="accept", faint=True))


def answer_name(step: Step, node: int) -> str:
    """Name the target's choice after a guess."""
    return f"b{step.index}.{node}"


def draw_no_guess(scene: Scene, run: RunState, step: Step, why: str = "") -> None:
    """Say that there is no guess, and why."""
    if run.wants_one(step):
        why = "only one more token is needed"
    scene.word(f"no guess{why and ': '}{why}", ZoneCell(GUESSES, 0, 0))


def rows_of(step: Step, room: Room, shown: Sequence[int] | None = None) -> dict[int, int]:
    """Return the row of every guess that is seen: a first child is in its parent's row, all others begin rows."""
    depths = depths_of(step.parents)
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
    drawn, rows = {0}, dict[int, int]()
    for row, branch in enumerate(seen):
        for node in branch:
            if step.parents[node] in drawn:  # else its parent is in a row that is not seen
                drawn.add(node)
                rows[node] = row
    return rows
