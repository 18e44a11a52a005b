"""What the stages and pictures of drafters on the target's features share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from decoding.methods.panels import FeaturePanel
from decoding.types import Step

from ...panels import panel_reader
from ...run_state import RunState
from ...stage.parts import GUESSES, Room, depths_of, guesses_with_rows, rows_of
from ...stage.scene import Scene, ZoneCell
from ...wording import count, quote
from ...wording import share as share_of

FEATURES = "features"  # the zone
_LAYERS = 3  # tapped layers that are seen
# Why nothing was drafted, by the word in the panel.
_STOPPED = {
    "start": "the prompt has to be read first",
    "budget": "only one more token is needed",
    "interrupted": "the run was interrupted",
}

panel_of = panel_reader(FeaturePanel)


def products_of(step: Step) -> dict[int, float]:
    """Return the product of the probabilities up to every guess, by its node; none if one is not a probability."""
    products = panel_of(step).get("products", [])
    if not all(0 <= product <= 1 for product in products):
        return {}
    return dict(zip(range(1, len(step.tokens)), products, strict=False))


def why_nothing(step: Step) -> str:
    """Say why a step has no guess, if it is recorded."""
    panel = panel_of(step)
    unlikely = "all guesses are below the threshold" if panel.get("made") and len(step.tokens) < 2 else ""
    return _STOPPED.get(panel.get("stopped", ""), unlikely)


def unsayable(step: Step) -> list[int]:
    """Return the indices of the written tokens that the drafter's vocabulary lacks."""
    foreign = {*panel_of(step).get("unsayable", [])}
    return [place for place, token in enumerate(step.emitted) if token in foreign]


def unsayable_words(run: RunState, step: Step) -> str:
    """Say which written tokens the drafter's vocabulary lacks."""
    tokens, vocabulary = [step.emitted[place] for place in unsayable(step)], panel_of(step).get("vocabulary")
    if not tokens:
        return ""
    size = f" of {count(vocabulary, 'token')}" if vocabulary else ""
    return f"The drafter's vocabulary{size} lacks {quote(run, tokens[:1])}"


def tapped(step: Step) -> tuple[list[int], str]:
    """Return the tapped layers that there is room for, and words for the others."""
    layers = panel_of(step).get("layers", [])
    hidden = len(layers) - _LAYERS
    return layers[:_LAYERS], f"and {count(hidden, 'more layer')}" if hidden > 0 else ""


def layer_name(layer: int) -> str:
    """Name the origin of the state that enters a layer."""
    return f"layer {layer}" if layer else "embedding"


def draw_products(scene: Scene, step: Step, room: Room, shown: Sequence[int], products: Mapping[int, float]) -> None:
    """Write the product of every row's last guess after it; bars in the guesses show those of the others."""
    depths, ends = depths_of(step.parents), dict[int, int]()
    for node, row in rows_of(step, room, shown).items():
        ends[row] = node
    for row, node in ends.items():
        scene.word(share_of(products[node]), ZoneCell(GUESSES, depths[node] + 0.02, row))


def shown_guesses(step: Step, room: Room, products: Mapping[int, float]) -> list[int]:
    """Return the guesses that have rows: the accepted ones, then those with the largest products."""
    taken, depths = set(step.path), depths_of(step.parents)
    guesses = (node for node in products if depths[node] <= room.depth)
    best = sorted(guesses, key=lambda node: (node not in taken, -products[node], depths[node], node))
    return guesses_with_rows(step, best, room)
