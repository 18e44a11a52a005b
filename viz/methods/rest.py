"""REST on the screen: what the datastore holds after the end of the text."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.rest import RestParams
from decoding.types import Header, Step

from ..boards import counted
from ..boards.counted import CountedEnding
from ..params import read_params
from ..run_state import RunState
from ..sources import parse
from ..view import Picture
from ..wording import count, quote
from .base import Screen
from .stages import rest as on_stage
from .stages.rest import panel_of


def _length(header: Header) -> int:
    """Return how deep the tree can be."""
    return read_params(RestParams, header).length


def _matches(step: Step) -> str:
    """Say how much of the text's ending is in the datastore, and where."""
    panel = panel_of(step)
    words = f"{count(panel.get('span', 0), 'token')} found at {_many(panel.get('hits', 0), 'position')}"
    return f"{words}, {panel.get('read', 0):,} read"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def _origin(run: RunState, step: Step) -> str:
    ending, hits = panel_of(step).get("ending"), panel_of(step).get("hits")
    if not ending or not hits:
        return " from the datastore"
    return f" from the datastore, where {quote(run, ending)} occurs {count(hits, 'time')}"


def _no_guess(run: RunState, step: Step) -> str:
    panel = panel_of(step)
    if "span" not in panel:
        return ""
    if panel["span"]:
        return "nothing follows the end of the text in the datastore"
    return "the end of the text is not in the datastore"


def _weights(step: Step, guesses: Sequence[int]) -> dict[int, float]:
    """Return the share of the positions after the node above that go on with a guess."""
    return counted.shares_below(step, guesses, ("datastore",), panel_of(step).get("read", 0))


def _row_name(step: Step, node: int) -> str:
    kind, numbers = parse(step.sources[node])
    return count(numbers[-1] if numbers else 0, "hit") if kind == "datastore" else ""


_HITS = CountedEnding(
    heading="Datastore hits",
    seen="Found",
    wide=10,
    depth=_length,
    ending=lambda step: panel_of(step).get("ending", []),
    matches=_matches,
    why_none=lambda run, step: SCREEN.why_no_guess(run, step),
)
SCREEN: Screen = Screen(
    sources={"datastore": "from the datastore, where it comes next {0} times"},
    origin=_origin,
    no_guess=_no_guess,
    pool=Picture(_HITS.base, _HITS.frame, _HITS.rows),
    stage=on_stage.STAGE,
    depth=_length,
    weights=_weights,
    row_name=_row_name,
)
