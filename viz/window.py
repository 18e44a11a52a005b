"""The window of guesses that Jacobi iterations refine: Lookahead's, time by position, and Jacobi's own block.

Lookahead: a cell is where its node is, `depth` places behind the root; rows are levels, the oldest on top, so a token
moves up a row and left a column from step to step. The n-gram of a column lies on a diagonal. Jacobi: a row is an
iteration, the newest at the bottom; what lies left of the line is settled.
"""

from __future__ import annotations

from functools import lru_cache

from decoding.types import Header, Step

from . import panel, window_jacobi
from .cells import (
    CUT,
    OUTCOMES,
    PITCH,
    SIGNED,
    SIZE,
    Trace,
    at,
    axis,
    cells,
    layout,
    lifted,
    note,
    packed,
    step_columns,
    texts,
    ticks,
)
from .encode import node
from .story import Story
from .view import Figure, Patch, View
from .window_jacobi import (
    ANSWERS,
    CURRENT,
    DIAGONALS,
    LEARNED,
    MARGIN,
    NOTE,
    PAST,
    ROOT,
    SIGNS,
    TRACES,
    told_as_table,
    traces,
)

_GUESSES = 4  # of the pool's guesses, beside the window
_KEY = "pool: ● new  ○ known  ⊗ new for old"
_LEGIBLE = 26  # columns beyond which cells hold no text


def shows(header: Header) -> bool:
    """Whether a run has a window, and its record tells of it."""
    return header.method in ("lookahead", "jacobi") and header.record != "off"


def base(story: Story) -> Figure:
    """The figure without a step."""
    return window_jacobi.base(story.header) if story.header.method == "jacobi" else _lookahead_base(story.header)


def frame(story: Story, k: int) -> Patch:
    """The window as step k fed it, and what the target said."""
    return window_jacobi.frame(story, k) if story.header.method == "jacobi" else _lookahead_frame(story, k)


def _sizes(header: Header) -> tuple[int, int, int]:
    """W, N and the tokens of a guess."""
    return panel.setting(header, "W", 1, 256, 15), panel.setting(header, "N", 3, 16, 5), panel.guessed(header)


