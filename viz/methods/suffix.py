"""SuffixDecoding on the screen: the ending that both suffix trees look for, and the guesses of the better one."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.suffix import SuffixParams
from decoding.types import Header, Step

from ..boards import counted
from ..boards.counted import CountedEnding
from ..params import read_params
from ..run_state import RunState
from ..sources import parse
from ..view import Picture
from ..wording import count, quote
from .base import Screen
from .stages import suffix as on_stage
from .stages.suffix import panel_of


def _depth(header: Header) -> int:
    """Return how deep the tree can be."""
    params = read_params(SuffixParams, header)
    return min(params.c, params.depth - 1)


def _scores(step: Step) -> str:
    """Say what both suffix trees offer."""
    panel = panel_of(step)
    sides = (("this text", panel.get("local")), ("earlier answers", panel.get("earlier")))
    return "; ".join(f"{where}: {on_stage.offer(side)}" for where, side in sides if side)


def _origin(run: RunState, step: Step) -> str:
    panel = panel_of(step)
    if "ending" not in panel or "chosen" not in panel:
        return ""
    local = panel["chosen"] == "local"
    where, side = ("this text", panel.get("local")) if local else ("earlier answers", panel.get("earlier"))
    times = f" {count(side.get('count', 0), 'time')}" if side else ""
    return f": {quote(run, panel['ending'])} occurs{times} in {where}"


def _no_guess(run: RunState, step: Step) -> str:
    params, panel = read_params(SuffixParams, run.header), panel_of(step)
    if "local" not in panel and "earlier" not in panel:
        return ""
    places = [] if params.look_in == "global" else ["earlier in this text"]
    places += [] if params.look_in == "local" else ["in an earlier answer"]
    return f"the last token does not occur {' or '.join(places)}, or too many tokens followed it"


def _weights(step: Step, guesses: Sequence[int]) -> dict[int, float]:
    """Return the share of the positions after the node above that go on with a guess."""
    panel = panel_of(step)
    side = panel.get("local") if panel.get("chosen") == "local" else panel.get("earlier")
    return counted.shares_below(step, guesses, ("local", "global"), side.get("count", 0) if side else 0)


def _row_name(step: Step, node: int) -> str:
    kind, numbers = parse(step.sources[node])
    return count(numbers[-1] if numbers else 0, "time") if kind in ("local", "global") else ""


_MATCHES = CountedEnding(
    heading="Suffix matches",
    seen="Came next",
    wide=14,
    depth=_depth,
    ending=lambda step: panel_of(step).get("ending", []),
    matches=_scores,
    why_none=lambda run, step: SCREEN.why_no_guess(run, step),
)
SCREEN: Screen = Screen(
    sources={
        "local": "what came next earlier in this text, {0} ×",
        "global": "what came next in earlier answers, {0} ×",
    },
    origin=_origin,
    no_guess=_no_guess,
    pool=Picture(_MATCHES.base, _MATCHES.frame, _MATCHES.rows),
    stage=on_stage.STAGE,
    depth=_depth,
    weights=_weights,
    row_name=_row_name,
)
