"""The facts about a step of a recorded run and about its nodes, as pure functions."""

from __future__ import annotations

from math import exp

from decoding.types import Role

from ..cache_slots import CacheState, cache_state
from ..fates import node_fates, places_of, target_choices
from ..palette import Fate
from ..token_text import shown
from .fact_types import At, FactError, NodeId, NodeRange, given, text_of


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
    """Return the most tokens that the step could write: its longest branch, and the target's own token."""
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
        if node and not each.accepted and position < len(text_of(at.run)) and each.token == text_of(at.run)[position]:
            return NodeId(node)
    raise FactError("no guess of this step is right at its position but too early")


def right_after_wrong(at: At) -> int:
    """Count the guesses that the target agrees with, after one that it rejected."""
    return sum(fate is Fate.MATCHED for fate in node_fates(at.step))


def forward_ms(at: At) -> float:
    """Return the time of the target's pass."""
    return at.step.timing.forward_ms


def separate_ms(at: At, passes: int) -> float:
    """Return the time of `passes` passes like the step's, one after the other."""
    return passes * at.step.timing.forward_ms


def step_ms(at: At) -> float:
    """Return the time of the step."""
    return at.step.timing.total_ms


def ms_per_row(at: At) -> float:
    """Return the time of the target's pass for each row that it read."""
    return at.step.timing.forward_ms / at.step.fed


def matched_tokens(at: At) -> int:
    """Return how many of the text's last tokens match where the guesses were copied from."""
    panel = at.step.panel
    length: int | None = panel.get("n") or panel.get(str(panel.get("chosen")), {}).get("p")
    return given(length, "a match")


def step_drafter_passes(at: At) -> int:
    """Return the number of passes in which the drafter wrote its draft."""
    return len(at.step.panel["passes"])


def phrases_kept(at: At) -> int:
    """Count the phrases from a rejected draft that are new in the pool."""
    return sum(became == "added" for *_, became in at.step.panel["inspired"])


def staying(at: At) -> int:
    """Count the rows whose keys and values stay in the cache: the root's and those of accepted guesses."""
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
    return given(at.step.p[node] if at.step.p else None, "the target's probability")


def q(at: At, node: NodeId) -> float:
    """Return the drafter's probability of a guess."""
    return given(at.step.q[node] if at.step.q else None, "the drafter's probability")


def p_best(at: At, node: NodeId) -> float:
    """Return the target's probability of its likeliest token after a node."""
    return given(at.step.top[node][0][1] if at.step.top else None, "the target's probabilities")


def u(at: At, node: NodeId) -> float:
    """Return the number that a sampled guess was tested with: it is kept if this is below min(1, p / q)."""
    return given(at.step.u[node] if at.step.u else None, "the number that the guess was tested with")


def keep(at: At, node: NodeId) -> float:
    """Return the chance that a sampled guess is accepted: min(1, p / q)."""
    return min(1.0, p(at, node) / q(at, node))


def chance(at: At, node: NodeId) -> float:
    """Return the probability of a guess along its branch, from the method's panel."""
    chances: list[float] = at.step.panel.get("chances") or at.step.panel.get("confidence") or []
    return given(chances[node - 1] if node <= len(chances) else None, "the drafter's probability")


def cosine(at: At, node: NodeId) -> float:
    """Return how well the drafter's feature agrees with the target's at a node: the cosine between them."""
    cosines: list[float] = at.step.panel.get("agreement") or []
    return given(cosines[node] if node < len(cosines) else None, "the drafter's features")


def table_entry(at: At, node: NodeId, rank: int) -> str:
    """Return an entry of Token Recycling's row for a node's token, counted from 1."""
    rows = {row["token"]: row["entries"] for row in at.step.panel["rows"]}
    entries: list[int] | None = rows.get(at.step.tokens[node])
    return at.text(given(entries, "a row for this token")[rank - 1])


def entropy(at: At, node: NodeId) -> float:
    """Return the entropy of the target's distribution after a node, in nats."""
    return given(at.step.entropy[node] if at.step.entropy else None, "the entropy")


def threshold(at: At, node: NodeId) -> float:
    """Return what a guess after a node must exceed under typical acceptance: min(epsilon, delta exp(-H))."""
    typical = given(at.step.panel.get("typical"), "typical acceptance")
    epsilon, delta = float(typical["epsilon"]), float(typical["delta"])
    return min(epsilon, delta * exp(-entropy(at, node)))


def bound(at: At, node: NodeId) -> float:
    """Return the part of that threshold that depends on the entropy: delta exp(-H)."""
    return float(given(at.step.panel.get("typical"), "typical acceptance")["delta"]) * exp(-entropy(at, node))


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
