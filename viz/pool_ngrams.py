"""Pools of n-grams by their first token: Lookahead's, and the phrases of Ouroboros.

On the left what the pool held for the key of the step, the newest on top; on the right what it learned in the step;
below how many n-grams it holds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from decoding.types import Header, Step

from . import panel
from .cells import (
    GAINED,
    GONE,
    OUTCOMES,
    PITCH,
    WIDE,
    WIDE_CUT,
    Board,
    Trace,
    axis,
    layout,
    lifted,
    line,
    note,
    packed,
    points,
    signs,
    texts,
)
from .encode import node, pack
from .palette import Fate
from .story import Story
from .tree_facts import BACK, learned
from .view import Figure, Patch

_HELD, _NEW = 9, 6  # n-grams shown of the key's, and of those learned
_WIDEST = 8  # tokens shown of an n-gram
_SAMPLES = 16  # points of the line of sizes
_KEY, _LEARNED, _RIGHT, _SPARK, _NOW = 2, 3, 9, 10, 11  # traces
_SIGNS = "● new  ○ known  ⊗ new for old  ✕ gone"
_GAP = 5  # columns from the last token on the left to the first one on the right


class _Entry(NamedTuple):
    """An n-gram that the pool held when the step began."""

    number: int
    ngram: list[int]
    nodes: list[int]
    accepted: int


def base(header: Header) -> Figure:
    """The figure without a step."""
    n, (held, new) = _width(header), _rows(header)
    right, rows = n + _GAP, max(held, new)
    data = [*Board.traces(), points("lines"), points("lines"), signs(8), line("$muted"), points("markers+text")]
    for trace in data[_SPARK:]:
        trace |= {"xaxis": "x2", "yaxis": "y2"}
    del data[_SPARK]["x"]  # it is told by its first place and the distance of its places
    data[_SPARK] |= {"fill": "tozeroy", "fillcolor": "$faint"}
    data[_NOW] |= {"textposition": "middle right", "texttemplate": " %{y:,}", "marker": {"size": 6, "color": "$text"}}
    if header.method == "lookahead":
        data[_KEY] |= {"x": [0], "y": [0], "customdata": [0]}
        data[_KEY]["marker"] = data[_KEY]["marker"] | {"color": [Fate.ROOT]}
        grid = [(right + i, y) for y in range(1, new + 1) for i in range(n + 1)]
        colours = [Fate.PROMPT if x == right else Fate.EXPLORED for x, _ in grid]
        data[_LEARNED] |= {"x": [x for x, _ in grid], "y": [y for _, y in grid]}
        data[_LEARNED]["marker"] = data[_LEARNED]["marker"] | {"color": pack(colours, "u1")}
        data[_RIGHT] |= {"x": [right + n + 0.9] * new, "y": [*range(1, new + 1)]}
    wide, height = right + n + 1.6, round(PITCH * (rows + 1.8)) + 84
    share = 56 / height
    own = {"xaxis2": axis(0, 1, range=None, autorange=True, anchor="y2", domain=[0.02, 0.9])}
    own["yaxis2"] = axis(0, 1, range=None, autorange=True, anchor="x2", domain=[0, share], rangemode="tozero")
    yaxis = axis(-0.8, rows + 1.2, down=True, domain=[share, 1])
    key = _SIGNS if header.method == "lookahead" else "☆ helped by the target"
    notes = [note(key, right + n + 1.4, rows + 0.8, "right"), note("n-grams held in all", -2.0, rows + 0.8, "left")]
    notes.append(note("after", -0.6, 0, "right"))
    figure = layout(height, axis(-2.1, wide), yaxis, annotations=notes, yaxis3=lifted(yaxis), **own)
    told: Figure = {"label": "N-gram pool", "table": _table(n)}
    if header.method == "ouroboros":
        told |= {"label": "Phrase pool", "draws": [Fate.INSPIRED]}
    return {"data": data, "layout": figure, "least": round(WIDE * (wide + 2.1)) + 16, **told}


def lookahead(story: Story, k: int) -> Patch:
    """The n-grams of the step's root, and those that the window gave."""
    header, step, board = story.header, story.steps[k], Board()
    n, (_, new) = _width(header), _rows(header)
    key, guesses = panel.root(step), panel.ngrams(step.panel.get("guesses"), 256)
    events = panel.events(panel.part(step.panel.get("pool"), "inserted"))
    capacity = panel.setting(header, "G", 0, 256, 15)
    none = "nothing kept for it" if step.panel.get("phase") == "steady" else "not asked before the window is full"
    board.outcome(f"{len(guesses)} of {capacity} kept" if guesses else none, 0.7, 0)
    fates = _replayed(guesses, [event.ngram for event in events if event.key == key], capacity)
    for row, entry in enumerate(_chosen(header, step, guesses, 0), start=1):
        _entry(board, entry, row, n)
        board.label(_since(story, k, key, entry.ngram), 0.4, row)
        if entry.number in fates:
            board.mark(fates[entry.number], n + 0.8, row)
    learned, fresh = events[:new], sum(event.new for event in events)
    if events:
        board.outcome(f"learned {len(events)}, {fresh} new", n + _GAP - 0.5, 0)
    data = [*board.patch(step), {}, {}, {}, *_sizes(story, k)]
    cells = [token for event in learned for token in (event.key, *(event.ngram + [-1] * n)[:n])]
    fewer: Trace = {} if len(learned) == new else {"x": packed([n + _GAP + i for i in range(n + 1)] * len(learned))}
    data[_KEY] = {"text": {**node("token", 0, 1), "cut": WIDE_CUT}}
    data[_LEARNED] = {"text": texts(cells, WIDE_CUT), **fewer}
    fewer = fewer and {"x": packed([2 * n + _GAP + 0.9] * len(learned))}
    data[_RIGHT] = {"marker": {"symbol": packed([OUTCOMES[event.outcome] for event in learned])}, **fewer}
    return {"data": data}


