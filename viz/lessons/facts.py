"""The facts that lessons state of recorded runs, as pure functions. Those of other sources are in `formulas.py`.

Every public function of these two files is a fact, and there are no others. `fact_reader.py` reads their arguments by
the types of their parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from statistics import median
from typing import NewType, TypeVar

from decoding.types import Role, Step, Trace

from ..cache_slots import CacheState, cache_state
from ..fates import node_fates, places_of, target_choices
from ..palette import Fate
from ..token_text import shown
from .lesson import LessonError

NodeId = NewType("NodeId", int)
NodeRange = NewType("NodeRange", range)
RunNames = NewType("RunNames", list[tuple[str, Trace]])  # all arguments that are left
_T = TypeVar("_T")


class FactError(LessonError):
    """A fact that cannot be computed; the message says why, without file and line."""


@dataclass(frozen=True, slots=True)
class At:
    """A step of a run."""

    run: Trace
    step: Step

    def text(self, token: int) -> str:
        """Return the text of a token, its spaces visible."""
        return shown(self.run.texts.get(token, f"#{token}"))


# ----------------------------------------------------------------------------------------------------------- of a run


def passes(run: Trace) -> int:
    """Count the passes of the target: one a step."""
    return len(run.steps)


def new_tokens(run: Trace) -> int:
    """Count the tokens that were written."""
    return sum(len(step.emitted) for step in run.steps)


def kept(run: Trace) -> int:
    """Count the guesses that were accepted in all steps."""
    return sum(step.accepted for step in run.steps)


def guessed(run: Trace) -> int:
    """Count the guesses of all steps."""
    return sum(step.drafted for step in run.steps)


def fallen(run: Trace) -> int:
    """Count the guesses that fell though all before them were kept: at most one a step."""
    return sum(step.accepted < step.drafted and len(step.emitted) > step.accepted for step in run.steps)


def tokens_per_pass(run: Trace) -> float:
    """Return new tokens divided by passes."""
    return new_tokens(run) / passes(run)


def rows_per_token(run: Trace) -> float:
    """Return the rows that the target read for one new token, the prompt's left out."""
    later = run.steps[1:]
    return sum(step.fed for step in later) / sum(len(step.emitted) for step in later)


def rows_ms(run: Trace, rows: int) -> float:
    """Return the median time of the target's passes over so many rows, the first pass left out."""
    times = [step.timing.forward_ms for step in run.steps[1:] if step.fed == rows]
    if not times:
        raise FactError(f"no later step of this run reads {rows} rows")
    return median(times)


def reading_gain(run: Trace) -> float:
    """Return how many times less a token of the prompt took than a token that was written."""
    return rows_ms(run, 1) / ms_per_row(At(run, run.steps[0]))


def prompt_in_passes(run: Trace) -> float:
    """Return how many tokens could be written one by one in the time that the first pass took."""
    return run.steps[0].timing.forward_ms / rows_ms(run, 1)


def count_rows(run: Trace, rows: int) -> int:
    """Count the steps after the first that read so many rows."""
    return sum(step.fed == rows for step in run.steps[1:])


def decode_ms(run: Trace) -> float:
    """Return the time of all steps after the first."""
    return sum(step.timing.total_ms for step in run.steps[1:])


def total_ms(run: Trace) -> float:
    """Return the time of all steps."""
    return sum(step.timing.total_ms for step in run.steps)


def drafting_ms(run: Trace) -> float:
    """Return the time that drafting took in all steps after the first."""
    return sum(step.timing.draft_ms for step in run.steps[1:])


def drafting_share(run: Trace) -> float:
    """Return the percentage of the time after the first step that drafting took."""
    return 100 * drafting_ms(run) / decode_ms(run)


def drafting_ratio(run: Trace, other: Trace) -> float:
    """Return how many times as long drafting took in a run as in another, after the first steps."""
    return drafting_ms(run) / drafting_ms(other)


def vocabulary(run: Trace) -> int:
    """Return how many tokens the target knows."""
    return run.header.model.vocabulary


def fastest(runs: RunNames) -> tuple[str, ...]:
    """Return the names of runs in the order of their times, the fastest first."""
    return tuple(name for name, _ in sorted(runs, key=lambda named: total_ms(named[1])))


def fewest_passes(runs: RunNames) -> tuple[str, ...]:
    """Return the names of runs in the order of their passes, the fewest first."""
    return tuple(name for name, _ in sorted(runs, key=lambda named: passes(named[1])))


