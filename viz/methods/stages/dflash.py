"""DFlash on the stage: the target's features of the text stay, and beside them one pass fills a block of masks.

On the left is the end of the text that the target has read, a row for every layer that is tapped: the states of each
token become its feature, in the columns of the text. To the right of the features is the block, the root and the masks;
every mask gets its likeliest tokens at once, without a look at those of the others. Below are the guesses: a chain
of one token from each position, or the paths through the positions with the largest products.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from textwrap import wrap

from decoding.methods.dflash import DFlashParams
from decoding.methods.panels import DFlashPanel
from decoding.types import Header, Step

from ...palette import Fate
from ...panels import panel_reader
from ...params import params_reader
from ...run_state import RunState
from ...stage.drafted_chain import chain_of, draw_numbers, draw_verdict, is_sampled, verdict_row
from ...stage.parts import DEEPEST, Room, StepScene, depths_of, position_name, text_zone
from ...stage.scene import StagePiece, Zone, ZoneCell, stage
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

MASKS = "masks"  # the zone of the block
_TOKENS = 3  # of the text whose features are seen
_LISTED = 2  # likeliest tokens below a mask
_MIDDLE = 0.46  # of a cell, in columns
_BRANCHES, _LINES = 4, 5  # rows of a tree, and of a chain with its numbers
_HIGH, _INSET = 1.2, 0.1  # rows of a box, and from its edge to the word in it
_LINE, _WRAPPED = 0.55, 40  # of a row, for words; and letters of a line
_JOINED = "A token's states in these layers", "are joined into one feature."
_ALONE = "Each mask sees all features, but no other guess."
_TITLES = {
    "chain": "Chain: likeliest tokens with probabilities",
    "drawn": "Chain: a token drawn at each position",
    "tree": "Tree: the same candidates after every guess",
}

params_of = params_reader(DFlashParams)
panel_of = panel_reader(DFlashPanel)


def _is_tree(header: Header) -> bool:
    return params_of(header).form == "tree"


def _room(header: Header) -> Room:
    return Room(DEEPEST, _BRANCHES if _is_tree(header) else _LINES)


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    room, tree = _room(run.header), _is_tree(run.header)
    below = _LISTED if tree else 1.4 * _LINE
    features = Zone(FEATURES, "Features of the text", room.root, 4 * _HIGH + 3 * _LINE)
    masks = Zone(MASKS, "Block: one pass fills every mask", room.depth + 2, _HIGH + below)
    guesses = room.zone(_TITLES[params_of(run.header).form])._replace(rows=room.rows + _LINE)
    return stage([[text_zone()]], [[features], [masks, guesses]])


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    step, room = run.steps[k], _room(run.header)
    scene = StepScene.begin(base(run), run, k, room)
    scene.draw_text()
    _draw_features(scene)
    if len(step.tokens) < 2:
        scene.draw_no_guess(why_nothing(step))
        return scene.patch()
    places = _draw_block(scene)
    if _is_tree(run.header):
        _draw_tree(scene, places)
    else:
        _draw_chain(scene, places)
    return scene.patch()


def _draw_features(scene: StepScene) -> None:
    """Draw the last features of the text, and below each the states that it is made of."""
    run, step, root = scene.run, scene.step, scene.room.root
    (layers, more), last = tapped(step), step.start - 1
    names = ["features", *map(layer_name, layers)]
    for row, name in enumerate(names):
        scene.frame(ZoneCell(FEATURES, 0, _HIGH * row), root - 0.05, _HIGH, loud=not row)
        scene.word(name, ZoneCell(FEATURES, 0.1, _HIGH * row + _INSET))
    words = [*filter(None, (more, *_JOINED))] if layers else []
    for line, each in enumerate(words):
        scene.word(each, ZoneCell(FEATURES, 0, _HIGH * len(names) + _LINE * line))
    for line, each in enumerate(wrap(unsayable_words(run, step), _WRAPPED), start=len(words)):
        scene.word(each, ZoneCell(FEATURES, 0, _HIGH * len(names) + _LINE * line), loud=True, since="accept")
    for position in range(max(0, last - _TOKENS), last if step.index else 0):
        place, token = ZoneCell(FEATURES, root - last + position, _INSET), run.ids[position]
        look = partial(StagePiece, token=token, fate=Fate.PROMPT, origin=position_name(position))
        above = scene.add(look(f"f{position}", place=place))
        for row, layer in enumerate(layers, start=1):
            below = place._replace(y=_HIGH * row + _INSET)
            state = scene.add(look(f"s{position}.{layer}", place=below, faint=True))
            scene.link(state, above, "flow", until="verify")
            above = state


def _draw_block(scene: StepScene) -> Mapping[int, str]:
    """Draw the root and the masks; returns the names of the pieces that guess, by the depths of their guesses."""
    run, step = scene.run, scene.step
    last, anchored = step.start - 1, panel_of(step).get("anchored") is True
    masks = _guesses(run.header, step) - anchored
    shown = min(masks, scene.room.depth)
    scene.frame(ZoneCell(MASKS, 0, 0), 1 + shown + 0.05, _HIGH, loud=True)
    root = StagePiece(f"e{last}", run.ids[last], ZoneCell(MASKS, 0, _INSET), Fate.ROOT, 0, origin=position_name(last))
    scene.names[0] = scene.add(root)  # guesses hang off this piece, next to them
    places = {1: scene.names[0]} if anchored else dict[int, str]()
    for depth in range(1, shown + 1):
        place = ZoneCell(MASKS, depth, _INSET)
        places[depth + anchored] = scene.add(StagePiece(f"m{step.index}.{depth}", -1, place, Fate.PROPOSED))
        scene.word("mask", place._replace(x=depth + _MIDDLE), "middle")
    if shown < masks:
        scene.word(f"and {masks - shown} more", ZoneCell(MASKS, shown + 1.1, _INSET))
    return places


def _guesses(header: Header, step: Step) -> int:
    """Return how many tokens the block guesses: fewer than its parameters say where less text may still be written."""
    room = len(header.prompt) + header.max_new_tokens - step.start - 1
    most = min(params_of(header).gamma, panel_of(step).get("block", room), room)
    return max(most, *depths_of(step.parents))


# The guesses


def _draw_chain(scene: StepScene, places: Mapping[int, str]) -> None:
    """Draw a token of every place, how likely it is there, and where the target goes another way."""
    run, step = scene.run, scene.step
    chain = chain_of(step)
    chances = dict(zip(chain, panel_of(step).get("chances", []), strict=False))
    sure, depths = chances, depths_of(step.parents)
    if drawn := is_sampled(run.header) and any(q is not None for q in step.q):
        sure = {node: q for node in chain if (q := step.q[node]) is not None}
    scene.word(_ALONE, ZoneCell(MASKS, 1.1, _HIGH))
    verdict = verdict_row(run.header, beside=False)
    names = scene.draw_guesses(lambda node: places.get(depths[node], ""), share=sure, rest=verdict + _LINE)
    draw_numbers(scene, run, step, [node for node in chain if node in names], sure, are_q=drawn, beside=False)
    draw_verdict(scene, run, step, chain, verdict, {})


def _draw_tree(scene: StepScene, places: Mapping[int, str]) -> None:
    """Draw the likeliest tokens of every place, and the tree that is made of them."""
    step, room = scene.step, scene.room
    products, depths = products_of(step), depths_of(step.parents)
    shown = shown_guesses(step, room, products)
    listed = _draw_places(scene, places)
    origins = {node: listed.get((depths[node], step.tokens[node]), places.get(depths[node], "")) for node in shown}
    scene.draw_guesses(lambda node: origins[node], share=products, shown=shown)
    draw_products(scene, step, room, shown, products)


def _draw_places(scene: StepScene, places: Mapping[int, str]) -> Mapping[tuple[int, int], str]:
    """Draw the likeliest tokens of every place below its mask; returns the names of the pieces by depth and token.

    Of too many the best are seen, and the accepted one.
    """
    step, depths = scene.step, depths_of(scene.step.parents)
    chances = panel_of(step).get("chances", [])
    taken = [step.tokens[node] for node in step.path]
    likeliest = dict[int, dict[int, float]]()  # by depth: tokens with their probabilities
    for node, chance in enumerate(chances[: len(step.tokens) - 1], start=1):
        if depths[node] in places and 0 <= chance <= 1:
            likeliest.setdefault(depths[node], {})[step.tokens[node]] = chance
    names = dict[tuple[int, int], str]()
    for depth, tokens in likeliest.items():
        best = sorted(tokens, key=lambda token: (token not in taken[depth : depth + 1], -tokens[token]))[:_LISTED]
        for y, token in enumerate(sorted(best, key=lambda token: -tokens[token])):
            name, cell = f"c{step.index}.{depth}.{token}", ZoneCell(MASKS, depth, _HIGH + y)
            piece = StagePiece(name, token, cell, Fate.PROPOSED, origin=places[depth], share=tokens[token])
            names[depth, token] = scene.add(piece)
    return names


STAGE = StagePicture(base, frame)
