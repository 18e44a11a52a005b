"""The target and the drafter at one position: the probabilities of each, and what they mean for a guess.

A guess is judged by the target's distribution after the guess's parent. The record holds the best tokens of that
distribution and, where the drafter had one there too, the drafter's best. A copied guess was sampled from none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from decoding.types import Header, Step

from ..cells import LETTERS, PlotTrace, axis, labels, layout, note, packed, signs, ticks
from ..fates import node_fates, places_of, siblings, siblings_of, target_choices
from ..methods import screen_of
from ..palette import MEANINGS, Fate
from ..run_state import RunState
from ..stream.encode import tokens
from ..view import Figure, Patch, View

_ROWS = 7  # tokens shown
_RANKS = ("best", "2nd best", "3rd best", "4th best", "5th best")
TARGET, DRAFT, NAMES, MARKS, SAY = range(5)  # the traces
_FATES = {
    Fate.ACCEPTED: "Accepted",
    Fate.REJECTED: "Rejected",
    Fate.MATCHED: "Right, but after a wrong guess",
    Fate.TWIN: "Accepted in another row",
}
ROOT = "The root is not a guess. These are the probabilities of the token after it."
UNTRIED = "The guess follows a rejected one, so the target never decided on it."
CUT = "The run ended before this guess."
OWN = "The target chose this token itself. These are the probabilities at its position."
_GREEDY = "A guess is accepted where its target bar is the longest, however sure the drafter was."
_LIGHT = "This run was recorded without probabilities. Record it in full to see them."


def shows(header: Header) -> bool:
    """Return True if a run has guesses and their probabilities were recorded."""
    return screen_of(header).guesses and header.record == "full"


def base(run: RunState) -> Figure:
    """Return the figure without a step."""
    bar: PlotTrace = {
        "type": "bar",
        "orientation": "h",
        "x": [],
        "width": 0.36,
        "showlegend": False,
        "hoverinfo": "none",
    }
    bar |= {"textposition": "outside", "texttemplate": "%{x:.3f}", "cliponaxis": False, "constraintext": "none"}
    bar |= {"textfont": {"size": LETTERS, "color": "$text"}}
    rows = [*range(_ROWS)]
    target = bar | {"y": [row - 0.2 for row in rows], "marker": {"color": "$correction", "line": {"width": 0}}}
    drawn = {"shape": "/", "size": 6, "fillmode": "overlay", "fgcolor": "$paper", "fgopacity": 0.9}
    draft = bar | {"y": [], "marker": {"color": "$proposed", "line": {"width": 0}, "pattern": drawn}}
    names = labels("left", "$text") | {"x": [-0.02] * _ROWS}
    marks = signs(9, stroke=1.5)
    data = [target, draft, names, marks, labels("right", "$text") | {"x": [-0.36, -0.36], "y": [-2.4, -1.6]}]
    notes = [note("■ p of the target", 0.0, -0.75, "left"), note("▨ q of the drafter", 0.45, -0.75, "left")]
    notes.append(note("◆ taken", 1.22, -0.75, "right"))
    if run.header.record != "full":
        notes.append(note(_LIGHT, 0.0, 3, "left"))
    shares: dict[float, str] = {0.0: "0", 0.5: "0.5", 1.0: "1"}
    xaxis = axis(-0.36, 1.22) | ticks(shares) | {"showgrid": True, "gridcolor": "$faint"}
    margin = {"l": 8, "r": 8, "t": 8, "b": 22, "pad": 2}
    figure = layout(300, xaxis, axis(-2.9, _ROWS - 0.4, down=True), margin=margin, annotations=notes, barmode="overlay")
    more = {} if run.header.sampling.get("temperature") else {"look_for": _GREEDY}
    return {"data": data, "layout": figure, **more}


def frame(run: RunState, k: int) -> Patch:
    """Compare at the guess that matters most in step k: the first one rejected, else the last one accepted."""
    return of_node(run, k, default_node(run.steps[k]))


def of_node(run: RunState, k: int, node: int) -> Patch:
    """Compare the tokens for the position of a node; at the root, those for the position after it."""
    step = run.steps[k]
    return _Comparison(run.header, step).of_node(node) if step.top and 0 <= node < len(step.tokens) else {}


def pinned(run: RunState, k: int) -> list[Patch]:
    """Compare at every node of step k and, last, at the token that the target wrote itself."""
    step = run.steps[k]
    if not step.top or not step.tokens:
        return []
    comparison = _Comparison(run.header, step)
    return [*map(comparison.of_node, range(len(step.tokens))), comparison.of_own_token()]


def default_node(step: Step) -> int:
    """Return the node to compare at if none is pinned."""
    end = step.path[-1] if step.path else 0
    rejected = siblings(step, end)
    return rejected[0] if rejected else end


class _Choice:
    """The tokens that were likely, guessed or written at one position of the text: the one after node `parent`."""

    def __init__(self, step: Step, parent: int, taken: int, guesses: Mapping[int, int]) -> None:
        self.taken, self.guesses = taken, guesses
        best = step.draft_top[parent][: len(_RANKS)] if step.draft_top else ()
        self.q = {token: q for token, guess in guesses.items() if (q := _q(step, guess))}
        self.q |= {token: q for token, q, _ in best}
        self._p = {token: p for token, _, p in best} | dict(step.top[parent])
        for token, guess in guesses.items():
            if step.p and (p := step.p[guess]) is not None:
                self._p.setdefault(token, p)
        self.best = max((p for _, p in step.top[parent]), default=0.0)  # the target's
        self.rank = self._rank(best)
        first = {taken, *(token for token, _, _ in best[:1])}
        order = sorted(self._p, key=lambda each: (each not in first, -max(self._p[each], self.q.get(each, 0.0)), each))
        self._shown = order[:_ROWS]

    def _rank(self, best: Sequence[tuple[int, float, float]]) -> str:
        """Rank the token that was written among the drafter's best or, where those are not recorded, the guesses."""
        for rank, (token, q, _) in zip(_RANKS, best, strict=False):
            if token == self.taken:
                return f"The target's choice was the drafter's {rank}, q {q:.3f}."
        if best:
            several = f" {len(best)}" if len(best) > 1 else ""
            return f"The target's choice was not among the drafter's best{several}."
        if not self.guesses:
            return ""
        if len(self.guesses) == 1:
            return f"The target's choice was {'' if self.taken in self.guesses else 'not '}the guess."
        if self.taken not in self.guesses:
            return f"The target's choice was none of the {len(self.guesses)} guesses."
        return f"The target's choice was guess {[*self.guesses].index(self.taken) + 1} of {len(self.guesses)}."

    def rows(self, token: int | None = None, p: float | None = None) -> list[tuple[int, float]]:
        """Return tokens and the target's probabilities, the likeliest first, a pinned guess among them.

        The rest are the token that was written, the drafter's best, and those with the longest bars.
        """
        shown = self._shown
        if token is not None and (p is not None or token in self._p):
            shown = [token, *(each for each in shown if each != token)][:_ROWS]
        return sorted(((each, self._p.get(each, p or 0.0)) for each in shown), key=lambda row: (-row[1], row[0]))


