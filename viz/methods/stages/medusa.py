"""Medusa on the stage: from one hidden state every head lists words for a place of its own; the tree combines them.

On the left is the hidden state after the token before the root. The target's own head has made the root of
it; every other head is a box with its likeliest words, the best on the left, as far as the tree has a use for them.
On the right every guess comes out of the word that it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from decoding.errors import ParamError
from decoding.methods.medusa import MedusaParams
from decoding.methods.panels import MedusaPanel
from decoding.types import Header, Role, Step

from ...fates import node_fates
from ...palette import Fate
from ...panels import panel_reader
from ...params import params_reader
from ...run_state import RunState
from ...sources import parse
from ...stage.parts import Room, StepScene, depths_of, guesses_with_rows, position_name, text_zone
from ...stage.scene import COLUMNS, NARROW, Scene, StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count

HEADS = "heads"
_HEADS = 4  # boxes of heads, and guesses in a row
_RANKS = 5  # words in a box
_ROWS = 7  # of guesses
_GAP = 0.25  # columns between the boxes and the tree
_LEFT, _WORDS = 1.7, 1.8  # columns where the boxes begin, and where the words in them do
_INSET = 0.12  # rows around the hidden state
_BOX, _IN_BOX = 1.7, 0.66  # rows from box to box, and from a box's edge to the words in it
_FOOT = 0.7  # rows for words below the boxes


class _Word(NamedTuple):
    """A word that a head lists: by its head, counted from 1, and its rank there, counted from 0."""

    head: int
    rank: int


params_of = params_reader(MedusaParams)
panel_of = panel_reader(MedusaPanel)


def _room(header: Header) -> Room:
    params = params_of(header)
    try:
        deepest = _HEADS if params.tree == "sparse" else max(params.written.depths, default=1)
    except ParamError:  # a record from elsewhere
        deepest = _HEADS
    heads = min(params.heads or _HEADS, _HEADS)
    return Room(max(1, min(deepest, heads)), _ROWS)


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    room = _room(run.header)
    title = "Heads: the likeliest words of each, best first"
    heads = Zone(HEADS, title, _columns(room), _foot(room) + (_FOOT if room.depth < _HEADS else 0))
    return stage([[text_zone()]], [[heads], [room.zone("Tree of the heads' words")._replace(rows=room.rows + _FOOT)]])


def _foot(room: Room) -> float:
    """Return the row after the boxes."""
    return _BOX * (room.depth + 1)


def _columns(room: Room) -> float:
    return min(COLUMNS - room.depth - 1, NARROW) - _GAP


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    step, room = run.steps[k], _room(run.header)
    scene = StepScene.begin(base(run), run, k, room)
    scene.draw_text()
    words = _words(step)
    shown = _shown_words(step, words, room)
    _draw_hidden(scene, run, step, room)
    _draw_heads(scene, words, shown)
    guesses = _shown_guesses(step, words, shown, room)
    scene.draw_guesses(lambda node: _name(step, words[node]), shown=guesses)
    if not words:
        scene.draw_no_guess("" if step.index else "no hidden state yet")
    return scene.patch()


# The hidden state and what the target's own head made of it


def _draw_hidden(scene: Scene, run: RunState, step: Step, room: Room) -> None:
    """Draw the token whose hidden state the heads read, and the root, which the target's own head made of it."""
    top = _foot(room) / 2 - 1
    at = ZoneCell(HEADS, 0.25, top + _INSET)
    scene.frame(ZoneCell(HEADS, 0, top), _LEFT - 0.1, 1 + 2 * _INSET, loud=True)
    for y, words in enumerate(("hidden state", "of this word")):
        scene.word(words, ZoneCell(HEADS, 0, top + 1.15 + 0.55 * y))
    root_cell = ZoneCell(HEADS, _WORDS, _IN_BOX)
    last = step.start - 1
    if step.index and last:
        origin = position_name(last - 1)
        hidden = scene.add(StagePiece(f"h{last - 1}", run.ids[last - 1], at, Fate.PROMPT, origin=origin))
        scene.add(StagePiece(f"l{last}", run.ids[last], root_cell, Fate.ROOT, 0, origin=hidden))
        scene.word("already in the text", root_cell._replace(x=_WORDS + 1.05))


# The heads


def _words(step: Step) -> dict[int, _Word]:
    """Return the head's word that every guess is, by its node."""
    words: dict[int, _Word] = {}
    for node, role in enumerate(step.roles):
        kind, numbers = parse(step.sources[node])
        if role is Role.VERIFY and kind == "medusa" and len(numbers) == 2 and numbers[0]:
            words[node] = _Word(*numbers)
    return words


