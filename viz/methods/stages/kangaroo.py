"""Kangaroo on the stage: the target's layers from top to bottom, with the early exit between them.

The first layers and an adapter read the root and write the first guess, read that and write the next one, and so on,
for as long as they are sure. What the first layers have made of the tokens is kept: the other layers go on from there,
with all tokens in one pass, to the full exit. A token stays in the column of its position in the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.kangaroo import KangarooParams
from decoding.methods.panels import KangarooPanel
from decoding.types import Header, Role, Step

from ...boards import confidence
from ...cells import StepPhase
from ...fates import node_fates
from ...palette import Fate
from ...panels import panel_reader
from ...params import params_reader
from ...run_state import RunState
from ...stage.parts import GUESSES, Room, StepScene, position_name, text_zone
from ...stage.scene import COLUMNS, Gauge, Scene, StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture

FIRST, READ, LIMIT, OTHERS, PASSED = "first", "read", "limit", "others", "passed"
_FEWEST, _DEEPEST = 3, 6  # guesses that there is room for
_LAYERS = 1.4  # rows of the zones of layers
_INSIDE = 0.2  # rows from the edge of a frame of layers to the tokens in it
_GAUGE, _HIGH = 1.0, 1.2  # the row where gauges begin, and their rows
_FOOT, _MORE = 0.85, 0.45  # rows for the numbers below them, and for how many guesses there was no room
_MIDDLE = 0.46  # of a cell, in columns
_GAP = 0.25  # columns between a zone's layers and the tokens in them

_UNTIL: dict[bool, StepPhase | None] = {True: None, False: "commit"}  # whether a node was accepted
# Why a draft ended, by the word in the panel; the numbers say it where it was "unsure".
_STOPPED = {
    "start": "No draft: the prompt has to be read first",
    "gamma": "Stopped: γ tokens are drafted",
    "budget": "Stopped: only one more token is needed",
    "end": "Stopped at an end of text",
    "interrupted": "Stopped: the run was interrupted",
}

params_of = params_reader(KangarooParams)
panel_of = panel_reader(KangarooPanel)


def confidence_of(step: Step) -> Sequence[float]:
    """Return the early exit's confidence in each token that it wrote."""
    return confidence.shares(panel_of(step).get("confidence", []))


def _room(header: Header) -> Room:
    return Room(min(max(params_of(header).gamma, _FEWEST), _DEEPEST), 3)


def _left(room: Room) -> float:
    """Return columns beside the tokens."""
    return COLUMNS - room.depth - 2 - _GAP


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    room = _room(run.header)
    left, right = _left(room), room.depth + 2
    high = _GAUGE + _HIGH + _FOOT + _MORE * (params_of(run.header).gamma > room.depth)
    return stage(
        [[text_zone()]],
        [[Zone(FIRST, "First layers: one token after another", left, _LAYERS)], [Zone(READ, "", right, _LAYERS)]],
        [[Zone(LIMIT, "Early exit: guesses and confidence", left, 1)], [room.zone("")._replace(rows=high)]],
        [
            [Zone(OTHERS, "Other layers: all tokens in one pass", left, _LAYERS)],
            [Zone(PASSED, "Full exit: right or wrong", right, _LAYERS, fed=True)],
        ],
    )


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    step, room = run.steps[k], _room(run.header)
    scene = StepScene.begin(base(run), run, k, room)
    chain = [node for node, role in enumerate(step.roles) if role is not Role.EXPLORE]
    scene.draw_text(source=_passed(step, step.path[-1]) if step.path else "")
    names = scene.draw_guesses(lambda node: _read(step, step.parents[node]), one_by_one=True)
    _draw_layers(scene, step, room, chain[: room.depth + 1], names)
    _draw_confidence(scene, run.header, step, room)
    return scene.patch()


def _read(step: Step, node: int) -> str:
    """Name a node in the first layers."""
    return f"r{step.index}.{node}"


def _passed(step: Step, node: int) -> str:
    """Name a node in the other layers."""
    return f"d{step.index}.{node}"


# The layers


def _draw_layers(scene: Scene, step: Step, room: Room, chain: Sequence[int], names: dict[int, str]) -> None:
    """Draw the first layers with what they have read, and the others, to which all of that goes."""
    exit_layer, drafted, fates = panel_of(step).get("exit_layer", 0), len(step.tokens) > 1, node_fates(step)
    first, wide = _numbered(exit_layer), room.depth + 2
    scene.frame(ZoneCell(FIRST, 0, 0), _left(room), _LAYERS, f"{first}, with the adapter", loud=True)
    scene.frame(ZoneCell(READ, 0, 0), wide, _LAYERS)
    others = f"layers {exit_layer + 1} to the last" if exit_layer else "the other layers"
    scene.frame(ZoneCell(OTHERS, 0, 0), _left(room), _LAYERS, others, loud=True)
    scene.frame(ZoneCell(PASSED, 0, 0), wide, _LAYERS)
    kept = f"kept: {first} already ran" if drafted else ""
    scene.word(kept, ZoneCell(FIRST, 0.1, 0.5), loud=True, since="verify")
    for x, node in enumerate(chain):
        token, taken = step.tokens[node], node in step.path
        name, origin = names.get(node, position_name(step.start - 1)), _read(step, node)
        read, until = ZoneCell(READ, x, _INSIDE), _UNTIL[taken]
        scene.add(StagePiece(
            origin, token, read, fates[node] if not node else Fate.PROMPT, node, origin=name,
            since="propose" if drafted else "verify", until=until, slot=("propose", until),
            turn=x + 0.5 if x else 0,
        ))  # fmt: skip
        passed = read._replace(zone=PASSED)
        scene.add(StagePiece(
            _passed(step, node), token, passed, fates[node], node, origin=origin,
            since="verify", until=until, slot=("verify", until),
        ))  # fmt: skip
        scene.link(name, origin, "flow", until="verify")
        if node:
            scene.link(_read(step, step.parents[node]), name, "flow", until="verify")


def _numbered(exit_layer: int) -> str:
    """Return the layers before the exit."""
    if not exit_layer:
        return "the first layers"
    return "layer 1" if exit_layer == 1 else f"layers 1 to {exit_layer}"


# The early exit's confidence


def _draw_confidence(scene: Scene, header: Header, step: Step, room: Room) -> None:
    """Draw a gauge below every guess, with the threshold, and say why the draft ended."""
    eta, sure = params_of(header).eta, confidence_of(step)
    for x, share in enumerate(sure[: min(room.depth, step.drafted)]):
        place, low = ZoneCell(GUESSES, x, _GAUGE), share < eta
        scene.frame(place, 1, _HIGH, loud=low, gauge=Gauge(share, eta))
        scene.word(f"{share:.2f}", ZoneCell(GUESSES, x + _MIDDLE, _GAUGE + _HIGH - 0.1), "middle", loud=low)
    if sure and eta:
        scene.word(f"limit {eta:g}", ZoneCell(GUESSES, -0.12, _GAUGE + _HIGH * (1 - eta) - 0.5), "left")
    scene.word(why_stopped(header, step), ZoneCell(LIMIT, 0, 0), loud=True)


def why_stopped(header: Header, step: Step) -> str:
    """Say why the draft ended, if it is recorded."""
    stopped = panel_of(step).get("stopped", "")
    if stopped == "unsure":
        return confidence.unsure(confidence_of(step), params_of(header).eta)
    return _STOPPED.get(stopped, "")


STAGE = StagePicture(base, frame)
