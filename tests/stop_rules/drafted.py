"""Chains that a drafter of known rules would leave: it writes from the text alone, so any settings can be simulated."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.metrics import Selection
from tests.metrics.tables import Row, guess, root, run, selection

GREEDY = '{"temperature": 0}'


@dataclass(frozen=True)
class ChainStep:
    """A step of a simulated run."""

    start: int
    confidence: tuple[float, ...]
    accepted: int


@dataclass(frozen=True)
class PureDrafter:
    """Whether each token of a text is guessed, how sure the drafter is of it, and of what it writes after a mistake."""

    right: Sequence[bool]
    sure: Sequence[float]
    lost: Sequence[Sequence[float]]

    @classmethod
    def random(cls, seed: int, tokens: int, rate: float) -> PureDrafter:
        """Draw one that is right at this rate."""
        chance = random.Random(seed)
        right = [chance.random() < rate for _ in range(tokens)]
        sure = [round(chance.uniform(0.1, 1.0) if hit else chance.uniform(0.0, 0.8), 6) for hit in right]
        return cls(right, sure, [[round(chance.random(), 6) for _ in range(16)] for _ in range(tokens)])

    def steps(self, gamma: int, threshold: float) -> list[ChainStep]:
        """Decode with these settings, greedily, until the budget is used up."""
        steps, start, tokens = list[ChainStep](), 0, len(self.right)
        while start < tokens:
            shares, lost = list[float](), None
            for place in range(min(gamma, tokens - start - 1)):
                at = start + place
                shares.append(self.sure[at] if lost is None else self.lost[lost][at - lost])
                if lost is None and not self.right[at]:
                    lost = at
                if shares[-1] < threshold:
                    break
            accepted = len(shares) if lost is None else min(len(shares), lost - start)
            steps.append(ChainStep(start, tuple(shares), accepted))
            start += accepted + 1
        return steps


def recorded(
    runs: Sequence[Sequence[ChainStep]],
    method: str = "draft_model",
    params: Mapping[str, object] | str | None = None,
    *,
    finish: str = "length",
    times: tuple[float, float] = (1.0, 10.0),
    confident: bool = True,
    beside: bool = False,
    **of_runs: object,
) -> Selection:
    """Return simulated runs as a record, `beside` the same texts decoded autoregressively or alone.

    `times` are the milliseconds of a guess and of a pass.
    """
    listed, steps, nodes = list[Row](), list[Row](), list[Row]()
    settings = params if isinstance(params, str | None) else json.dumps(params)
    about = {"params": settings, "sampling": GREEDY, "lossless": True, "finish": finish} | of_runs
    for number, chains in enumerate(runs):
        listed.append(run(number, f"q{number}", method=method, **about))
        for place, chain in enumerate(chains):
            drafted = len(chain.confidence)
            draft, forward = times[0] * drafted, times[1]
            spent = {"draft_ms": draft, "forward_ms": forward, "total_ms": draft + forward}
            counts = {"accepted": chain.accepted, "written": chain.accepted + 1, "drafted": drafted}
            steps.append({"run": number, "step": place, "start": 10 + chain.start} | counts | spent)
            nodes.append(root(place, of=number))
            for depth, share in enumerate(chain.confidence, start=1):
                fate = {"accepted": depth <= chain.accepted, "judged": depth <= chain.accepted + 1}
                shown = {"confidence": share} if confident else {}
                nodes.append(guess(depth, depth - 1, depth, of=number, at=place, **fate, **shown))
    for number, chains in enumerate(runs if beside else (), start=len(runs)):
        listed.append(run(number, f"q{number - len(runs)}", method="autoregressive", **about | {"params": "{}"}))
        spent = {"draft_ms": 0.0, "forward_ms": times[1], "total_ms": times[1]}
        for place in range(chains[-1].start + chains[-1].accepted + 1):
            counts = {"accepted": 0, "written": 1, "drafted": 0}
            steps.append({"run": number, "step": place, "start": 10 + place} | counts | spent)
            nodes.append(root(place, of=number))
    return selection(listed, steps, nodes)
