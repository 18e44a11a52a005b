"""What most stages share: the end of the text, the target's answers below it, and the tree of guesses.

They have the same columns, so a guess is below its position in the text. An accepted guess and the target's own token
move up into the text; from then on they are pieces of the text, named by their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from decoding import tree
from decoding.types import Role, Step

from ..fates import emitted_fates, node_fates, target_choices
from ..palette import Fate
from ..run_state import RunState
from ..view import Figure
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


def node_name(step: Step, node: int, depths: Sequence[int]) -> str:
    """Name the piece of a guess: an accepted one is on its way into the text."""
    if node == 0 or node in step.path:
        return position_name(step.start - 1 + depths[node])
    return f"g{step.index}.{node}"


def answer_name(step: Step, node: int) -> str:
    """Name the target's choice after a guess."""
    return f"b{step.index}.{node}"


def _answer_name(k: int, place: int) -> str:
    """Name the target's answer along the accepted path."""
    return f"a{k}.{place}"


@dataclass(slots=True)
class StepScene(Scene):
    """The scene of one step of a run."""

    run: RunState = field(kw_only=True)
    step: Step = field(kw_only=True)
    room: Room = field(kw_only=True)
    names: dict[int, str] = field(init=False)  # of the root and the guesses that are drawn

    @classmethod
    def begin(cls, base: Figure, run: RunState, k: int, room: Room) -> StepScene:
        """Begin the scene of step k on a stage."""
        return cls([zone["name"] for zone in base["zones"]], run=run, step=run.steps[k], room=room)

    def __post_init__(self) -> None:
        self.names = {0: position_name(self.step.start - 1)}

    def landing(self, depth: int) -> ZoneCell:
        """Return where a token is once the step is written; a text that outgrows its line has moved to the left."""
        beyond = max(0, self.room.root + len(self.step.emitted) - (COLUMNS - 1))
        return ZoneCell(TEXT, self.room.root + depth - beyond, 0)

    def draw_end(self) -> None:
        """Draw the end of the text; its last token is the root."""
        last = self.step.start - 1
        for position in range(max(0, last - self.room.root), last + 1):
            place = ZoneCell(TEXT, self.room.root - last + position, 0)
            fate, node = (Fate.ROOT, 0) if position == last else (Fate.PROMPT, -1)
            slot: Slot = ("verify" if position >= last - self.step.pending else "propose", None)
            self.add(StagePiece(position_name(position), self.run.ids[position], place, fate, node, slot=slot))

    def draw_text(self, *, source: str = "", answers: str = "the target's answers") -> None:
        """Draw the end of the text, and the target's answers along the accepted path, the last of them its own token.

        `source` names the piece that the target's own token comes out of, where it is not the last one of the text;
        `answers` are the words beside the answers.
        """
        self.draw_end()
        step, root, lossless = self.step, self.room.root, self.run.header.lossless
        last = step.start - 1
        if self._moves_text:
            for position in range(max(0, last - root), last + 1):
                self.move(position_name(position), "commit", self.landing(position - last))
        for i, (token, fate) in enumerate(zip(step.emitted, emitted_fates(step), strict=True)):
            place = ZoneCell(TEXT, root + 1 + i, 1)
            if i < step.accepted:
                node, name = step.path[i + 1], _answer_name(step.index, i)
                if not lossless and step.choices:
                    token = step.choices[step.path[i]]  # what was written need not be the target's choice
                if place.x < COLUMNS:
                    self.add(StagePiece(name, token, place, Fate.PROMPT, node, since="accept", faint=True))
                continue
            name, origin = position_name(step.start + i), source or position_name(last)
            self.add(StagePiece(name, token, place, fate, len(step.tokens), since="accept", origin=origin))
            self.land(name, self.landing(1 + i))
        words = answers if lossless or not answers else "the target's likeliest tokens"
        self.word(words, ZoneCell(TEXT, root + 0.9, 1), "left", since="accept")

    @property
    def _moves_text(self) -> bool:
        return self.landing(0) != ZoneCell(TEXT, self.room.root, 0)

    def draw_guesses(
        self,
        origin: Callable[[int], str] = lambda node: "",
        *,
        share: Mapping[int, float] | None = None,
        shown: Sequence[int] | None = None,
        one_by_one: bool = False,
        rest: float = 0.75,
    ) -> dict[int, str]:
        """Draw the guesses as a tree, from left to right; returns the names of the pieces by their nodes.

        `origin` names the piece that a guess comes out of. Of too many rows the accepted one and the first are seen;
        `shown` are the nodes to choose from, where not all are to be seen. Guesses that were made on each other come
        `one_by_one`. Words on guesses without a row are `rest` rows below the last one.
        """
        depths, rows = depths_of(self.step.parents), rows_of(self.step, self.room, shown)
        for node, row in rows.items():
            place, turn = ZoneCell(GUESSES, depths[node] - 1, row), depths[node] * one_by_one
            self.draw_guess(node, place, origin=origin(node), share=(share or {}).get(node), turn=turn)
        self.draw_hidden()
        guesses = sum(role is Role.VERIFY for role in self.step.roles)
        if hidden := guesses - len(rows):
            place = ZoneCell(GUESSES, 0, max(rows.values(), default=0) + rest)
            self.word(f"and {count(hidden, 'guess', 'guesses')} more", place)
        return self.names

    def draw_guess(self, node: int, place: ZoneCell, *, linked: bool = True, **look: Any) -> None:
        """Draw a guess, which moves into the text if it is accepted."""
        step, depths = self.step, depths_of(self.step.parents)
        taken = node in step.path[: len(step.emitted) + 1]
        slot: Slot = ("verify", None if taken else "commit")
        piece = StagePiece(node_name(step, node, depths), step.tokens[node], place, node_fates(step)[node], node)
        self.names[node] = self.add(replace(piece, slot=slot, answer=self.answer(node), **look))
        if taken:
            self.land(self.names[node], self.landing(depths[node]))
        if linked and (above := self.names.get(step.parents[node])):
            gone = step.parents[node] == 0 and self._moves_text
            self.link(above, self.names[node], "tree", until="commit" if gone else None)

    def answer(self, node: int) -> int:
        """Return the target's token for the position of a guess: its likeliest one where tokens are drawn."""
        step = self.step
        sampled = self.run.header.sampling.get("temperature")
        choices = step.choices if sampled else target_choices(step)
        return choices[step.parents[node]] if choices else -1

    def draw_hidden(self) -> None:
        """Draw, in the text, accepted guesses that had no room in the tree."""
        for i, node in enumerate(self.step.path[1 : len(self.step.emitted) + 1]):
            place, origin = self.landing(1 + i), _answer_name(self.step.index, i)
            if node not in self.names and place.x >= 0:
                piece = StagePiece(
                    position_name(self.step.start + i), self.step.tokens[node], place, Fate.ACCEPTED, node
                )
                self.add(replace(piece, since="commit", origin=origin, slot=CACHED))

    def draw_answers(self, nodes: Sequence[int]) -> None:
        """Draw the target's choices after guesses that it did not accept: it has read them all."""
        for node in nodes if self.step.choices else ():
            place = ZoneCell(TEXT, self.room.root + 1 + depths_of(self.step.parents)[node], 1)
            if place.x < COLUMNS:
                name, token = answer_name(self.step, node), self.step.choices[node]
                self.add(StagePiece(name, token, place, Fate.PROMPT, since="accept", faint=True))

    def draw_no_guess(self, why: str = "") -> None:
        """Write that there is no guess, and why."""
        if self.run.wants_one(self.step):
            why = "only one more token is needed"
        self.word(f"no guess{why and ': '}{why}", ZoneCell(GUESSES, 0, 0))


def guesses_with_rows(step: Step, guesses: Iterable[int], room: Room) -> list[int]:
    """Return the guesses that have rows; earlier ones are preferred."""
    ends, chosen = {0}, {0}
    for node in guesses:
        above = step.parents[node]
        if above in chosen and (above in ends or len(ends) < room.rows):
            ends = (ends - {above}) | {node}
            chosen.add(node)
    return sorted(chosen - {0})


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
