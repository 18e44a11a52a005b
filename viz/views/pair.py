"""The target against the drafter at one place: how likely each held the tokens there, and what that means for a guess.

A guess is judged by the target's distribution behind the guess's parent. The record holds the best tokens of that
distribution and, where the drafter had one there too, the drafter's best. A copied guess was sampled from none.
"""

from __future__ import annotations

from collections.abc import Mapping

from decoding import tree
from decoding.types import Header, Step

from ..cells import LETTERS, Trace, axis, labels, layout, note, packed, signs, ticks
from ..fates import node_fates, places_of, siblings, target_choice
from ..methods import screen_of
from ..palette import MEANINGS, Fate
from ..run_state import RunState
from ..stream.encode import tokens
from ..view import Figure, Patch, View

_ROWS = 7  # tokens shown
_RANKS = ("best", "2nd best", "3rd best", "4th best", "5th best")
TARGET, DRAFT, NAMES, MARKS, SAY = range(5)  # the traces
# The words of `sentence`; {p}, {q} and {keep} are shares, {best} is the target's highest one.
WORDS = {
    "greedy": "{fate}: p {p}, and the target's best {best}",
    "sampled": "{fate}: kept with chance min(1, p/q) = {keep}",
    "residual": "{fate}: kept with chance min(1, p/q) = {keep}, so the next is drawn from max(0, p - q)",
    "copied": "{fate}: copied, not sampled, so it is kept with chance p {p}",
    "untried": "behind a rejected guess: never tried",
    "cut": "behind the end of the run: never written",
    "typical": "{fate}: p {p}, kept where it is typical enough",
    "explored": "a cell of the window: p {p}, read and never written",
    "none": "the root is no guess: these are the shares behind it",
    "own": "no guess, but the target's own token: these are the shares at its place",
    "rank": "the target's choice here was guess {rank} of {count}",
    "missed": "the target's choice here was none of the {count} guessed",
    "liked": "the target's choice here was the drafter's {rank}, q {q}",
    "unliked": "the target's choice here was not among the drafter's best{count}",
}
FATES = {
    Fate.ACCEPTED: "accepted",
    Fate.REJECTED: "rejected",
    Fate.MATCHED: "right, but after a wrong one",
    Fate.TWIN: "accepted in another row",
}
_GREEDY = "A guess holds where it is the target's longest bar, however sure the drafter was."
_LIGHT = "this run was recorded without probabilities: record it in full to see them"


def shows(header: Header) -> bool:
    """Whether a run has guesses, and their probabilities are recorded."""
    return screen_of(header).guesses and header.record == "full"


def base(run: RunState) -> Figure:
    """The figure without a step."""
    bar: Trace = {"type": "bar", "orientation": "h", "x": [], "width": 0.36, "showlegend": False, "hoverinfo": "none"}
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
    detail = {
        "rows": _ROWS,
        "target": TARGET,
        "draft": DRAFT,
        "names": NAMES,
        "marks": MARKS,
        "say": SAY,
        "words": WORDS,
        "ranks": _RANKS,
    }
    more = {} if run.header.sampling.get("temperature") else {"look_for": _GREEDY}
    return {"data": data, "layout": figure, "detail": detail, **more}


def frame(run: RunState, k: int) -> Patch:
    """The guess that matters most in step k: the first one rejected, else the last one accepted."""
    return pair_detail(run, k, chosen(run.steps[k]))


def pair_detail(run: RunState, k: int, node: int) -> Patch:
    """The best tokens and the guesses at the place of a node; of the root, those behind it."""
    step = run.steps[k]
    if not step.top or not 0 <= node < len(step.tokens):
        return {}
    parent = max(0, step.parents[node])
    taken, shares = target_choice(step, parent), _drafter(step, parent)
    rows = _rows(step, parent, node, shares)
    ids = [token for token, _ in rows]
    places = {step.tokens[guess]: guess for guess in siblings(step, parent)}
    data: list[Trace] = [{} for _ in range(5)]
    data[TARGET] = {"x": [round(p, 4) for _, p in rows], "customdata": packed([places.get(token, -1) for token in ids])}
    data[NAMES] = {"y": packed([*range(len(ids))]), "text": tokens(ids) | {"cut": 14}}
    drawn = [(row, token) for row, token in enumerate(ids) if token in shares]
    if drawn:
        data[DRAFT] = {"x": [round(shares[token], 4) for _, token in drawn], "y": [row + 0.2 for row, _ in drawn]}
        data[DRAFT]["customdata"] = packed([places.get(token, -1) for _, token in drawn])
    marks = [(1.17, ids.index(taken), "diamond")] if taken in ids else []
    if node:
        marks.append((1.1, ids.index(step.tokens[node]), MEANINGS[node_fates(step)[node]].symbol))
    xs, ys, symbols = zip(*marks, strict=True) if marks else ((), (), ())
    data[MARKS] = {"x": [*xs], "y": [*ys], "sign": [*symbols]}
    data[SAY] = {"text": {"strings": [sentence(run.header, step, node), _rank(step, parent, taken)]}}
    return {"data": data, "about": node}


