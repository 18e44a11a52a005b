"""The lossless check: whether every token is the target's own choice, by the engine's plain second reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decoding.types import Header

from ..run_state import RunState
from ..view import Figure, Patch, View

Rescored = Mapping[str, Any]  # {checked, exact, near_ties, violations, noise, places: [{position, token, ...}]}
_MOST_PLACES = 200  # that are listed one by one


def base(run: RunState) -> Figure:
    """Return what is known before the text was read a second time."""
    if not run.header.lossless:
        return {
            "say": "Not lossless by design: typical acceptance keeps guesses that are likely enough.",
            "tone": "grey",
        }
    return {"say": "Not checked yet.", "tone": "unknown"}


def frame(run: RunState, k: int) -> Patch:
    """Return nothing: the outcome is one for the whole run."""
    return {}


def outcome(result: Rescored, header: Header) -> dict[str, Any]:
    """Return the outcome as the page reads it, with its sentence."""
    places = [
        {name: place[name] for name in ("position", "token", "choice", "margin")}
        for place in list(result["places"])[:_MOST_PLACES]
    ]
    counts = {name: result[name] for name in ("checked", "exact", "near_ties", "violations", "noise")}
    return {**counts, "places": places, "say": outcome_in_words(result, header), "tone": tone(result, header)}


def tone(result: Rescored, header: Header) -> str:
    """Say how the outcome is to be shown."""
    if not header.lossless:
        return "grey"
    if result["violations"]:
        return "broken"
    return "near" if result["near_ties"] else "exact"


def outcome_in_words(result: Rescored, header: Header) -> str:
    """Return the outcome in a sentence or two."""
    checked, near, wrong = (int(result[name]) for name in ("checked", "near_ties", "violations"))
    sampled = header.sampling.get("temperature")
    choice = "possible under the target's distribution" if sampled else "the target's own choice"
    margins = [float(place["margin"]) for place in result["places"]]
    if not header.lossless:
        return f"Not lossless by design: {checked - near - wrong} of {checked} tokens are {choice}."
    if wrong:
        margin = max(margins, default=0.0)
        return f"{wrong} of {checked} tokens are not {choice}, by a margin of up to {margin:.2g}: this must not happen."
    whole = f"{checked} of {checked} tokens are {choice}"
    if not near:
        return whole + "."
    ties = "1 at a near-tie" if near == 1 else f"{near} at near-ties"
    return f"{whole}, {ties} (largest margin {max(margins):.2g}, rounding noise {float(result['noise']):.2g})."


VIEW = View(
    name="check",
    label="Lossless check",
    kind="numbers",
    look_for="A second, plain reading of the text: did any guess change a single token?",
    base=base,
    frame=frame,
)
