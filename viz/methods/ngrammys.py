"""N-Grammys on the screen: rows of guesses, each with the strategy that filled it."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.panels import NGrammysRow
from decoding.types import Step

from ..boards import board
from ..boards.board import Board, alone, shown_of
from ..boards.nodes import NodeIndex
from ..palette import Fate
from ..run_state import RunState
from ..sources import parse
from ..tables import Table, TableRow, fates_of, outcome_of, texts_of
from ..view import Figure, Patch, Picture
from ..wording import count
from .base import Screen
from .stages import ngrammys as on_stage
from .stages.ngrammys import panel_of, params_of

_ROWS, _WIDEST = 24, 12  # rows shown, and tokens of a row
_WORDS = 13.2  # columns that the words above them need
_OF_RANK = (0.9, 0.3, 0.3)  # weights of the first unigrams, of which no probability is recorded


def base(run: RunState) -> Figure:
    """Return the rows without a step."""
    params = params_of(run.header)
    rows, deep = min(_ROWS, params.k), min(_WIDEST, params.w)
    return board.base(-4.3, max(deep + 3.6, _WORDS), rows + 1.4, "Rows of guesses")


def frame(run: RunState, k: int) -> Patch:
    """Return the rows of step k with the strategy that filled each; of a trie, every node once."""
    step, board, deep = run.steps[k], Board(), min(_WIDEST, params_of(run.header).w)
    nodes, drawn = NodeIndex(step), set[int]()
    if step.tokens:
        board.context(step.tokens[0], 0, 0, Fate.ROOT, 0)
        board.outcome(_row_summary(run, step), 0.7, 0)
    chains = _chains(run, step, nodes)
    given = len(chains)
    for y, (row, chain) in enumerate(chains[:_ROWS], start=1):
        board.label(_strategy(row), 0.4, y)
        for x, node in enumerate(chain[:deep], start=1):
            if node > 0 and node not in drawn:
                drawn.add(node)
                board.guess(node, x, y)
        if accepted := nodes.accepted(chain):
            board.outcome(f"{accepted} accepted", min(deep, len(chain)) + 0.7, y)
    if words := shown_of(min(_ROWS, given), given):
        board.outcome(words, 0.5, _ROWS + 0.9)
    return {"data": board.patch(step)}


def rows(run: RunState, k: int) -> Table:
    """Return the same as a table: of a row the nodes that no row above it has, and the depth from which they go on."""
    step, listed = run.steps[k], {-1}
    nodes, table_rows = NodeIndex(step), list[TableRow]()
    if step.tokens:
        cells = (texts_of(run, step.tokens[:1]), None, None, fates_of(step, [0]), _row_summary(run, step))
        table_rows.append(TableRow(cells, 0))
    for row, chain in _chains(run, step, nodes):
        new = [(depth, node) for depth, node in enumerate(chain, start=1) if node not in listed]
        if not new:
            continue
        new_nodes = [node for _, node in new]
        listed |= {*new_nodes}
        words, right = texts_of(run, (step.tokens[node] for node in new_nodes)), outcome_of(nodes.accepted(chain))
        table_rows.append(TableRow((words, _strategy(row), new[0][0], fates_of(step, new_nodes), right), new_nodes[0]))
    return Table(("Tokens", "Strategy", "From depth", "Fates", "Outcome"), table_rows)


def _chains(run: RunState, step: Step, nodes: NodeIndex) -> list[tuple[NGrammysRow, list[int]]]:
    """Return the rows of a step, each with its nodes; -1 where the step had no room."""
    given, merged = panel_of(step).get("rows", []), params_of(run.header).layout == "trie"
    return [*zip(given, nodes.rows((row.get("tokens", []) for row in given), merged=merged), strict=True)]


def _row_summary(run: RunState, step: Step) -> str:
    """Say how many rows there are, and how often the ending was found where the text was searched."""
    panel = panel_of(step)
    if not panel.get("rows"):
        return alone(SCREEN.why_no_guess(run, step))
    number = count(len(panel["rows"]), "row")
    if "matches" not in panel:
        return number
    if not panel["matches"]:
        return f"{number}; the end of the text did not occur before"
    return f"{number}; the end of the text occurred {count(panel['matches'], 'time')} before"


def _strategy(row: NGrammysRow) -> str:
    name = row.get("strategy", "")
    if name == "context":
        times = row.get("count", 0)
        return "context, once" if times == 1 else f"context, {times} times"
    return f"{name}, rank {row.get('rank', 0)}"


def _origin(run: RunState, step: Step) -> str:
    kinds = [row.get("strategy") for row in panel_of(step).get("rows", [])]
    context, model = kinds.count("context"), len(kinds) - kinds.count("context")
    parts = [f"{context} from the text"] if context else []
    parts += [f"{model} from the model's own n-grams"] if model else []
    return f", {' and '.join(parts)}" if parts else ""


def _no_guess(run: RunState, step: Step) -> str:
    panel = panel_of(step)
    if "matches" not in panel:
        return ""
    if panel["matches"] and params_of(run.header).tail == "full":
        return f"no earlier occurrence of the end of the text is followed by {count(panel.get('w', 0), 'token')}"
    return "the end of the text did not occur before"


def _weights(step: Step, guesses: Sequence[int]) -> dict[int, float]:
    """Return the model's probability of the token that a bigram's row begins with; of unigrams the rank."""
    bigrams = {row["rank"]: row["p"] for row in panel_of(step).get("rows", []) if {"rank", "p"} <= row.keys()}
    weights: dict[int, float] = {}
    for node in guesses:
        kind, numbers = parse(step.sources[node])
        if kind == "bigram" and numbers and numbers[0] in bigrams:
            weights[node] = bigrams[numbers[0]]
        elif kind == "unigram" and numbers and numbers[-1] < len(_OF_RANK):
            weights[node] = _OF_RANK[numbers[-1]]
    return weights


def _row_name(step: Step, node: int) -> str:
    """Return the strategy that filled a row."""
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
    pool=Picture(base, frame, rows),
    stage=on_stage.STAGE,
    depth=lambda header: params_of(header).w,
    weights=_weights,
    weights_are_ranks="Only the rank of a unigram is known; a thick edge marks the first.",
    row_name=_row_name,
)
