"""Jacobi on the stage: passes one below another, each shifted by the settled tokens, so that they form stairs.

A cell is below its position in the text. The lowest row is the block that the target reads; its answers come in below,
and are the next block: an answer keeps its name when it is guessed, and when it lies some passes back.
"""

from __future__ import annotations

from decoding.methods.jacobi import JacobiParams
from decoding.methods.panels import JacobiPanel
from decoding.types import Header, Role, Step

from ...boards.nodes import root
from ...cells import StepPhase
from ...fates import emitted_fates, node_fates
from ...palette import Fate
from ...panels import read_panel
from ...params import read_params
from ...run_state import RunState
from ...stage.parts import CACHED, TEXT, Room, StepScene, position_name, text_zone
from ...stage.scene import COLUMNS, Scene, Slot, StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count

BLOCK = "block"
_DEEPEST = 6  # guesses of a block that are seen
_PAST = 5  # earlier passes that are seen
_NOW, _ANSWERS, _FOOT = _PAST, _PAST + 1, _PAST + 2  # rows of the zone
_LABEL = 1.8  # columns that the name of a row needs


def block_size(header: Header) -> int:
    """Return how many guesses a block has."""
    return read_params(JacobiParams, header).n


def guesses_of(step: Step, n: int) -> list[int]:
    """Return the nodes of a step's block."""
    return [node for node in range(1, min(len(step.tokens), n + 1)) if step.roles[node] is not Role.ROOT]


def answers_of(step: Step) -> list[int]:
    """Return the target's answers after the root and after every guess."""
    return read_panel(JacobiPanel, step.panel).get("answers", [])


def _room(run: RunState) -> Room:
    return Room(min(block_size(run.header), _DEEPEST), 1)


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    title = "Block, read again in every pass (grey: settled)"
    zone = Zone(BLOCK, title, COLUMNS, _FOOT + 0.7, fed=True)
    return stage([[text_zone()._replace(rows=1)]], [[zone]], draws=[Fate.EARLY])


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    room = _room(run)
    scene = StepScene.begin(base(run), run, k, room)
    scene.draw_end()
    for before in run.steps[max(0, k - _PAST) : k]:
        _draw_past(scene, run, before, run.steps[k], room)
    _draw_block(scene, run, k, room)
    _draw_answers(scene, run, k, room)
    return scene.patch()


def _name(pass_: int, position: int) -> str:
    """Name the piece of a guess by its pass and its position in the text."""
    return f"b{pass_}.{position}"


def _draw_past(scene: Scene, run: RunState, before: Step, step: Step, room: Room) -> None:
    """Draw an earlier pass."""
    y = _NOW - (step.index - before.index)
    moved = room.root + 1 - step.start  # from a position in the text to its column
    _draw_settled(scene, before.start + moved, y, count(step.index - before.index, "pass", "passes") + " ago")
    fates = node_fates(before)
    for node in guesses_of(before, block_size(run.header)):
        place = ZoneCell(BLOCK, before.start + node - 1 + moved, y)
        if 0 <= place.x <= room.root + room.depth:
            # What was wrong is not crossed out for ever: what is to be seen is the stairs of what was right.
            position, token = before.start + node - 1, before.tokens[node]
            early = Fate.EARLY if token in run.ids[position : position + 1] and position < step.start else Fate.PROMPT
            fate = Fate.ACCEPTED if fates[node] is Fate.ACCEPTED else early
            scene.add(StagePiece(_name(before.index, position), token, place, fate, judged=True))


def _draw_settled(scene: Scene, end: int, y: int, words: str, since: StepPhase = "propose") -> None:
    """Draw what was settled before a pass, up to a column, and which pass that is."""
    if end > 0:
        scene.frame(ZoneCell(BLOCK, 0, y), min(end, COLUMNS), 1, since=since)
    if end > _LABEL:
        scene.word(words, ZoneCell(BLOCK, 0.12, y), since=since)


def _draw_block(scene: Scene, run: RunState, k: int, room: Room) -> None:
    """Draw what the target reads in this pass."""
    step = run.steps[k]
    fates, guesses = node_fates(step), guesses_of(step, block_size(run.header))
    _draw_settled(scene, room.root, _NOW, "this pass")
    last = ZoneCell(BLOCK, room.root, _NOW)
    scene.add(StagePiece(f"r{k}", root(step), last, Fate.ROOT, 0, origin=position_name(step.start - 1)))
    for node in guesses[: room.depth]:
        name, place = _name(k, step.start + node - 1), last._replace(x=room.root + node)
        held: Slot = ("verify", None if node in step.path else "commit")
        scene.add(StagePiece(name, step.tokens[node], place, fates[node], node, slot=held))
    if hidden := len(guesses[room.depth :]):
        scene.word(f"and {hidden} more", last._replace(x=last.x + room.depth + 1.05))


def _draw_answers(scene: Scene, run: RunState, k: int, room: Room) -> None:
    """Draw the target's answers after the root and after every guess; settled answers move up into the text."""
    step, guesses = run.steps[k], guesses_of(run.steps[k], block_size(run.header))
    answers, first = answers_of(step), ZoneCell(BLOCK, room.root + 1, _ANSWERS)
    read = [f"r{k}", *(_name(k, step.start + node - 1) for node in guesses)]
    for i, (answer, behind) in enumerate(zip(answers[: room.depth + 1], read, strict=False)):
        until: StepPhase | None = "accept" if i < len(step.emitted) else None  # then it is a piece of the text
        name, place = _name(k + 1, step.start + i), first._replace(x=first.x + i)
        scene.add(StagePiece(name, answer, place, Fate.PROPOSED, since="answers", until=until, origin=behind))
        scene.link(behind, name, "diagonal", since="answers", until="accept")
    for i, (token, fate) in enumerate(zip(step.emitted, emitted_fates(step), strict=True)):
        node, slot = (step.path[i + 1], CACHED) if i < step.accepted else (len(step.tokens), None)
        name, place = position_name(step.start + i), first._replace(x=first.x + i)
        likeliest = answers[i : i + 1] == [token]  # else another one was sampled
        origin = _name(k + 1, step.start + i) if likeliest else ""
        scene.add(StagePiece(name, token, place, fate, node, since="accept", origin=origin, slot=slot))
        scene.move(name, "commit", ZoneCell(TEXT, place.x, 0))
    scene.word("its answers", ZoneCell(BLOCK, 0.12, _ANSWERS), since="answers", until="commit")
    _draw_settled(scene, room.root + 1 + len(step.emitted), _ANSWERS, "next block", since="commit")
    settled = f"{min(step.accepted, len(guesses))} of {count(len(guesses), 'guess', 'guesses')} settled"
    words = f"{settled}: the text grows by {count(len(step.emitted), 'token')}"
    scene.word(words, ZoneCell(BLOCK, COLUMNS - 0.1, _FOOT - 0.1), "left", loud=True, since="accept")


STAGE = StagePicture(base, frame)
