"""A draft model on the stage: two lanes, in the columns of the text.

In the lower lane the drafter writes one token after another. In the upper lane are the target's answers, all from one
pass. At the first difference the two tokens are a pair; the drafted tokens from there on are discarded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from decoding.methods.draft_model import DraftModelParams
from decoding.methods.panels import DraftModelPanel
from decoding.types import Header, Step

from ...boards import confidence
from ...panels import read_panel
from ...params import params_reader
from ...run_state import RunState
from ...stage.drafted_chain import LABEL, chain_of, draw_numbers, draw_verdict, is_sampled, verdict_row
from ...stage.parts import DEEPEST, GUESSES, TEXT, Room, StepScene, position_name, text_zone
from ...stage.scene import Scene, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count, share

_ROWS = 5

params_of = params_reader(DraftModelParams)


def _room(header: Header) -> Room:
    return Room(min(params_of(header).gamma, DEEPEST), _ROWS)


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    room = _room(run.header)
    return stage([[text_zone()]], [[room.zone("Drafter: one by one" if room.depth > 1 else "Drafter")]])


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    step, room = run.steps[k], _room(run.header)
    scene = StepScene.begin(base(run), run, k, room)
    chain = chain_of(step)
    sure = _sure(run.header, step, chain)
    before = {node: step.parents[node] for node in chain[1:]}
    names = {node: f"g{k}.{node}" for node in chain}
    names |= {node: position_name(step.start - 1 + i) for i, node in enumerate(step.path)}
    scene.draw_text(answers="")
    below = verdict_row(run.header) + 0.5
    drawn = scene.draw_guesses(lambda node: names.get(before.get(node, -1), ""), share=sure, rest=below)
    scene.draw_answers(chain[step.accepted :])
    if not chain:
        scene.draw_no_guess()
        return scene.patch()
    _draw_lanes(scene, room)
    shown = [node for node in chain if node in drawn]
    asked = confidence_of(step) and not is_sampled(run.header)
    draw_numbers(scene, run, step, shown, sure, are_q=not asked)
    _draw_verdict(scene, run, step, chain, drawn)
    if thrown := len(chain) - step.accepted:
        words = f"{count(thrown, 'drafted token')} discarded"
        scene.word(words, ZoneCell(GUESSES, 0, verdict_row(run.header) + 0.95), since="commit")
    return scene.patch()


def confidence_of(step: Step) -> Sequence[float]:
    """Return the drafter's confidence in each token that it wrote."""
    return confidence.shares(read_panel(DraftModelPanel, step.panel).get("confidence", []))


def _sure(header: Header, step: Step, chain: Sequence[int]) -> dict[int, float]:
    """Return the drafter's confidence in its tokens; if it was not recorded, their q."""
    asked = confidence_of(step)
    if asked and not is_sampled(header):
        return dict(zip(chain, asked, strict=False))
    return {node: q for node in chain if step.q and (q := step.q[node]) is not None}


def _draw_lanes(scene: Scene, room: Room) -> None:
    """Write the cost of each lane."""
    scene.word("drafter: one pass each", ZoneCell(GUESSES, LABEL, 0), "left")
    scene.word("target: one pass for all", ZoneCell(TEXT, room.root + 1 + LABEL, 1), "left", since="verify")


def _draw_verdict(scene: Scene, run: RunState, step: Step, chain: Sequence[int], drawn: Mapping[int, str]) -> None:
    """Write why the drafter stopped, and where the target chose another token."""
    y = verdict_row(run.header)
    asked = confidence_of(step)
    bound = params_of(run.header).threshold
    if asked and asked[-1] < bound:
        scene.word(
            f"stopped: {share(asked[-1])} is under the limit {bound:g}",
            ZoneCell(GUESSES, 0, y),
            loud=True,
            until="accept",
        )
    draw_verdict(scene, run, step, chain, y, drawn)


STAGE = StagePicture(base, frame)
