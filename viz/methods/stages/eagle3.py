"""EAGLE-3 on the stage: three layers of the target feed one drafter, whose guesses are ranked by their products.

On the left is the last word that the target has read, once for every layer that is tapped: its states become one
feature, and the drafter reads it with the word after it, the root. On the right are the likeliest guesses, each with
the product of the probabilities on the way to it. Once the step is written, the target's own features take the place
of the drafter's; how far those had drifted from them is a gauge for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.eagle3 import Eagle3Params
from decoding.methods.panels import Eagle3Panel
from decoding.types import Header, Step

from ...palette import Fate
from ...panels import panel_reader
from ...params import read_params
from ...run_state import RunState
from ...stage.parts import Room, StepScene, depths_of, node_name, position_name, text_zone
from ...stage.scene import COLUMNS, Gauge, Scene, StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from .features import (
    FEATURES,
    draw_products,
    layer_name,
    products_of,
    shown_guesses,
    tapped,
    unsayable_words,
    why_nothing,
)

_DEEPEST, _ROWS = 5, 7  # guesses in a row, and rows of them
_HIGH = 1.7  # rows of a box, and
_INSIDE = 0.66  # from its edge to the word in it
_FUSED, _READ = 2.2, 4.4  # columns where the boxes of the feature and of the drafter begin
_GAUGE, _WIDE = 6.0, 1.15  # the row of the gauges, and columns of each
_BELOW = 0.7  # of a row, for words below the last
_GAP = 0.25  # columns between the boxes and the tree
_JOINED = "The states of these layers", "are joined into one feature."  # words above the boxes, and below them
_DRAFTED = "The drafter guesses from the feature", "and the next word."

panel_of = panel_reader(Eagle3Panel)


def agreement_of(step: Step) -> Sequence[float]:
    """Return how close the drafter's own features came to the target's, as cosines."""
    return panel_of(step).get("agreement", [])


def _room(header: Header) -> Room:
    params = read_params(Eagle3Params, header)
    tree = params.form == "tree"
    return Room(min(params.depth if tree else params.gamma, _DEEPEST), _ROWS if tree else 1)


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    room = _room(run.header)
    features = Zone(FEATURES, "Features of the target, and its drafter", COLUMNS - _DEEPEST - 1 - _GAP, _ROWS + _BELOW)
    guesses = room.zone("Guesses and how likely each is")._replace(rows=room.rows + _BELOW)
    return stage([[text_zone()]], [[features], [guesses]])


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    step, room = run.steps[k], _room(run.header)
    scene = StepScene.begin(base(run), run, k, room)
    products = products_of(step)
    scene.draw_text()
    root = _draw_drafter(scene, run, step)
    shown = shown_guesses(step, room, products)
    names = {node: node_name(step, node, depths_of(step.parents)) for node in shown}
    origins = {node: names.get(step.parents[node], root) for node in shown}
    scene.draw_guesses(lambda node: origins[node], share=products, shown=shown, one_by_one=True)
    draw_products(scene, step, room, shown, products)
    if len(step.tokens) < 2:
        scene.draw_no_guess(why_nothing(step))
    _draw_drift(scene, step)
    if words := unsayable_words(run, step):
        scene.word(words, ZoneCell(FEATURES, 0, _ROWS - 0.1), loud=True, since="accept")
    return scene.patch()


# What feeds the drafter


def _draw_drafter(scene: Scene, run: RunState, step: Step) -> str:
    """Draw the tapped layers, the feature that they make, and the root; returns the name of the drafter's piece."""
    layers, more = tapped(step)
    middle = _HIGH * (len(layers) - 1) / 2
    last = step.start - 1
    fed = bool(step.index and last and layers)
    for row, layer in enumerate(layers):
        scene.frame(ZoneCell(FEATURES, 0, _HIGH * row), _FUSED - 0.3, _HIGH, layer_name(layer), loud=True)
    scene.word(more, ZoneCell(FEATURES, 0, _HIGH * len(layers)))
    scene.frame(ZoneCell(FEATURES, _FUSED, middle), _READ - _FUSED - 0.3, _HIGH, "one feature")
    scene.frame(ZoneCell(FEATURES, _READ, middle), 2.0, _HIGH, "drafter", loud=True)
    for y, words in enumerate(_JOINED):
        scene.word(words, ZoneCell(FEATURES, _FUSED, middle - 1.3 + 0.55 * y))
    for y, words in enumerate(_DRAFTED):
        scene.word(words, ZoneCell(FEATURES, _FUSED, middle + _HIGH - 0.1 + 0.55 * y))
    if not fed:
        return ""
    before = position_name(last - 1)
    feature, root = f"f{last - 1}", f"e{last}"
    for row, layer in enumerate(layers):
        state, place = f"s{last - 1}.{layer}", ZoneCell(FEATURES, 0.4, _HIGH * row + _INSIDE)
        scene.add(StagePiece(state, run.ids[last - 1], place, Fate.PROMPT, origin=before, faint=True))
    at = ZoneCell(FEATURES, _FUSED + 0.4, middle + _INSIDE)
    scene.add(StagePiece(feature, run.ids[last - 1], at, Fate.PROMPT, origin=before))
    at = ZoneCell(FEATURES, _READ + 0.5, middle + _INSIDE)
    scene.add(StagePiece(root, run.ids[last], at, Fate.ROOT, 0, origin=position_name(last)))
    for layer in layers:
        scene.link(f"s{last - 1}.{layer}", feature, "flow", until="verify")
    scene.link(feature, root, "flow", until="verify")
    return root


def _draw_drift(scene: Scene, step: Step) -> None:
    """Draw how close the drafter's own features came to those that the target now has in their place."""
    cosines = agreement_of(step)[:_DEEPEST]
    if not cosines:
        return
    place = ZoneCell(FEATURES, 0, _GAUGE - 0.8)
    scene.word("its own features compared with the target's (cosine)", place, since="accept")
    for x, cosine in enumerate(cosines):
        left = x * _WIDE
        scene.frame(ZoneCell(FEATURES, left, _GAUGE), 0.3, 1.1, since="accept", gauge=Gauge(min(1.0, max(0.0, cosine))))
        name = "root" if not x else f"+{x}"
        for y, words in enumerate((name, f"{cosine:.2f}")):
            scene.word(words, ZoneCell(FEATURES, left + 0.35, _GAUGE - 0.2 + 0.5 * y), since="accept")


STAGE = StagePicture(base, frame)
