"""Autoregressive decoding on the stage: one token goes through all layers, and one comes out.

Its time is that of the pass. Speculation saves passes, and everything else is measured against this.
"""

from __future__ import annotations

from decoding.types import Header, Step

from ...palette import Fate
from ...run_state import RunState
from ...stage.parts import Room, StepScene, position_name, text_zone
from ...stage.scene import COLUMNS, Scene, StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count

TARGET, TIME = "target", "time"
_ROOM = Room(3, 0)  # nothing is guessed: this is where the token that is read is in the text
_WIDE, _HIGH = 6.0, 2.8  # columns and rows of the target
_INSIDE, _TOKEN = 0.15, 0.35  # the column of the words in it, and the row of the token
_BAR = 7.0  # columns of the whole time


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    time, target = Zone(TIME, "Time of the step", _BAR, 2), Zone(TARGET, "The target", _WIDE, _HIGH, fed=True)
    return stage([[text_zone()]], [[time], [target]])


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    step, scene, name = run.steps[k], StepScene.begin(base(run), run, k, _ROOM), f"r{k}"
    scene.draw_text(source=name, answers="")
    whole = ZoneCell(TARGET, 0, 0)
    scene.frame(whole, _WIDE, _HIGH)
    scene.frame(whole, _WIDE, _HIGH, loud=True, since="verify", until="accept")
    for y, words in enumerate((f"all layers{_weights(run.header)},", f"once for {count(step.fed, 'token')}")):
        scene.word(words, ZoneCell(TARGET, _INSIDE, _TOKEN + 0.85 + 0.6 * y), loud=True)
    last = position_name(step.start - 1)
    place = ZoneCell(TARGET, _ROOM.root - COLUMNS + _WIDE, _TOKEN)
    scene.add(StagePiece(name, run.ids[step.start - 1], place, Fate.ROOT, 0, since="verify", origin=last))
    scene.link(last, name, "flow", until="commit")
    scene.link(name, position_name(step.start), "flow", until="commit")
    if step.pending:
        before = f"and the {count(step.pending, 'token')} before it"
        scene.word(before, place._replace(x=place.x + 1), since="verify")
    _draw_time(scene, step)
    return scene.patch()


def _weights(header: Header) -> str:
    """Say how much a pass reads, if it is recorded."""
    size = header.model.pass_bytes
    if not size:
        return ""
    return f", {size / 1e9:.3g} GB of weights" if size >= 1e9 else f", {size / 1e6:.3g} MB of weights"


def _draw_time(scene: Scene, step: Step) -> None:
    """Draw the step's time, and the share of it that the pass took."""
    timing = step.timing
    if not 0 < timing.forward_ms <= timing.total_ms:
        return
    share = timing.forward_ms / timing.total_ms
    scene.frame(ZoneCell(TIME, 0, 0), _BAR, 1, since="accept")
    words = f"the pass: {timing.forward_ms:.3g} ms of {timing.total_ms:.3g} ms"
    scene.frame(ZoneCell(TIME, 0, 0), _BAR * share, 1, words, loud=True, since="accept")
    scene.word(f"{share:.0%} of the time for one token", ZoneCell(TIME, 0, 1), loud=True, since="accept")


STAGE = StagePicture(base, frame)