def faster(run: Trace, plain: Trace) -> float:
    """Return how many times faster a run was than another, from the traces that are shown."""
    return total_ms(plain) / total_ms(run)


def is_faster(run: Trace, plain: Trace) -> bool:
    """Return whether a run took less time than another."""
    return total_ms(run) < total_ms(plain)


def gaining(runs: RunNames) -> int:
    """Count the runs that took less time than the first of them."""
    (_, plain), *others = runs
    return sum(is_faster(run, plain) for _, run in others)


def different_texts(runs: RunNames) -> int:
    """Count the different texts that some runs wrote."""
    return len({tuple(run.ids) for _, run in runs})


def passes_saved(run: Trace, plain: Trace) -> int:
    """Count the passes that a run needed less than another."""
    return passes(plain) - passes(run)


def pass_mb(run: Trace) -> float:
    """Return the megabytes of weights that one pass reads."""
    return _given(run.header.model.pass_bytes, "the bytes that a pass reads") / 1e6


def token_bytes(run: Trace) -> int:
    """Return the bytes of one token's keys and values."""
    return _given(run.header.model.token_bytes, "the bytes of a cached token")


def cache_mb(run: Trace, tokens: int) -> float:
    """Return the megabytes of keys and values of so many tokens."""
    return tokens * token_bytes(run) / 1e6


def cache_share(run: Trace, tokens: int) -> float:
    """Return the percentage of what a pass reads that keys and values of so many tokens are."""
    cached = cache_mb(run, tokens)
    return 100 * cached / (cached + pass_mb(run))


def many_heads_bytes(run: Trace, heads: int) -> int:
    """Return the bytes of one token's keys and values if this many query heads did not share theirs."""
    return heads * token_bytes(run)


def slots(run: Trace) -> int:
    """Return how many tokens the cache has room for; of a cache that rolls, before it begins again."""
    return _given(run.header.slots or None, "a cache that rolls")


def sight(run: Trace) -> int:
    """Return how many tokens a row sees: itself and those before it."""
    return _given(run.header.window, "a sliding window")


def first_overwriting(run: Trace) -> int:
    """Return the number of the first step that overwrites a token of the text."""
    for step in run.steps:
        if overwritten_tokens(At(run, step)):
            return step.index
    raise FactError("no step of this run overwrites a token")


def nothing_accepted(run: Trace) -> int:
    """Count the steps that guessed and accepted nothing."""
    return sum(step.drafted > 0 and step.accepted == 0 for step in run.steps)


def draft_vocabulary(run: Trace) -> int:
    """Return how many tokens the drafter can guess."""
    tokens: int | None = run.steps[0].panel.get("vocabulary")
    return _given(tokens, "the drafter's vocabulary")


def unsayable(run: Trace) -> int:
    """Count the tokens of the text that the drafter's vocabulary lacks."""
    return sum(token in step.panel["unsayable"] for step in run.steps for token in step.emitted)


def doubted(run: Trace) -> int:
    """Count the steps in which Kangaroo stopped because its last guess was unsure."""
    return len(_doubted(run))


def doubted_kept(run: Trace) -> int:
    """Count the steps in which the unsure guess that Kangaroo stopped at was accepted all the same."""
    return sum(len(step.tokens) - 1 in step.path for step in _doubted(run))


def _doubted(run: Trace) -> list[Step]:
    return [step for step in run.steps if step.panel.get("stopped") == "unsure"]


def guesses_between(run: Trace, low: float, high: float) -> int:
    """Count the guesses whose confidence is at least one number and below another."""
    return len(_between(run, low, high))


def kept_between(run: Trace, low: float, high: float) -> int:
    """Count the accepted guesses whose confidence is at least one number and below another."""
    return sum(_between(run, low, high))


def _between(run: Trace, low: float, high: float) -> list[bool]:
    """Return for each guess with a confidence in between whether it was accepted."""
    return [
        node in step.path
        for step in run.steps
        for node, confidence in enumerate(step.panel["confidence"], start=1)
        if low <= confidence < high
    ]


def exit_layer(run: Trace) -> int:
    """Return the layer after which Kangaroo guesses."""
    layer: int = run.steps[0].panel["exit_layer"]
    return layer


def drafter_passes(run: Trace) -> int:
    """Count the passes of the drafter: with phrases as the panel counts them, else one for each guess."""
    counts = run.steps[-1].panel.get("counts", {})
    passes_counted: int = counts.get("passes", guessed(run))
    return passes_counted


