"""The meaning of every colour, mark and line style, for all views: Okabe and Ito's colours, each with a second sign.

A figure names a colour as "$accepted"; `encode.resolve` or the page's player puts in the colour of the theme.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple


class Fate(IntEnum):
    """What became of a token; the codes are what figures carry."""

    PROPOSED = 0  # a guess that the target has not judged yet
    ROOT = 1
    ACCEPTED = 2
    REJECTED = 3
    MATCHED = 4  # agrees with the target's choice, but hangs off a guess that was not accepted
    EXPLORED = 5
    CORRECTION = 6  # the target's own token where it rejected a guess
    BONUS = 7  # the target's own token after the last accepted guess
    INSPIRED = 8  # a guess that an earlier verification had inspired or refined
    PROMPT = 9
    OWN = 10  # the target's own token where nothing was guessed
    TWIN = 11  # the same guess as an accepted one, in another row
    EARLY = 12  # the token that was written at this position later


@dataclass(frozen=True, slots=True)
class Meaning:
    """How a fate looks: a colour, a text decoration for HTML and a marker for figures."""

    fate: Fate
    label: str
    colour: str
    decoration: str  # a CSS class of the page: underline, strike, dotted, double, hatched, hollow, spark, plain
    symbol: str  # a Plotly marker
    words: str  # one line for the legend


MEANINGS: tuple[Meaning, ...] = (
    Meaning(Fate.PROPOSED, "Proposed", "$proposed", "plain", "circle-open-dot", "a guess, not judged yet"),
    Meaning(Fate.ROOT, "Root", "$root", "plain", "square", "the last token of the text, which the guesses follow"),
    Meaning(Fate.ACCEPTED, "Accepted", "$accepted", "underline", "circle", "a guess that is the target's own choice"),
    Meaning(Fate.REJECTED, "Rejected", "$rejected", "strike", "x", "a guess that the target did not choose"),
    Meaning(
        Fate.MATCHED,
        "Right, after a wrong one",
        "$matched",
        "hollow",
        "circle-open",
        "the target agrees here, but not with a guess before it, so it cannot be used",
    ),
    Meaning(
        Fate.EXPLORED,
        "Imagined ahead",
        "$explored",
        "hatched",
        "hash",
        "read to learn from, never written",
    ),
    Meaning(Fate.CORRECTION, "Correction", "$correction", "dotted", "diamond", "the target's token instead of a guess"),
    Meaning(
        Fate.BONUS,
        "Bonus: all guesses right",
        "$bonus",
        "double",
        "star",
        "one more token, which the target adds after guesses that were all right",
    ),
    Meaning(
        Fate.INSPIRED,
        "Inspired or refined",
        "$inspired",
        "spark",
        "star-open",
        "a guess the target helped to make",
    ),
    Meaning(Fate.PROMPT, "Prompt", "$prompt", "plain", "square-open", "text that was there already"),
    Meaning(
        Fate.OWN,
        "Target's own token",
        "$own",
        "plain",
        "triangle-up",
        "written by the target where nothing was guessed",
    ),
    Meaning(
        Fate.TWIN,
        "Accepted in another row",
        "$twin",
        "hollow",
        "diamond-open",
        "the same guess as an accepted one",
    ),
    Meaning(
        Fate.EARLY,
        "Right, too early",
        "$matched",
        "hollow",
        "bowtie-open",
        "the token that was written at this position later: it came before its turn, and was not used",
    ),
)

# Under typical acceptance: label and words of fates, since no guess is tested against the target's own choice.
_TYPICAL: dict[Fate, tuple[str, str]] = {
    Fate.ACCEPTED: ("Accepted as typical", "a guess that the target finds likely enough, but need not have chosen"),
    Fate.REJECTED: (
        "Not accepted",
        "a guess that is not likely enough, or not on the longest branch that is",
    ),
    Fate.MATCHED: ("Likeliest, not accepted", "the target's likeliest token, on a branch that was not accepted"),
    Fate.CORRECTION: ("Target's draw", "a token that the target drew after the accepted guesses"),
    Fate.BONUS: ("Target's draw at a branch's end", "a token that the target drew after the last guess of a branch"),
}


def meanings(*, lossless: bool) -> tuple[Meaning, ...]:
    """Return what the fates of a run mean."""
    if lossless:
        return MEANINGS
    named = ((meaning, *_TYPICAL.get(meaning.fate, (meaning.label, meaning.words))) for meaning in MEANINGS)
    return tuple(replace(meaning, label=label, words=words) for meaning, label, words in named)


# Okabe and Ito's eight: blue, sky, green, yellow, orange, vermilion, purple, black.
_FATES = {
    "proposed": "#56B4E9",
    "accepted": "#009E73",
    "rejected": "#D55E00",
    "matched": "#F0E442",
    "explored": "#CC79A7",
    "correction": "#0072B2",
    "bonus": "#56B4E9",
    "inspired": "#E69F00",
    "twin": "#009E73",
}
LIGHT: dict[str, str] = {
    **_FATES,
    "matched": "#8F7A00",  # the yellow of the eight is hardly seen on white
    "time_draft": "#6F86A6",
    "time_forward": "#C3CCD8",
    "time_accept": "#4C5A6E",
    "time_commit": "#98A6B8",
    "time_other": "#E3E7EC",
    "root": "#000000",
    "prompt": "#8A8A8A",
    "own": "#5A6270",
    "text": "#1A1D23",
    "muted": "#5A6270",
    "paper": "#FFFFFF",
    "panel": "#F6F7F9",
    "line": "#D5D9E0",
    "faint": "#ECEEF2",
    "pin": "#1A1D23",
}
DARK: dict[str, str] = {
    **_FATES,
    "time_draft": "#8FA6C6",
    "time_forward": "#4B586A",
    "time_accept": "#C9D3E0",
    "time_commit": "#75849A",
    "time_other": "#333B47",
    "root": "#FFFFFF",
    "prompt": "#9AA0AA",
    "own": "#A6ADBA",
    "text": "#E8EAEE",
    "muted": "#A6ADBA",
    "paper": "#14171C",
    "panel": "#1C2027",
    "line": "#3A404B",
    "faint": "#262B33",
    "pin": "#FFFFFF",
}
THEMES: dict[str, dict[str, str]] = {"light": LIGHT, "dark": DARK}

# For `marker.color` arrays of fate codes: one flat band for each code.
FATE_COUNT = len(MEANINGS)
FATE_SCALE: list[list[float | str]] = [
    [(code + end) / FATE_COUNT, meaning.colour] for code, meaning in enumerate(MEANINGS) for end in (0, 1)
]
FATE_RANGE: tuple[float, float] = (-0.5, FATE_COUNT - 0.5)  # cmin and cmax, or zmin and zmax


class PhaseLook(NamedTuple):
    """How a part of a step's time looks: a quiet colour, and a pattern as its second sign."""

    label: str
    colour: str
    pattern: str  # plotly's fill pattern


TIME_LOOKS: dict[str, PhaseLook] = {
    "forward": PhaseLook("Forward", "$time_forward", ""),
    "draft": PhaseLook("Draft", "$time_draft", "/"),
    "accept": PhaseLook("Accept", "$time_accept", "x"),
    "commit": PhaseLook("Commit", "$time_commit", "\\"),
    "other": PhaseLook("Other", "$time_other", "."),
}
