"""Checks a step against itself: its times, its columns, its path, and the probabilities at every node."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from decoding.types import Role, Step, Trace

from .contradiction import Contradiction, differs
from .tested import untrue_tests

ROUNDED = 2e-6  # recorded probabilities have six decimals


def check_step(trace: Trace, step: Step) -> Iterator[Contradiction]:
    """Check one step of a record."""
    timing = step.timing
    phases = timing.draft_ms + timing.forward_ms + timing.accept_ms + timing.commit_ms
    if phases > timing.total_ms * 1.01 + 0.1:  # a device measures its part by a clock of its own
        yield Contradiction(
            step.index, "timing", f"spends {phases:.6g} ms in its phases, but {timing.total_ms:.6g} ms in all"
        )
    vocabulary = trace.header.model.vocabulary
    largest = max(step.used, default=-1)
    if largest >= vocabulary:
        yield Contradiction(step.index, "tokens", f"hold token {largest}, and the model has {vocabulary}")
    yield from _columns(trace.header.record, step)
    if not step.tokens:
        return
    rows = step.pending + len(step.tokens)
    if trace.header.ranks == 1 and (step.fed < rows or (step.fed > rows and trace.header.device == "cpu")):
        yield differs(step.index, "fed", step.fed, "the tokens before the root and the nodes", rows)
    yield from _acceptance(trace, step)
    yield from untrue_tests(trace, step)
    children: list[list[int]] = [[] for _ in step.tokens]
    for node, parent in enumerate(step.parents[1:], start=1):
        children[parent].append(node)
    for node, below in enumerate(children):
        if step.top:
            yield from _target(step, node, below, vocabulary)
        if step.top and step.draft_top:
            yield from _drafter(step, node, below)


def _columns(record: str, step: Step) -> Iterator[Contradiction]:
    """Check that a step has the columns of the record's level, and no others."""
    if bool(step.tokens) != (record != "off"):
        yield Contradiction(
            step.index, "tokens", f"are {'there' if step.tokens else 'missing'}, but the record is {record}"
        )
    for name in ("p", "q", "top"):
        if bool(getattr(step, name)) != (record == "full"):
            there = "is there" if getattr(step, name) else "is missing"
            yield Contradiction(step.index, name, f"{there}, but the record is {record}")


def _acceptance(trace: Trace, step: Step) -> Iterator[Contradiction]:
    """Check what was written against the tree and the target's choices."""
    if trace.header.sampling.get("temperature") == 0 and step.choices:
        for node, token in zip(step.path, step.emitted, strict=False):
            if step.choices[node] != token:
                why = f"is {token}, but choices[{node}] is {step.choices[node]}"
                yield Contradiction(step.index, "emitted", why)
    if trace.header.lossless and len(step.emitted) > step.accepted:
        last, bonus = step.path[-1], step.emitted[-1]
        for node, parent in enumerate(step.parents):
            if parent == last and step.roles[node] is Role.VERIFY and step.tokens[node] == bonus:
                yield Contradiction(step.index, "path", f"ends at node {last}, but guess {node} is the token after it")


def _target(step: Step, node: int, children: Sequence[int], vocabulary: int) -> Iterator[Contradiction]:
    """Check the target's probabilities at a node among themselves."""
    best, where = step.top[node], f"top[{node}]"
    if not best:
        return
    shares = [share for _, share in best]
    if shares != sorted(shares, reverse=True) or len({token for token, _ in best}) < len(best):
        yield Contradiction(step.index, where, "must list different tokens, the likeliest first")
        return
    left = max(0.0, 1.0 - sum(shares))
    if sum(shares) > 1.0 + ROUNDED * len(shares):
        yield Contradiction(step.index, where, f"adds up to {sum(shares):.6g}, more than all")
    if step.choices:
        choice = dict(best).get(step.choices[node], shares[-1])
        if choice < shares[0] - ROUNDED:
            yield differs(step.index, f"choices[{node}]", step.choices[node], f"the shares in {where}", best[0][0])
    if step.entropy:
        listed_entropy = sum(-share * math.log(share) for share in shares if share > 0)
        others = vocabulary - len(best)
        # What is left lies on as few tokens as can be, none likelier than those listed, or on all of them alike.
        low = listed_entropy + (left * -math.log(max(shares[-1], 1e-12)) if left and shares[-1] > 0 else 0.0)
        high = listed_entropy + (left * math.log(others / left) if left > 0 and others > 0 else 0.0)
        slack = 1e-4 * (1.0 + math.log(vocabulary))
        if not low - slack <= step.entropy[node] <= high + slack:
            yield Contradiction(
                step.index,
                f"entropy[{node}]",
                f"is {step.entropy[node]:.6g}, but {where} allows from {low:.6g} to {high:.6g} nats",
            )
    listed = dict(best)
    for child in children if step.p else ():
        yield from _probability(step, child, listed, shares[-1])


def _probability(step: Step, child: int, best: dict[int, float], least: float) -> Iterator[Contradiction]:
    p = step.p[child]
    if p is None:
        yield Contradiction(step.index, f"p[{child}]", "is missing")
        return
    listed = best.get(step.tokens[child])
    if listed is None and p > least + ROUNDED:
        yield Contradiction(step.index, f"p[{child}]", f"is {p:.6g}, but tokens of {least:.6g} are listed before it")
    elif listed is not None and abs(p - listed) > ROUNDED:
        yield differs(step.index, f"p[{child}]", p, "the best tokens", listed)


def _drafter(step: Step, node: int, children: Sequence[int]) -> Iterator[Contradiction]:
    """Check the drafter's probabilities after a node among themselves and against the target's."""
    best, where = step.draft_top[node], f"draft_top[{node}]"
    if not best:
        return
    shares = {token: share for token, share, _ in best}
    if [*shares.values()] != sorted(shares.values(), reverse=True) or sum(shares.values()) > 1.0 + 1e-4:
        yield Contradiction(step.index, where, "must list shares of at most 1 together, the likeliest token first")
        return
    top, least = dict(step.top[node]), step.top[node][-1][1] if step.top[node] else 1.0
    for token, _, p in best:
        if token in top and abs(p - top[token]) > ROUNDED:
            yield differs(step.index, f"{where} of token {token}", p, "the target's best tokens", top[token])
        elif token not in top and p > least + ROUNDED:
            yield Contradiction(
                step.index, where, f"has p {p:.6g} of token {token}, which is in no list of the target's"
            )
    drawn = [child for child in children if step.q and step.q[child] is not None]
    for child in drawn if len(drawn) == 1 else ():
        q, listed = step.q[child] or 0.0, shares.get(step.tokens[child])
        if listed is not None and abs(q - listed) > ROUNDED:
            yield differs(step.index, f"q[{child}]", q, "the drafter's best tokens", listed)
        elif listed is None and q > min(shares.values()) + ROUNDED:
            yield Contradiction(step.index, f"q[{child}]", f"is {q:.6g}, but is not among the drafter's best tokens")
    overlap = step.overlap[node] if step.overlap and len(drawn) < 2 else None
    if overlap is not None:
        both = sum(min(share, p) for _, share, p in best)
        most = both + min(1.0 - sum(shares.values()), 1.0 - sum(p for _, _, p in best))
        if not both - 1e-4 <= overlap <= most + 1e-4:
            why = f"is {overlap:.6g}, but can be from {both:.6g} to {most:.6g}"
            yield Contradiction(step.index, f"overlap[{node}]", why)