def overwritten(run: Trace) -> int:
    """Count Jacobi guesses that were right at their position, after a wrong one, and changed in the next pass."""
    return sum(kept is False for kept in _early_guesses(run))


def too_early(run: Trace) -> int:
    """Count Jacobi guesses that were right at their position, but after a wrong one."""
    return len(_early_guesses(run))


def _early_guesses(run: Trace) -> list[bool]:
    """Return for each guess that was right too early whether the next step still guesses it there."""
    outcome: list[bool] = []
    for step, later in zip(run.steps, run.steps[1:], strict=False):
        start, text = step.start, _text(run)
        for node in step.nodes[1:]:
            at = start + node.depth - 1
            if node.accepted or at >= len(text) or node.token != text[at] or at < later.start:
                continue
            outcome.append(any(other.token == node.token and later.start + other.depth - 1 == at
                               for other in later.nodes[1:]))  # fmt: skip
    return outcome


def _text(run: Trace) -> tuple[int, ...]:
    """Return prompt and new tokens."""
    return (*run.header.prompt, *(token for step in run.steps for token in step.emitted))


# ---------------------------------------------------------------------------------------------------------- of a step


def accepted(at: At) -> int:
    """Count the guesses that were accepted."""
    return at.step.accepted


def drafted(at: At) -> int:
    """Count the guesses."""
    return at.step.drafted


def fed(at: At) -> int:
    """Count the rows that the target read."""
    return at.step.fed


def written(at: At) -> int:
    """Count the tokens that the step wrote."""
    return len(at.step.emitted)


def at_most(at: At) -> int:
    """Return the most tokens that the step could write: its longest branch, and one of the target's own."""
    return max(node.depth for node in at.step.nodes if node.role is not Role.EXPLORE) + 1


def wrote(at: At) -> str:
    """Return the text that the step wrote."""
    return shown("".join(at.run.texts[token] for token in at.step.emitted), 60)


def correction(at: At) -> str:
    """Return the last token of the step: the target's own."""
    return at.text(at.step.emitted[-1])


def first_rejected(at: At) -> NodeId:
    """Return the first guess that was not accepted though the one before it was."""
    path = set(at.step.path)
    for node, parent in enumerate(at.step.parents):
        if parent in path and node not in path and at.step.roles[node] is Role.VERIFY:
            return NodeId(node)
    raise FactError("every guess of this step was accepted")


def last_accepted(at: At) -> NodeId:
    """Return the last node of the accepted path."""
    return NodeId(at.step.path[-1])


def first_of_path(at: At) -> NodeId:
    """Return the first guess of the accepted path."""
    if len(at.step.path) < 2:
        raise FactError("this step accepted no guess")
    return NodeId(at.step.path[1])


def early_guess(at: At) -> NodeId:
    """Return the first guess that is right at its position though one before it is wrong, as the whole text shows."""
    for node, each in enumerate(at.step.nodes):
        position = at.step.start + each.depth - 1
        if node and not each.accepted and position < len(_text(at.run)) and each.token == _text(at.run)[position]:
            return NodeId(node)
    raise FactError("no guess of this step is right at its position but too early")


def right_after_wrong(at: At) -> int:
    """Count the guesses that the target agrees with, after one that it rejected."""
    return sum(fate is Fate.MATCHED for fate in node_fates(at.step))


def forward_ms(at: At) -> float:
    """Return the time of the target's pass."""
    return at.step.timing.forward_ms


def separate_ms(at: At, passes: int) -> float:
    """Return the time of so many passes like the step's, one after the other."""
    return passes * at.step.timing.forward_ms


def step_ms(at: At) -> float:
    """Return the time of the step."""
    return at.step.timing.total_ms


def ms_per_row(at: At) -> float:
    """Return the time of the target's pass for each row that it read."""
    return at.step.timing.forward_ms / at.step.fed


def matched_tokens(at: At) -> int:
    """Return how many of the text's last tokens were met before, where the guesses were copied from."""
    panel = at.step.panel
    length: int | None = panel.get("n") or panel.get(str(panel.get("chosen")), {}).get("p")
    return _given(length, "a match")


def step_drafter_passes(at: At) -> int:
    """Return in how many passes the drafter wrote its draft."""
    return len(at.step.panel["passes"])


def phrases_kept(at: At) -> int:
    """Count the phrases from a rejected draft that are new in the pool."""
    return sum(became == "added" for *_, became in at.step.panel["inspired"])


def staying(at: At) -> int:
    """Count the rows of the step whose keys and values stay: the root's and those of accepted guesses."""
    return at.step.accepted + 1