@lru_cache(maxsize=64)
def _grid(W: int, N: int, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where cells of rows with so many tokens lie: columns, and levels from the bottom up."""
    cells = [(r, i + (r == 0)) for r, size in enumerate(sizes) for i in range(size)]
    top = N - 1 - len(sizes)
    return tuple(r + i for r, i in cells), tuple(top + r for r, _ in cells)


def _steady(W: int, N: int) -> tuple[int, ...]:
    return (W - 1, *[W] * (N - 2))


def _lookahead_base(header: Header) -> Figure:
    W, N, length = _sizes(header)
    columns, levels = _grid(W, N, _steady(W, N))
    most = max((row + 1) * (W + N - 2 - row) for row in range(N - 1))  # a narrow window shrinks while it fills
    size, text = (SIZE, True) if W + N <= _LEGIBLE else (max(5, min(SIZE, 700 // (W + N))), False)
    ages = [round(0.16 + 0.4 * (y + 1) / (N - 1), 2) for y in levels]  # the newest row is the strongest
    past = cells("$explored", size=size, text=text)
    past["marker"]["opacity"] = ages
    data = traces(past, size, text=text)
    data[PAST] |= {"x": [*columns], "y": [*levels], "customdata": [*range(1, most + 1)]}
    xs: list[float | None] = []
    ys: list[float | None] = []
    for i in range(W):
        xs += [*(i + r for r in range(N)), i + N - 0.45, None]
        ys += [*range(N), N - 0.45, None]
    data[DIAGONALS] |= {"x": xs, "y": ys, "opacity": 0.6}
    ends = len(columns) - W
    data[ANSWERS] |= {"x": [*range(N - 1, N - 1 + W)], "y": [N - 1] * W}
    data[ANSWERS] |= {"customdata": [ends + i + 1 for i in range(W)]}
    data[ROOT] |= {"x": [0], "y": [0], "customdata": [0]}
    data[LEARNED] |= {"x": [i + N - 0.4 for i in range(W)], "y": [N - 0.4] * W}
    guesses = [(i, j) for j in range(_GUESSES) for i in range(length)]
    first = N + 1
    data[CURRENT] |= {"y": [first + j for _, j in guesses]}
    data[SIGNS] |= {"y": [first + j for _, j in guesses]}
    data[NOTE] |= {"x": [length + 0.7], "y": [first]}
    named: dict[float, str] = {N - 1 - age: f"age {age}" for age in range(1, N)} | {
        N - 1: "answers",
        N - 0.4: "to pool",
    }
    rows = axis(-0.7, first + _GUESSES - 0.3, down=True) | ticks({**named, first: "guesses"})
    places = {0.0: "root"} | {x: f"+{x}" for x in range(1, W + N - 1) if text or x % 10 == 0}
    xaxis = axis(-0.7, W + N - 0.1, side="top") | ticks(places)
    least = 66 + PITCH * (W + N) if text else 600
    key = note(_KEY, W + N - 0.3, first - 0.8, "right")
    told = {y: f"guess {y - first + 1} shown of the pool" for y in range(first, first + _GUESSES)}
    told |= {N - 1 - age: f"age {age}" for age in range(1, N)} | {N - 1: "answers"}
    table = told_as_table(told, "window cell") | {"ahead": True, "harvest": LEARNED, "signed": SIGNED}
    height = round(30 + PITCH * (N + _GUESSES + 1.4))
    return {
        "data": data,
        "layout": layout(height, xaxis, rows, margin=MARGIN, yaxis3=lifted(rows), annotations=[key]),
        "least": least,
        "table": table,
    }


def _lookahead_frame(story: Story, k: int) -> Patch:
    W, N, length = _sizes(story.header)
    step, data = story.steps[k], [Trace() for _ in range(TRACES)]
    rows, new = panel.rows(step.panel.get("rows"), N - 1), panel.tokens(step.panel.get("new"))
    sizes = tuple(map(len, rows))
    steady = sizes == _steady(W, N)
    fed = tuple(token for row in rows for token in row)
    as_fed = fed == step.tokens[1 : len(fed) + 1]
    data[PAST] = {"text": {**node("token", 1, len(fed) + 1), "cut": CUT} if as_fed else texts(fed)}
    data[PAST]["ids"] = packed(_lives(story, k, sizes))
    data[ANSWERS] = {"text": texts(new)}
    data[ROOT] = {"text": {**node("token", 0, 1), "cut": CUT}}
    if harvest := _harvest(step, len(new)) if steady else []:
        data[LEARNED] = {"marker": {"symbol": packed(harvest)}}
    else:
        data[LEARNED] = data[DIAGONALS] = {"x": [], "y": []}
    if not steady or len(new) != W:
        columns, levels = _grid(W, N, sizes)
        opacity = [round(0.16 + 0.4 * (y + 1) / (N - 1), 2) for y in levels]
        data[PAST] |= at(columns, levels) | {"marker": {"opacity": opacity}}
        below = range(len(rows), len(rows) + len(new))
        data[ANSWERS] |= at(below, [N - 1] * len(new))
        ends = sum(sizes[:-1]) + (len(rows) > 1)  # of a single row the root is a column too
        data[ANSWERS]["customdata"] = packed([ends + i for i in range(len(new))])
        data[ROOT] |= {"y": [N - 1 - len(rows)]}
    _guesses(step, length, data)
    return {"data": data}


def _lives(story: Story, k: int, sizes: tuple[int, ...]) -> list[int]:
    """A number for every cell that its token keeps for as long as it is in the window."""
    W, N, _ = _sizes(story.header)
    hits = story.header.params.get("shift") == "hits"
    span = W + N + (N * N if hits else 0)
    lives: list[int] = []
    for r, size in enumerate(sizes):
        born = max(-1, k - len(sizes) + r)
        moved = 0  # columns that the row has moved to the left since then
        for step in story.steps[max(0, born) : k]:
            moved += 1 if step.index < N - 2 else hits * (len(step.emitted) - 1)
        row = (born + 1) % (N + 1)
        lives += [row * span + min(span - 1, i + (r == 0) + moved) for i in range(size)]
    return lives


def _harvest(step: Step, columns: int) -> list[int]:
    """What the pool did with the n-gram of every column."""
    inserted = panel.part(step.panel.get("pool"), "inserted")
    events = inserted[:columns] if isinstance(inserted, list) else []
    outcomes = [event[2] for event in events if isinstance(event, list) and len(event) == 3]
    known = [OUTCOMES[outcome] for outcome in outcomes if isinstance(outcome, str) and outcome in OUTCOMES]
    return known if len(known) == columns else []


def _guesses(step: Step, length: int, data: list[Trace]) -> None:
    """The newest of the pool's guesses, the oldest on top as in the window, and what became of them."""
    known = panel.Nodes(step)
    entries = enumerate(panel.ngrams(step.panel.get("guesses"), 256))
    chains = [known.chain(guess, 0, entry) for entry, guess in entries if len(guess) == length]
    shown = chains[-_GUESSES:]
    best = max(chains, key=known.accepted, default=[])
    if best not in shown and known.accepted(best):
        shown[0] = best
    fed = [place for chain in shown for place in chain]
    if not fed or min(fed) < 0:
        return
    xs, columns = packed([*range(1, length + 1)] * len(shown)), step_columns(step, fed, CUT)
    data[CURRENT] = {"x": xs, "text": columns["token"], "customdata": columns["id"]}
    data[CURRENT] |= {"marker": {"color": columns["fate"]}}
    data[SIGNS] = {"x": xs, "marker": {"symbol": columns["symbol"]}}
    if len(chains) > len(shown):
        data[NOTE] = {"text": {"strings": [f"and {len(chains) - len(shown)} more in the pool"]}}


VIEW = View(
    name="window",
    label="Jacobi window",
    kind="plot",
    look_for="Rows move up as steps pass, and each diagonal becomes an n-gram of the pool.",
    base=base,
    frame=frame,
    shows=shows,
    slides=True,
    nodes=(None, None, "points", None, "points", None, "points", "points", None, None),
    phases=(
        "propose",
        "commit",
        "propose",
        "propose",
        "propose",
        "accept",
        "verify",
        "propose",
        "commit",
        "propose",
    ),
)
