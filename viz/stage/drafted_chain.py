"""What the stages of drafted chains share: the numbers below the tokens, and where the target chose another token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from decoding.types import Header, Step

from ..boards.nodes import NodeIndex
from ..cells import StepPhase
from ..run_state import RunState
from ..wording import odds, quote
from .parts import GUESSES, depths_of, position_name
from .scene import Scene, ZoneCell

LABEL = -0.15  # where labels beside the chain end
_MIDDLE = 0.46  # of a cell, in columns
_LINE = 0.55  # of a row, for words
_NUMBERS = (0.92, 1.5, 2.1, 2.7)  # rows of q, p, the chance and u below the drafted tokens


def is_sampled(header: Header) -> bool:
    """Return True if the run draws its tokens."""
    return bool(header.sampling.get("temperature"))


def chain_of(step: Step) -> list[int]:
    """Return the drafted nodes in their order."""
    below, chain = NodeIndex(step).below, list[int]()
    while children := below.get(chain[-1] if chain else 0):
        chain.append(children[0])
    return chain


def draw_numbers(
    scene: Scene,
    run: RunState,
    step: Step,
    shown: Sequence[int],
    sure: Mapping[int, float],
    *,
    are_q: bool,
    beside: bool = True,
) -> None:
    """Write the numbers that decide below the drafted tokens.

    `sure` is how sure the drafter was of each, as q or as its confidence. What the numbers are is written `beside`
    them, or below.
    """
    sampled, (first, second, third, fourth) = is_sampled(run.header), _NUMBERS
    depths = depths_of(step.parents)
    for node in shown:
        middle = depths[node] - 1 + _MIDDLE
        if node in sure:
            scene.word(f"{'q ' * are_q}{_short(sure[node])}", ZoneCell(GUESSES, middle, first), "middle")
        chance = _chance(step, node)
        if sampled and chance is not None and step.p:
            until: StepPhase | None = None if depths[node] <= step.accepted + 1 else "accept"  # it was not tested
            write = partial(scene.word, side="middle", since="answers", until=until)
            write(f"p {_short(step.p[node] or 0)}", ZoneCell(GUESSES, middle, second))
            write(_short(chance), ZoneCell(GUESSES, middle, third), loud=True)
        if step.u and (u := step.u[node]) is not None:
            scene.word(f"u {u:.2f}", ZoneCell(GUESSES, middle, fourth), "middle", loud=True, since="accept")
    known, tested = any(_chance(step, node) is not None for node in shown), any(u is not None for u in step.u)
    if not beside:
        place = ZoneCell(GUESSES, 0, fourth + _LINE)
        scene.word("kept with a chance of min(1, p/q)" * known, place, since="answers", until="accept")
        scene.word("kept if u is less than min(1, p/q)" * (known and tested), place, since="accept")
        return
    name = partial(scene.word, side="left")
    name("confidence" * (not are_q and len(shown) > 0), ZoneCell(GUESSES, LABEL, first))
    name("chance: min(1, p/q)" * (sampled and known), ZoneCell(GUESSES, LABEL, third), since="answers")
    name("drawn: kept if less" * tested, ZoneCell(GUESSES, LABEL, fourth), since="accept")


def _short(p: float) -> str:
    """Return a probability in the width of a cell."""
    return f"{p:.2f}" if p >= 0.005 else "<.01"


def _chance(step: Step, node: int) -> float | None:
    """Return the chance that a sampled token was accepted, if it is recorded."""
    p, q = step.p[node] if step.p else None, step.q[node] if step.q else None
    return min(1.0, p / q) if p is not None and q else None


def verdict_row(header: Header, *, beside: bool = True) -> float:
    """Return the row of the verdict, below the numbers."""
    return _NUMBERS[3] + 0.7 + _LINE * (not beside) if is_sampled(header) else _NUMBERS[1] + 0.2


def draw_verdict(
    scene: Scene, run: RunState, step: Step, chain: Sequence[int], y: float, drawn: Mapping[int, str]
) -> None:
    """Write in a row where the target chose another token; a line joins it to the piece that `drawn` names."""
    if step.accepted == len(step.emitted):
        return
    chosen = step.emitted[step.accepted]
    if step.accepted >= len(chain):
        words = "the target agrees" + (", and adds a token" if len(chain) > 1 else "")
        scene.word(words, ZoneCell(GUESSES, 0, y), since="accept")
        return
    wrong = chain[step.accepted]
    if wrong in drawn:
        scene.link(position_name(step.start + step.accepted), drawn[wrong], "against", since="accept")
    scene.word(
        f"{'drew ' * is_sampled(run.header)}{quote(run, [chosen])}, not {quote(run, [step.tokens[wrong]])}"
        f"{_odds(run, step, chosen, wrong)}",
        ZoneCell(GUESSES, 0, y),
        loud=True,
        since="accept",
    )


def _odds(run: RunState, step: Step, chosen: int, wrong: int) -> str:
    """Return the probabilities that decided, of a greedy run."""
    p, top = step.p[wrong] if step.p else None, step.top[step.path[-1]] if step.top else ()
    if is_sampled(run.header) or p is None or chosen not in dict(top):
        return ""
    return f": {odds(dict(top)[chosen], p)}"