def stored(at: At) -> int:
    """Count the tokens whose keys and values are stored after the step."""
    return _cache(at).kept


def overwritten_tokens(at: At) -> int:
    """Count the tokens of the text whose slots the step overwrote."""
    return len(_cache(at).lost)


def oldest_seen(at: At) -> int:
    """Return the position of the oldest token that the root sees, counted from 0."""
    return _cache(at).seen


def _cache(at: At) -> CacheState:
    return cache_state(at.run.header, at.run.steps, at.step.index)


# ---------------------------------------------------------------------------------------------------------- of a node


def token(at: At, node: NodeId) -> str:
    """Return the token of a node."""
    return at.text(at.step.tokens[node])


def choice(at: At, node: NodeId) -> str:
    """Return the target's token after a node."""
    return at.text(target_choices(at.step)[node])


def likeliest(at: At, node: NodeId) -> str:
    """Return the token that the target finds likeliest after a node."""
    return at.text(at.step.choices[node])


def p(at: At, node: NodeId) -> float:
    """Return the target's probability of a guess."""
    return _given(at.step.p[node] if at.step.p else None, "the target's probability")


def q(at: At, node: NodeId) -> float:
    """Return the drafter's probability of a guess."""
    return _given(at.step.q[node] if at.step.q else None, "the drafter's probability")


def p_best(at: At, node: NodeId) -> float:
    """Return the target's probability of its likeliest token after a node."""
    return _given(at.step.top[node][0][1] if at.step.top else None, "the target's probabilities")


def u(at: At, node: NodeId) -> float:
    """Return the number that a sampled guess was tested with: it is kept where this is below min(1, p / q)."""
    return _given(at.step.u[node] if at.step.u else None, "the number that the guess was tested with")


def keep(at: At, node: NodeId) -> float:
    """Return the chance that a sampled guess is accepted: min(1, p / q)."""
    return min(1.0, p(at, node) / q(at, node))


def chance(at: At, node: NodeId) -> float:
    """Return what the drafter's panel says of a guess: its probability along its branch."""
    chances: list[float] = at.step.panel.get("chances") or at.step.panel.get("confidence") or []
    return _given(chances[node - 1] if node <= len(chances) else None, "the drafter's probability")


def cosine(at: At, node: NodeId) -> float:
    """Return how well the drafter's feature agrees with the target's at a node: the cosine between them."""
    cosines: list[float] = at.step.panel.get("agreement") or []
    return _given(cosines[node] if node < len(cosines) else None, "the drafter's features")


def table_entry(at: At, node: NodeId, rank: int) -> str:
    """Return an entry of Token Recycling's row for a node's token, counted from 1."""
    rows = {row["token"]: row["entries"] for row in at.step.panel["rows"]}
    entries: list[int] | None = rows.get(at.step.tokens[node])
    return at.text(_given(entries, "a row for this token")[rank - 1])


def entropy(at: At, node: NodeId) -> float:
    """Return the entropy of the target's distribution after a node, in nats."""
    return _given(at.step.entropy[node] if at.step.entropy else None, "the entropy")


def threshold(at: At, node: NodeId) -> float:
    """Return what a guess after a node must exceed under typical acceptance: min(epsilon, delta exp(-H))."""
    typical = _given(at.step.panel.get("typical"), "typical acceptance")
    epsilon, delta = float(typical["epsilon"]), float(typical["delta"])
    return min(epsilon, delta * exp(-entropy(at, node)))


def bound(at: At, node: NodeId) -> float:
    """Return the part of that threshold that depends on the entropy: delta exp(-H)."""
    return float(_given(at.step.panel.get("typical"), "typical acceptance")["delta"]) * exp(-entropy(at, node))


def mass(at: At, nodes: NodeRange) -> float:
    """Return the sum of the target's probabilities of some guesses."""
    return sum(p(at, NodeId(node)) for node in nodes)


def sees(at: At, node: NodeId) -> tuple[str, ...]:
    """Return the nodes of the step that a node's row sees, itself left out."""
    ancestors, parent = list[str](), at.step.parents[node]
    while parent >= 0:
        ancestors.append(f"n{parent}")
        parent = at.step.parents[parent]
    return tuple(reversed(ancestors))


def guesses_at_root(at: At) -> int:
    """Count the different guesses for the next token."""
    places = places_of(at.step)
    return len({places[node] for node, parent in enumerate(at.step.parents) if parent == 0})


def _given(value: _T | None, what: str) -> _T:
    if value is None:
        raise FactError(f"this run does not record {what}")
    return value