def ouroboros(story: Story, k: int) -> Patch:
    """The phrases behind the draft, and those that the target's answers made."""
    header, step, board = story.header, story.steps[k], Board()
    n, (_, new) = _width(header), _rows(header)
    drafted = [place for place, source in enumerate(step.sources) if source.startswith("draft:")]
    last = drafted[-1] if drafted else 0
    passes = panel.tokens(step.panel.get("passes"))
    if step.tokens:
        board.context(step.tokens[last], 0, 0, Fate.PROPOSED if last else Fate.ROOT, last)
    board.outcome(f"{len(drafted)} drafted in {len(passes)} passes: {' '.join(map(str, passes[:12]))}", 0.7, 0)
    suffixes = panel.ngrams(step.panel.get("suffixes"), 64)
    for row, entry in enumerate(_chosen(header, step, suffixes, last, newest_first=True), start=1):
        _entry(board, entry, row, n)
        board.label(_made(story, k, step.tokens[last] if step.tokens else -1, entry.ngram), 0.4, row)
    key = step.tokens[last] if step.tokens else -1
    refined = panel.ngrams(step.panel.get("refined"), 64)
    changed = [[key, *after] for before, after in zip(suffixes, refined, strict=False) if before != after]
    inspired = [[event.key, *event.ngram] for event in panel.events(step.panel.get("inspired")) if event.new]
    for row, (words, phrase) in enumerate([("refined", p) for p in changed] + [("inspired", p) for p in inspired]):
        if row == new:
            break
        for i, token in enumerate(phrase[: n + 1]):
            board.learned(token, n + _GAP + i, row + 1, Fate.PROMPT if i == 0 else Fate.INSPIRED)
        board.mark(GAINED, n + _GAP - 0.8, row + 1)
        board.outcome(words, n + _GAP + min(n + 1, len(phrase)) - 0.3, row + 1)
    board.outcome(f"refined {len(changed)}, inspired {len(inspired)}", n + _GAP - 0.5, 0)
    return {"data": [*board.patch(step), {}, {}, {}, *_sizes(story, k)]}


