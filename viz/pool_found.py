"""What is found in texts and tables: N-Grammys' rows, the copies of prompt lookup, REST's hits in its datastore."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.types import JSON, Header, Step

from . import panel
from .cells import PITCH, WIDE, Board, Trace, axis, layout, lifted, line, points
from .narration import count
from .palette import Fate
from .story import Story, emitted_fates
from .unguessed import reason
from .view import Figure, Patch

_ROWS, _WIDEST = 24, 12  # rows shown, and tokens of a row
_BEFORE = 2  # tokens shown in front of a match
_ENDING = 4  # tokens shown of the ending that REST found
_BRANCHES = 7  # rows shown of REST's tree
_ABOVE = -0.8  # the upper edge of a board
_NOW, _SAID = 2.4, 3.6  # rows of the text and of what the target wrote


def _figure(left: float, right: float, rows: float, label: str, table: Trace) -> Figure:
    """A board from `left` to `right`."""
    data = [*Board.traces(), points("markers"), line("$muted", 1.2, "dot"), *[points("markers") for _ in range(3)]]
    height = round(PITCH * (rows - _ABOVE)) + 16
    yaxis = axis(_ABOVE, rows, down=True)
    figure = layout(height, axis(left, right), yaxis, yaxis3=lifted(yaxis))
    told = {"least": round(WIDE * (right - left)) + 16, "label": label, "table": table}
    return {"data": data, "layout": figure, **told}


# N-Grammys


def _deep(header: Header) -> int:
    return min(_WIDEST, panel.setting(header, "w", 1, 16, 10))


def rows_base(header: Header) -> Figure:
    """The rows without a step."""
    rows = min(_ROWS, panel.setting(header, "k", 1, 32, 10))
    return _figure(-4.3, _deep(header) + 3.6, rows + 0.8, "Rows of guesses", Board.table("row", "Strategy", depth=True))


def rows(story: Story, k: int) -> Patch:
    """The rows of step k with the strategy that filled each; of a trie, every node once."""
    step, board, n = story.steps[k], Board(), _deep(story.header)
    listed = step.panel.get("rows")
    given = [row for row in listed[:64] if isinstance(row, dict)] if isinstance(listed, list) else []
    trie, first = story.header.params.get("layout") == "trie", 1
    nodes, drawn = panel.Nodes(step), set[int]()
    _root(board, step, _given(story, step, len(given)))
    for y, row in enumerate(given, start=1):
        tokens = panel.tokens(row.get("tokens"), 64)
        chain = nodes.chain(tokens, 0) if trie else _consecutive(step, tokens, first)
        first += sum(node > 0 for node in chain)
        if y > min(_ROWS, len(given)):
            break
        board.label(_strategy(row), 0.4, y)
        for x, node in enumerate(chain[:n], start=1):
            if node > 0 and node not in drawn:
                drawn.add(node)
                board.guess(node, x, y)
        if count := nodes.accepted(chain):
            board.outcome(f"{count} accepted", min(n, len(tokens)) + 0.7, y)
    return {"data": board.patch(step)}


def _given(story: Story, step: Step, rows: int) -> str:
    """How many rows there are, and how often the ending was found where the text was searched."""
    if not rows:
        return _alone(story, step)
    searched = "matches" in step.panel
    times = count(panel.whole(step.panel.get("matches")), "time")
    return count(rows, "row") + (f"; the end of the text stood in it {times} before" if searched else "")


def _alone(story: Story, step: Step) -> str:
    why = reason(story, step)
    return f"{why}{why and ': '}the root goes alone"


def _consecutive(step: Step, tokens: Sequence[int], first: int) -> list[int]:
    """The nodes of a row that lies behind the rows before it; -1 where the step had no room."""
    fits = [first + i < len(step.tokens) and step.tokens[first + i] == token for i, token in enumerate(tokens)]
    fed = fits.index(False) if False in fits else len(fits)
    return [first + i if i < fed else -1 for i in range(len(tokens))]


def _strategy(row: dict[str, JSON]) -> str:
    name = panel.text(row.get("strategy"))
    if name == "context":
        count = panel.whole(row.get("count"))
        return "context, once" if count == 1 else f"context, {count} times"
    return f"{name}, rank {panel.whole(row.get('rank'))}"


def _root(board: Board, step: Step, words: str) -> None:
    if step.tokens:
        board.context(step.tokens[0], 0, 0, Fate.ROOT, 0)
        board.outcome(words, 0.7, 0)


# Prompt lookup


def _copied(header: Header) -> tuple[int, int]:
    """Tokens shown of an ending, and of a copy."""
    return min(8, panel.setting(header, "max_ngram", 1, 16, 3)), min(10, panel.setting(header, "K", 1, 128, 10))


def copies_base(header: Header) -> Figure:
    """The two places in the text without a step."""
    n, K = _copied(header)
    return _figure(-n - _BEFORE - 2.9, K + 1.5, 4.5, "The copied place", Board.table("row", "Text"))


def copies(story: Story, k: int) -> Patch:
    """The ending of the text over the place where it stood before, and what followed there."""
    step, board = story.steps[k], Board()
    widest, K = _copied(story.header)
    n = min(panel.whole(step.panel.get("n")), step.start)
    left = -widest - _BEFORE
    guesses = range(1, len(step.tokens))
    board.label("the text now", left - 0.4, _NOW)
    board.label("the target", left - 0.4, _SAID)
    for back in range(min(-left + 1, step.start)):
        place = step.start - 1 - back
        board.context(story.ids[place], -back, _NOW, Fate.PROMPT if back else Fate.ROOT, -1 if back else 0)
    for x, (token, fate) in enumerate(zip(step.emitted, emitted_fates(step), strict=True), start=1):
        if x <= K + 1:
            board.learned(token, x, _SAID, fate)
    if n < 1 or len(guesses) == 0:
        board.outcome(_alone(story, step), left, 0)
        return {"data": board.patch(step)}
    kind, places = panel.detail(step.sources[1])
    place = places[0] if places else 0
    source, known = (story.header.reference, None) if kind == "reference" else (story.ids, step.start)
    board.outcome(_where(kind, place, n), left, 0)
    board.label("stood before", left - 0.4, 1)
    for at in range(max(0, place - n - _BEFORE, place + left - 1), min(place, known or len(source))):
        board.context(source[at], at - place + 1, 1, Fate.PROMPT)
    for x in list(guesses)[:K]:
        board.context(step.tokens[x], x, 1, Fate.PROMPT)
        board.guess(x, x, _NOW)
    xs: list[float | None] = []
    for back in range(min(n, widest)):
        xs += [-back, -back, None]
    ties = {"x": xs, "y": [1.5, _NOW - 0.5, None] * (len(xs) // 3)}
    return {"data": [*board.patch(step), {}, ties]}


def _where(kind: str, place: int, n: int) -> str:
    """In words where the copy begins."""
    where = {"prompt": "in the prompt", "output": "in the new text", "reference": "in the reference"}.get(kind, "")
    ending = "token" if n == 1 else f"{n} tokens"
    return f"the last {ending} stood {where} in front of place {place}; what followed is guessed"


# REST


def hits_base(header: Header) -> Figure:
    """The hits without a step."""
    deep = min(_WIDEST, panel.setting(header, "length", 1, 64, 10))
    table = Board.table("row", "Found", depth=True)
    return _figure(-_ENDING - 0.6, deep + 3.4, _BRANCHES + 1.4, "Datastore hits", table)


def hits(story: Story, k: int) -> Patch:
    """The ending that was found, and what followed it there: the tree, a row for every leaf, the commonest on top."""
    step, board = story.steps[k], Board()
    span, found = panel.whole(step.panel.get("span")), panel.whole(step.panel.get("hits"))
    deep = min(_WIDEST, panel.setting(story.header, "length", 1, 64, 10))
    ending = panel.tokens(step.panel.get("ending"))[-_ENDING:]
    for back, token in enumerate(reversed(ending)):
        board.context(token, -back, 0, Fate.PROMPT if back else Fate.ROOT, -1 if back else 0)
    if not ending:
        _root(board, step, _alone(story, step))
    else:
        words = f"{span} {'token' if span == 1 else 'tokens'} found at {found:,} {'place' if found == 1 else 'places'}"
        board.outcome(f"{words}, {panel.whole(step.panel.get('read')):,} read", 0.7, 0)
    leaves = _leaves(step)
    most, taken = _BRANCHES, frozenset(step.path)
    for y, branch in enumerate(leaves[:most], start=1):
        depth = {node: x for x, node in branch}
        first = min(depth.values())
        board.label(f"{_count(step, branch[0][1]):,} ×", first - 0.6, y)
        for x, node in branch:
            if x <= deep:
                board.guess(node, x, y)
        if count := sum(node in taken for node in depth):
            board.outcome(f"{count} accepted", min(deep, branch[-1][0]) + 0.7, y)
    if len(leaves) > most:
        board.label(f"and {len(leaves) - most} more branches", 3.4, most + 1)
    return {"data": board.patch(step)}


def _leaves(step: Step) -> list[list[tuple[int, int]]]:
    """Rows of (depth, node): depth first, the commonest child first, every node in the row that it is met in first."""
    below = panel.Nodes(step).below
    rows: list[list[tuple[int, int]]] = []
    stack = [(1, node, True) for node in reversed(_commonest(step, below.get(0, [])))]
    while stack:
        depth, node, begins = stack.pop()
        rows += [[]] if begins else []
        rows[-1].append((depth, node))
        children = _commonest(step, below.get(node, []))
        stack += [(depth + 1, child, place > 0) for place, child in reversed([*enumerate(children)])]
    return rows


def _commonest(step: Step, nodes: list[int]) -> list[int]:
    return sorted(nodes, key=lambda node: -_count(step, node))


def _count(step: Step, node: int) -> int:
    """At how many places the text up to a node was found."""
    numbers = panel.detail(step.sources[node])[1]
    return numbers[0] if numbers else 0