def chosen(step: Step) -> int:
    """The guess that a figure is about where nobody has chosen one."""
    end = step.path[-1] if step.path else 0
    rejected = siblings(step, end)
    return rejected[0] if rejected else end


def keep(step: Step, node: int) -> float | None:
    """The chance min(1, p/q) that a sampled guess is accepted; p where the guess was copied."""
    p = step.p[node] if step.p else None
    if p is None:
        return None
    q = _q(step, node)
    return min(1.0, p / q) if q else p


def sentence(header: Header, step: Step, node: int) -> str:
    """What p and q mean for a guess."""
    p = step.p[node] if step.p else None
    if not node or p is None:
        return WORDS["none"]
    fate, best = node_fates(step)[node], max((share for _, share in step.top[step.parents[node]]), default=p)
    if fate is Fate.EXPLORED:
        kind = "explored"
    elif not header.sampling.get("temperature"):
        kind = "greedy"
    elif (never := _never(step, node)) and (header.lossless or never == "cut"):
        kind = never
    elif not header.lossless:
        kind = "typical"
    else:
        kind = "copied" if not _q(step, node) else "residual" if fate is Fate.REJECTED else "sampled"
    shares = {"p": f"{p:.3f}", "best": f"{max(best, p):.3f}", "keep": f"{keep(step, node):.3f}"}
    return WORDS[kind].format(fate=FATES.get(fate, ""), **shares)


def _never(step: Step, node: int) -> str:
    """Why the target never came to a guess: the run was cut before it, or it hangs off a rejected one; else ""."""
    places = places_of(step)
    taken = [places[at] for at in step.path]
    above = [places[at] for at in tree.path_to(step.parents, node)[:-1]]
    if len(step.emitted) == step.accepted and taken[-1] in above:
        return "cut"
    return "" if above[-1] in taken else "untried"


def _rank(step: Step, parent: int, taken: int) -> str:
    """The rank of what the target took in the drafter's distribution or, where none is recorded, among the guesses."""
    best, rivals = _best(step, parent), siblings(step, parent)
    for rank, (token, q, _) in zip(_RANKS, best, strict=False):
        if token == taken:
            return WORDS["liked"].format(rank=rank, q=f"{q:.3f}")
    if best:
        return WORDS["unliked"].format(count=f" {len(best)}" if len(best) > 1 else "")
    ranks = [rank for rank, node in enumerate(rivals, start=1) if step.tokens[node] == taken]
    if not rivals:
        return ""
    return WORDS["rank" if ranks else "missed"].format(rank=ranks[0] if ranks else 0, count=len(rivals))


def _q(step: Step, node: int) -> float:
    """The probability of a guess in the distribution that it was sampled from; 0 where it was copied."""
    return (step.q[node] or 0.0) if step.q else 0.0


def _best(step: Step, parent: int) -> tuple[tuple[int, float, float], ...]:
    """The drafter's best tokens behind a node, each with its own share and the target's, as far as they are known."""
    return step.draft_top[parent][: len(_RANKS)] if step.draft_top else ()


def _drafter(step: Step, parent: int) -> dict[int, float]:
    """The drafter's shares of tokens behind a node: of its guesses there, and of its best ones."""
    guessed = {step.tokens[guess]: q for guess in siblings(step, parent) if (q := _q(step, guess))}
    return guessed | {token: q for token, q, _ in _best(step, parent)}


def _rows(step: Step, parent: int, node: int, drafter: Mapping[int, float]) -> list[tuple[int, float]]:
    """Tokens and the target's shares of them, the likeliest first.

    They are the guess itself, what was taken, the drafter's best, and whatever else has the longest bars.
    """
    best = _best(step, parent)
    shares = {token: p for token, _, p in best} | dict(step.top[parent])
    for guess in (node, *siblings(step, parent)):
        p = step.p[guess] if guess and step.p else None
        if p is not None:
            shares.setdefault(step.tokens[guess], p)
    first = {target_choice(step, parent), *(token for token, _, _ in best[:1]), *([step.tokens[node]] if node else ())}
    order = sorted(shares, key=lambda token: (token not in first, -max(shares[token], drafter.get(token, 0.0)), token))
    return sorted(((token, shares[token]) for token in order[:_ROWS]), key=lambda row: (-row[1], row[0]))


VIEW = View(
    name="pair",
    label="Target against drafter",
    kind="plot",
    look_for="Where the drafter's bar is longer than the target's, a guess may be rejected.",
    base=base,
    frame=frame,
    shows=shows,
    nodes=("points", "points", None, None, None),
    phases=("verify", "propose", "propose", "accept", "accept"),
)