def _table(n: int) -> Trace:
    sides, total = ["held for the key", "learned"], {"total": _NOW, "totals": "N-grams held in all"}
    return Board.table("row", "Since", split=n + _GAP - 1, sides=sides, signs=[6, _RIGHT], **total)


def _width(header: Header) -> int:
    """Tokens of an n-gram behind its key, as far as they are shown."""
    return min(_WIDEST, panel.setting(header, "N", 3, 16, 5) - 1)


def _rows(header: Header) -> tuple[int, int]:
    """Rows on the left and on the right."""
    if header.method == "lookahead":
        G, W = panel.setting(header, "G", 0, 256, 15), panel.setting(header, "W", 1, 256, 15)
        return min(_HELD, max(G, 1)), min(_NEW, W)
    return min(_HELD, max(1, panel.setting(header, "K", 0, 64, 3))), 6


def _chosen(
    header: Header, step: Step, ngrams: list[list[int]], above: int, *, newest_first: bool = False
) -> list[_Entry]:
    """The newest n-grams, but the one of which most was accepted in any case."""
    nodes, most = panel.Nodes(step), _rows(header)[0]
    fed = [nodes.chain(ngram, above, i) for i, ngram in enumerate(ngrams)]
    entries = [_Entry(i, *pair, nodes.accepted(pair[1])) for i, pair in enumerate(zip(ngrams, fed, strict=True))]
    entries = entries if newest_first else entries[::-1]
    best = max(entries, key=lambda entry: entry.accepted, default=None)
    chosen = entries[:most]
    if best is not None and best not in chosen and best.accepted:
        chosen[-1] = best
    return chosen


def _entry(board: Board, entry: _Entry, row: int, n: int) -> None:
    """An n-gram with the fate of every token that was fed."""
    for x, (token, place) in enumerate(zip(entry.ngram[:n], entry.nodes, strict=False), start=1):
        if place > 0:
            board.guess(place, x, row)
        else:
            board.context(token, x, row, Fate.PROPOSED)
    if entry.accepted:
        board.outcome(f"{entry.accepted} accepted", n + 1.1, row)


def _replayed(held: Sequence[list[int]], inserted: Sequence[list[int]], capacity: int) -> dict[int, int]:
    """Which of the n-grams held the insertions moved to the front, or out: a sign for each by its number."""
    size = len(held[0]) if held else 0
    order: list[tuple[int, ...]] = [tuple(ngram) for ngram in held]
    numbers = {ngram: number for number, ngram in enumerate(order)}
    signs: dict[int, int] = {}
    for ngram in inserted:
        shown = tuple(ngram[:size])
        known = shown in order
        if known:
            order.remove(shown)
        if shown in numbers:
            signs[numbers[shown]] = OUTCOMES["refreshed" if known else "added"]
        order.append(shown)
        if len(order) > capacity:
            gone = order.pop(0)
            signs |= {numbers[gone]: GONE} if gone in numbers else {}
    return signs


def _since(story: Story, k: int, key: int, ngram: list[int]) -> str:
    """When an n-gram was last put into the pool."""
    steps = story.pool.get((key, *ngram), [])
    before = bisect_left(steps, k)
    return f"step {steps[before - 1]}" if before else "prompt"


def _made(story: Story, k: int, key: int, phrase: list[int]) -> str:
    """How a phrase came into the pool, as far as the record tells."""
    step = learned(story, k, (key, *phrase))
    if step is not None:
        return f"☆ step {step}"
    cold = k <= BACK and story.header.params.get("warm_start", "off") == "off"
    return "window" if cold else ""


def _sizes(story: Story, k: int) -> list[Trace]:
    """How many n-grams the pool held up to step k: every so many steps, and now."""
    every = k // _SAMPLES + 1
    held = [_held(step) for step in story.steps[k % every : k + 1 : every]]
    line = {"x0": k % every, "dx": every, "y": packed(held)}
    return [line, {"x": [k], "y": held[-1:]}]


def _held(step: Step) -> int:
    return panel.whole(panel.part(step.panel.get("pool"), "entries"))