def _shown_words(step: Step, words: Mapping[int, _Word], room: Room) -> dict[_Word, int]:
    """Return the words that are shown, each with its node: if there are too many, the best and the accepted one."""
    most = min(_RANKS, math.floor(_columns(room) - _WORDS))
    taken = {words[node] for node in step.path if node in words}
    nodes: dict[_Word, int] = {}
    for node, word in words.items():
        if word not in nodes or node in step.path:
            nodes[word] = node
    shown: dict[_Word, int] = {}
    for head in range(1, room.depth + 1):
        listed = sorted(word for word in nodes if word.head == head)
        best = sorted(listed, key=lambda word: (word not in taken, word.rank))[:most]
        shown |= {word: nodes[word] for word in sorted(best)}
    return shown


def _draw_heads(scene: StepScene, words: Mapping[int, _Word], shown: Mapping[_Word, int]) -> None:
    """Draw a box for the target's own head, and one for every other, with its words."""
    room = scene.room
    wide, panel = _columns(room) - _LEFT, panel_of(scene.step)
    scene.frame(ZoneCell(HEADS, _LEFT, 0), wide, _BOX, "the target's own head: the next word")
    used = {word: len({each for each in words.values() if each.head == word}) for word in range(1, room.depth + 1)}
    for head, listed in used.items():
        place = ZoneCell(HEADS, _LEFT, _BOX * head)
        seen = [word for word in shown if word.head == head]
        title = f"head {head}: the {_ordinal(head + 1)} next word"
        more = f", {len(seen)} of its {listed} in the tree" if len(seen) < listed else ""
        if words and not listed:
            more = ", not in the tree"
        in_tree = {word.rank for word in words.values() if word.head == head}
        verdict = _verdict(panel.get("hits", []), head, in_tree, lossless=scene.run.header.lossless)
        scene.frame(place, wide, _BOX, title + more, until="accept" if verdict else None)
        if verdict:
            loud = not verdict.startswith(_NONE)
            scene.frame(place, wide, _BOX, f"head {head}: {verdict}", loud=loud, since="accept")
        for x, word in enumerate(seen):
            note = _ordinal(word.rank + 1) if word.rank != x else ""
            place = ZoneCell(HEADS, _WORDS + x, _BOX * head + _IN_BOX)
            _draw_word(scene, word, shown[word], place, note)
    if (beyond := panel.get("heads", 0) - room.depth) > 0:
        below = ZoneCell(HEADS, _LEFT, _foot(room)) if room.depth < _HEADS else ZoneCell(HEADS, 0, _foot(room) - 1)
        scene.word(f"and {count(beyond, 'more head')}", below)


_NONE = "none was "


def _verdict(hits: Sequence[int | None], head: int, in_tree: Iterable[int], *, lossless: bool) -> str:
    """Say which of a head's words was written, if the step reached its position."""
    if head > len(hits):
        return ""
    rank, became = hits[head - 1], "right" if lossless else "written"
    if rank is None:
        return _NONE + became
    return f"its {_ordinal(rank + 1)} was {became}" + ("" if rank in in_tree else ", but is not in the tree")


def _draw_word(scene: StepScene, word: _Word, node: int, place: ZoneCell, note: str) -> None:
    step = scene.step
    token, fate = step.tokens[node], Fate.PROPOSED
    if word.head <= len(step.emitted):
        right = token == step.emitted[word.head - 1]
        fate = (Fate.ACCEPTED if node in step.path else Fate.MATCHED) if right else Fate.REJECTED
        if not scene.run.header.lossless:
            fate = node_fates(step)[node]
    hidden = f"h{step.start - 2}"
    scene.add(StagePiece(_name(step, word), token, place, fate, node, origin=hidden, note=note))


def _name(step: Step, word: _Word) -> str:
    return f"w{step.index}.{word.head}.{word.rank}"


def _ordinal(number: int) -> str:
    """Write a rank in words."""
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number}{('th', 'st', 'nd', 'rd')[last] if last < 4 else 'th'}"


# The tree


def _shown_guesses(step: Step, words: Mapping[int, _Word], shown: Mapping[_Word, int], room: Room) -> Sequence[int]:
    """Return the guesses that have rows: the accepted ones, then those of the heads' best words."""
    depths, taken = depths_of(step.parents), set(step.path)
    ranks = {0: 0}
    for node, word in words.items():
        if (above := step.parents[node]) in ranks and word in shown:
            ranks[node] = ranks[above] + word.rank
    best = sorted(ranks, key=lambda node: (node not in taken, ranks[node], depths[node], node))
    return guesses_with_rows(step, best, room)


STAGE = StagePicture(base, frame)
