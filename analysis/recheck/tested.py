"""Checks the tests of sampled guesses in a record: a guess is accepted if and only if u * q < p."""

from __future__ import annotations

from collections.abc import Iterator

from decoding.types import Role, Step, Trace

from .contradiction import Contradiction

_SLACK = 5e-6  # of p - u * q: each of the three has six decimals


def untrue_tests(trace: Trace, step: Step) -> Iterator[Contradiction]:
    """Check which guesses a step tested, and the outcome.

    Guesses that have a q are tested in their order at each place that the walk reaches, until one is accepted. The
    first is tested by the target's p and its own q. For those after it p is a residual, which is not recorded, but no
    token is in it that p lacks. A rejected guess leaves nothing of its own token, so whether a guess was accepted is
    whether its token was written.
    """
    header = trace.header
    if not step.u or header.ranks > 1:  # several ranks test their own parts of the tree
        return
    if header.sampling.get("temperature") == 0 or not header.lossless:
        if any(u is not None for u in step.u):
            yield Contradiction(step.index, "u", "holds numbers, but the run's rule tests no guess by one")
        return
    children: dict[int, list[int]] = {}
    for node, role in enumerate(step.roles):
        if role is Role.VERIFY:
            children.setdefault(step.parents[node], []).append(node)
    here, reached = [0], set[int]()
    for written in step.emitted:
        guesses = [guess for node in here for guess in children.get(node, ())]
        reached.update(guesses)
        yield from _at(step, guesses, written)
        here = [guess for guess in guesses if step.tokens[guess] == written]
    # A step that the end of the text cut has tested guesses behind it.
    reached.update(guess for node in here for guess in children.get(node, ()))
    whole = len(step.emitted) > step.accepted
    for node, u in enumerate(step.u):
        if u is not None and node not in reached and whole:
            yield Contradiction(step.index, f"u[{node}]", "is a number, but no walk along the path tests this guess")


def _at(step: Step, guesses: list[int], written: int) -> Iterator[Contradiction]:
    """Check the tests at one place, after which a token was written."""
    tested, accepted = 0, False
    for guess in guesses:
        q, u = (step.q[guess] if step.q else None), step.u[guess]
        if q is None or accepted:
            if u is not None:
                why = "its place was decided before it" if accepted else "it was not sampled"
                yield Contradiction(step.index, f"u[{guess}]", f"is {u:.6g}, but this guess needs no test: {why}")
            continue
        if u is None:
            yield Contradiction(step.index, f"u[{guess}]", "is missing, but this guess was sampled and is tested here")
            return
        accepted = step.tokens[guess] == written
        p = step.p[guess] if step.p else None
        if p is not None:
            yield from _outcome(step, guess, (u, q, p), accepted=accepted, first=tested == 0)
        tested += 1


def _outcome(
    step: Step, guess: int, numbers: tuple[float, float, float], *, accepted: bool, first: bool
) -> Iterator[Contradiction]:
    u, q, p = numbers
    passes = f"u {u:.6g} times q {q:.6g} is {{}} p {p:.6g}"
    if first and not accepted and u * q < p - _SLACK:
        yield Contradiction(
            step.index,
            f"u[{guess}]",
            f"accepts guess {guess}, since {passes.format('below')}, but its token is not written",
        )
    elif accepted and (u * q > p + _SLACK if first else p <= 0.0 and q > _SLACK and u * q > _SLACK):
        yield Contradiction(
            step.index,
            f"u[{guess}]",
            f"rejects guess {guess}, since {passes.format('not below')}, but its token is written",
        )
