"""N-Grammys on the screen: rows of guesses, each with the strategy that filled it."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.ngrammys import NGrammysPanel, NGrammysParams, NGrammysRow
from decoding.types import Header, Step

from ..boards import board
from ..boards.board import Board
from ..boards.nodes import Nodes
from ..palette import Fate
from ..panels import read_panel
from ..params import read_params
from ..run_state import RunState
from ..sources import parse
from ..view import Figure, Patch, Picture
from ..wording import count
from .base import Screen

_ROWS, _WIDEST = 24, 12  # rows shown, and tokens of a row
_OF_RANK = (0.9, 0.3, 0.3)  # weights of the first unigrams, of which no probability is recorded


def _params(header: Header) -> NGrammysParams:
    return read_params(NGrammysParams, header)


def _panel(step: Step) -> NGrammysPanel:
    return read_panel(NGrammysPanel, step.panel)


def base(run: RunState) -> Figure:
    """The rows without a step."""
    params = _params(run.header)
    rows, deep = min(_ROWS, params.k), min(_WIDEST, params.w)
    return board.base(-4.3, deep + 3.6, rows + 0.8, "Rows of guesses", Board.table("row", "Strategy", depth=True))


def frame(run: RunState, k: int) -> Patch:
    """The rows of step k with the strategy that filled each; of a trie, every node once."""
    step, board, params = run.steps[k], Board(), _params(run.header)
    rows, deep, first = _panel(step).get("rows", []), min(_WIDEST, params.w), 1
    nodes, drawn = Nodes(step), set[int]()
    if step.tokens:
        board.context(step.tokens[0], 0, 0, Fate.ROOT, 0)
        if rows:
            board.outcome(_found(_panel(step)), 0.7, 0)
        else:
            board.alone(SCREEN.why_no_guess(run, step), 0.7)
    for y, row in enumerate(rows, start=1):
        tokens = row.get("tokens", [])
        chain = nodes.chain(tokens, 0) if params.layout == "trie" else _consecutive(step, tokens, first)
        first += sum(node > 0 for node in chain)
        if y > _ROWS:
            break
        board.label(_strategy(row), 0.4, y)
        for x, node in enumerate(chain[:deep], start=1):
            if node > 0 and node not in drawn:
                drawn.add(node)
                board.guess(node, x, y)
        if accepted := nodes.accepted(chain):
            board.outcome(f"{accepted} accepted", min(deep, len(tokens)) + 0.7, y)
    return {"data": board.patch(step)}


def _found(panel: NGrammysPanel) -> str:
    """How many rows there are, and how often the ending was found where the text was searched."""
    rows = count(len(panel["rows"]), "row")
    if "matches" not in panel:
        return rows
    return f"{rows}; the end of the text stood in it {count(panel['matches'], 'time')} before"


def _consecutive(step: Step, tokens: Sequence[int], first: int) -> list[int]:
    """The nodes of a row that lies behind the rows before it; -1 where the step had no room."""
    fits = [first + i < len(step.tokens) and step.tokens[first + i] == token for i, token in enumerate(tokens)]
    fed = fits.index(False) if False in fits else len(fits)
    return [first + i if i < fed else -1 for i in range(len(tokens))]


def _strategy(row: NGrammysRow) -> str:
    name = row.get("strategy", "")
    if name == "context":
        times = row.get("count", 0)
        return "context, once" if times == 1 else f"context, {times} times"
    return f"{name}, rank {row.get('rank', 0)}"


def _origin(run: RunState, step: Step) -> str:
    kinds = [row.get("strategy") for row in _panel(step).get("rows", [])]
    context, model = kinds.count("context"), len(kinds) - kinds.count("context")
    parts = [f"{context} from the text"] if context else []
    parts += [f"{model} from the model's own n-grams"] if model else []
    return f", {' and '.join(parts)}" if parts else ""


def _no_guess(run: RunState, step: Step) -> str:
    panel = _panel(step)
    if "matches" not in panel:
        return ""
    if panel["matches"] and _params(run.header).tail == "full":
        return f"no earlier place of the text's ending has {count(panel.get('w', 0), 'token')} behind it"
    return "the text's ending did not occur before"


def _weights(step: Step, guesses: Sequence[int]) -> dict[int, float]:
    """The model's probability of the token that a bigram's row begins with; of unigrams the rank."""
    bigrams = {row["rank"]: row["p"] for row in _panel(step).get("rows", []) if {"rank", "p"} <= row.keys()}
    found: dict[int, float] = {}
    for node in guesses:
        kind, numbers = parse(step.sources[node])
        if kind == "bigram" and numbers and numbers[0] in bigrams:
            found[node] = bigrams[numbers[0]]
        elif kind == "unigram" and numbers and numbers[-1] < len(_OF_RANK):
            found[node] = _OF_RANK[numbers[-1]]
    return found


def _row_name(step: Step, node: int) -> str:
    """The strategy that filled a row."""
    kind, numbers = parse(step.sources[node])
    if kind in ("prompt", "output"):
        return "context"
    return f"{kind} {numbers[-1] if numbers else 0}" if kind in ("bigram", "unigram") else ""


SCREEN = Screen(
    sources={
        "bigram": "model's bigram, rank {0}",
        "chain": "model's bigram, link {0} of the chain",
        "unigram": "model's unigram, rank {0}",
    },
    origin=_origin,
    no_guess=_no_guess,
    pool=Picture(base, frame),
    depth=lambda header: _params(header).w,
    weights=_weights,
    weights_are_ranks="Of a unigram only the rank is known: the first one has a thick edge.",
    row_name=_row_name,
)