class _Comparison:
    """The pictures of a step, each of one position."""

    def __init__(self, header: Header, step: Step) -> None:
        self._header, self._step, self._fates = header, step, node_fates(step)
        self._taken, self._guesses = target_choices(step), siblings_of(step, range(len(step.tokens)))
        self._choices = dict[int, _Choice]()  # by the node before the position
        places = places_of(step)
        self._tried = {places[node] for node in step.path}
        self._past_end = [False]  # of every node: whether it hangs off the node at which a run was cut
        cut, end = len(step.emitted) == step.accepted, places[step.path[-1]] if step.path else 0
        for parent in step.parents[1:]:
            self._past_end.append(cut and (self._past_end[parent] or places[parent] == end))
        self._places = places

    def of_node(self, node: int) -> Patch:
        step, choice = self._step, self._choice_after(max(0, self._step.parents[node]))
        token = step.tokens[node] if node else None
        rows = choice.rows(token, step.p[node] if step.p else None)
        return _picture(choice, rows, self._verdict(node, choice.best), token, self._fates[node]) | {"about": node}

    def of_own_token(self) -> Patch:
        choice = self._choice_after(self._step.path[-1] if self._step.path else 0)
        return _picture(choice, choice.rows(), OWN) | {"about": len(self._step.tokens)}

    def _choice_after(self, parent: int) -> _Choice:
        if parent not in self._choices:
            self._choices[parent] = _Choice(self._step, parent, self._taken[parent], self._guesses[parent])
        return self._choices[parent]

    def _verdict(self, node: int, best: float) -> str:
        """Explain why a guess was accepted or not; `best` is the target's highest probability at its position."""
        step, header = self._step, self._header
        p, chance = step.p[node] if step.p else None, keep(step, node)
        if not node or p is None or chance is None:
            return ROOT
        if self._fates[node] is Fate.EXPLORED:
            return f"A cell of the window, p {p:.3f}: the target reads it and never writes it."
        fate = _FATES[self._fates[node]]
        if not header.sampling.get("temperature"):
            return f"{fate}: p {p:.3f}; the target's best has {max(best, p):.3f}."
        if self._past_end[node]:
            return CUT
        if header.lossless and self._places[step.parents[node]] not in self._tried:
            return UNTRIED
        if not header.lossless:
            return self._typical(node, p)
        if not _q(step, node):
            return f"{fate}: the guess was copied, not sampled, so it is accepted with probability p = {chance:.3f}."
        then = ". The next token is then drawn from max(0, p - q)." if self._fates[node] is Fate.REJECTED else "."
        u = step.u[node] if step.u else None
        if u is not None:
            drawn = f"u = {u:.3f} is {'' if node in step.path else 'not '}below min(1, p/q) = {chance:.3f}"
            return f"{fate}: {drawn}{then}"
        return f"{fate}: accepted with probability min(1, p/q) = {chance:.3f}{then}"

    def _typical(self, node: int, p: float) -> str:
        """Explain what typical acceptance decided about a guess: it is not compared with the target's own choice."""
        rule, limit = "min(ε, δ·exp(-H))", typical_limit(self._header, self._step, node)
        if limit is None:
            return f"p {p:.3f}. A guess is typical where p is above {rule}; the longest branch of these is accepted."
        if p <= limit:
            return f"Not typical: p {p:.3f} is not above {rule} = {limit:.3f}."
        taken = "accepted" if node in self._step.path else "not on the longest typical branch"
        return f"Typical, and {taken}: p {p:.3f} is above {rule} = {limit:.3f}."


