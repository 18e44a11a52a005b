"""A draft model on the stage: two lanes, in the columns of the text.

In the lower lane the drafter writes one token after another. In the upper lane are the target's answers, all from one
pass. At the first difference the two tokens are a pair; the drafted tokens from there on are discarded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from decoding.methods.draft_model import DraftModelParams
from decoding.methods.panels import DraftModelPanel
from decoding.types import Header, Step

from ...boards import confidence
from ...boards.nodes import NodeIndex
from ...cells import StepPhase
from ...panels import read_panel
from ...params import params_reader
from ...run_state import RunState
from ...stage.parts import DEEPEST, GUESSES, TEXT, Room, StepScene, depths_of, position_name, text_zone
from ...stage.scene import Scene, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count, odds, quote, share

_MIDDLE = 0.46  # of a cell, in columns
_LABEL = -0.15  # where labels beside the lane end
_NUMBERS = (0.92, 1.5, 2.1, 2.7)  # rows of q, p, the chance and u below the drafted tokens
_ROWS = 5

params_of = params_reader(DraftModelParams)


def _sampled(header: Header) -> bool:
    return bool(header.sampling.get("temperature"))


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
    chain = _chain(step)
    sure = _sure(run.header, step, chain)
    before = {node: step.parents[node] for node in chain[1:]}
    names = {node: f"g{k}.{node}" for node in chain}
    names |= {node: position_name(step.start - 1 + i) for i, node in enumerate(step.path)}
    scene.draw_text(answers="")
    drawn = scene.draw_guesses(lambda node: names.get(before.get(node, -1), ""), share=sure)
    scene.draw_answers(chain[step.accepted :])
    if not chain:
        scene.draw_no_guess()
        return scene.patch()
    _draw_lanes(scene, room)
    shown = [node for node in chain if node in drawn]
    _draw_numbers(scene, run, step, shown, sure)
    _draw_verdict(scene, run, step, chain, drawn)
    if thrown := len(chain) - step.accepted:
        words = f"{count(thrown, 'drafted token')} discarded"
        scene.word(words, ZoneCell(GUESSES, 0, _verdict_row(run.header) + 0.95), since="commit")
    return scene.patch()


def _chain(step: Step) -> list[int]:
    """Return the drafted nodes in their order."""
    below, chain = NodeIndex(step).below, list[int]()
    while children := below.get(chain[-1] if chain else 0):
        chain.append(children[0])
    return chain


def confidence_of(step: Step) -> Sequence[float]:
    """Return the drafter's confidence in each token that it wrote."""
    return confidence.shares(read_panel(DraftModelPanel, step.panel).get("confidence", []))


def _sure(header: Header, step: Step, chain: Sequence[int]) -> dict[int, float]:
    """Return the drafter's confidence in its tokens; if it was not recorded, their q."""
    asked = confidence_of(step)
    if asked and not _sampled(header):
        return dict(zip(chain, asked, strict=False))
    return {node: q for node in chain if step.q and (q := step.q[node]) is not None}


def _draw_lanes(scene: Scene, room: Room) -> None:
    """Write the cost of each lane."""
    scene.word("drafter: one pass each", ZoneCell(GUESSES, _LABEL, 0), "left")
    scene.word("target: one pass for all", ZoneCell(TEXT, room.root + 1 + _LABEL, 1), "left", since="verify")


def _draw_numbers(scene: Scene, run: RunState, step: Step, shown: Sequence[int], sure: Mapping[int, float]) -> None:
    """Write the numbers that decide below the drafted tokens."""
    sampled, (first, second, third, fourth) = _sampled(run.header), _NUMBERS
    asked = bool(confidence_of(step)) and not sampled
    if asked and shown:
        scene.word("confidence", ZoneCell(GUESSES, _LABEL, first), "left")
    depths = depths_of(step.parents)
    for node in shown:
        x = depths[node] - 1 + _MIDDLE
        if node in sure:
            scene.word(f"{'q ' * (not asked)}{_short(sure[node])}", ZoneCell(GUESSES, x, first), "middle")
        chance = _chance(step, node)
        if sampled and chance is not None and step.p:
            until: StepPhase | None = None if depths[node] <= step.accepted + 1 else "accept"  # it was not tested
            write = partial(scene.word, side="middle", since="answers", until=until)
            write(f"p {_short(step.p[node] or 0)}", ZoneCell(GUESSES, x, second))
            write(_short(chance), ZoneCell(GUESSES, x, third), loud=True)
        if step.u and (u := step.u[node]) is not None:
            scene.word(f"u {u:.2f}", ZoneCell(GUESSES, x, fourth), "middle", loud=True, since="accept")
    if sampled and any(_chance(step, node) is not None for node in shown):
        scene.word("chance: min(1, p/q)", ZoneCell(GUESSES, _LABEL, third), "left", since="answers")
    if any(u is not None for u in step.u):
        words = "drawn: kept if less"
        scene.word(words, ZoneCell(GUESSES, _LABEL, fourth), "left", since="accept")


def _short(p: float) -> str:
    """Return a probability in the width of a cell."""
    return f"{p:.2f}" if p >= 0.005 else "<0.01"


def _chance(step: Step, node: int) -> float | None:
    """Return the chance that a sampled token was accepted, if it is recorded."""
    p, q = step.p[node] if step.p else None, step.q[node] if step.q else None
    return min(1.0, p / q) if p is not None and q else None


def _verdict_row(header: Header) -> float:
    return _NUMBERS[3] + 0.7 if _sampled(header) else _NUMBERS[1] + 0.2


def _draw_verdict(scene: Scene, run: RunState, step: Step, chain: Sequence[int], drawn: Mapping[int, str]) -> None:
    """Write why the drafter stopped, and where the target chose another token."""
    y = _verdict_row(run.header)
    asked = confidence_of(step)
    bound = params_of(run.header).threshold
    if asked and asked[-1] < bound:
        scene.word(
            f"stopped: {share(asked[-1])} is under the limit {bound:g}",
            ZoneCell(GUESSES, 0, y),
            loud=True,
            until="accept",
        )
    if step.accepted == len(step.emitted):
        return
    chosen = step.emitted[step.accepted]
    if step.accepted >= len(chain):
        words = "the target agrees" + (", and adds a token" if len(chain) > 1 else "")
        scene.word(words, ZoneCell(GUESSES, 0, y), since="accept")
        return
    wrong = chain[step.accepted]
    if wrong in drawn:
        scene.link(position_name(step.start + step.accepted), drawn[wrong], "against", since="accept")
    scene.word(
        f"{'drew ' * _sampled(run.header)}{quote(run, [chosen])}, not {quote(run, [step.tokens[wrong]])}"
        f"{_odds(run, step, chosen, wrong)}",
        ZoneCell(GUESSES, 0, y),
        loud=True,
        since="accept",
    )


def _odds(run: RunState, step: Step, chosen: int, wrong: int) -> str:
    """Return the probabilities that decided, of a greedy run."""
    p, top = step.p[wrong] if step.p else None, step.top[step.path[-1]] if step.top else ()
    if _sampled(run.header) or p is None or chosen not in dict(top):
        return ""
    return f": {odds(dict(top)[chosen], p)}"


STAGE = StagePicture(base, frame)