def typical_limit(header: Header, step: Step, node: int) -> float | None:
    """Return the probability above which a guess is typical; None if the record does not hold the entropy."""
    epsilon, delta = header.params.get("epsilon"), header.params.get("delta")
    if not step.entropy or not isinstance(epsilon, float | int) or not isinstance(delta, float | int):
        return None
    return min(epsilon, delta * math.exp(-step.entropy[step.parents[node]]))


def _picture(
    choice: _Choice, rows: Sequence[tuple[int, float]], sentence: str, guess: int | None = None, fate: Fate = Fate.ROOT
) -> Patch:
    ids = [token for token, _ in rows]
    drawn = [(row, token) for row, token in enumerate(ids) if token in choice.q]
    nodes = [choice.guesses.get(token, -1) for token in ids]
    signs = [(1.17, ids.index(choice.taken), "diamond")] if choice.taken in ids else []
    signs += [(1.1, ids.index(guess), MEANINGS[fate].symbol)] if guess in ids else []
    data: list[PlotTrace] = [{} for _ in range(5)]
    data[TARGET] = {"x": [round(p, 4) for _, p in rows], "customdata": packed(nodes)}
    data[NAMES] = {"y": packed([*range(len(ids))]), "text": tokens(ids) | {"cut": 14}}
    if drawn:
        data[DRAFT] = {
            "x": [round(choice.q[token], 4) for _, token in drawn],
            "y": [row + 0.2 for row, _ in drawn],
            "customdata": packed([nodes[row] for row, _ in drawn]),
        }
    data[MARKS] = {"x": [x for x, _, _ in signs], "y": [y for _, y, _ in signs], "sign": [sign for *_, sign in signs]}
    data[SAY] = {"text": {"strings": [sentence, choice.rank]}}
    return {"data": data}


def residuals(step: Step) -> dict[int, list[tuple[int, float]]]:
    """Return, for every guess that was tested alone at its position and rejected, what the next token is drawn from.

    That is max(0, p - q), in shares of its sum 1 - overlap, of the tokens whose p and q are both recorded.
    """
    tested = Counter(step.parents[node] for node, u in enumerate(step.u) if u is not None)
    left = dict[int, list[tuple[int, float]]]()
    for node, u in enumerate(step.u):
        parent = step.parents[node]
        if u is None or node in step.path or tested[parent] > 1 or not step.draft_top or not step.overlap:
            continue
        overlap = step.overlap[parent]
        rows = [(token, p - q) for token, q, p in step.draft_top[parent] if p > q]
        if overlap is not None and overlap < 1 and rows:
            left[node] = [
                (token, min(1.0, round(more / (1 - overlap), 4)))
                for token, more in sorted(rows, key=lambda row: -row[1])
            ]
    return left


def keep(step: Step, node: int) -> float | None:
    """Return the probability min(1, p/q) that a sampled guess is accepted; p where the guess was copied."""
    p = step.p[node] if step.p else None
    if p is None:
        return None
    q = _q(step, node)
    return min(1.0, p / q) if q else p


def _q(step: Step, node: int) -> float:
    """Return the probability of a guess in the distribution that it was sampled from; 0 where it was copied."""
    return (step.q[node] or 0.0) if step.q else 0.0


VIEW = View(
    name="pair",
    label="Target against drafter",
    kind="plot",
    look_for="Where the drafter's bar is longer than the target's, a guess may be rejected.",
    base=base,
    frame=frame,
    pinned=pinned,
    shows=shows,
    nodes=("points", "points", None, None, None),
    phases=("answers", "propose", "propose", "accept", "accept"),
)
