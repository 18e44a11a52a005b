"""Count what many runs do, for lessons that need more runs than are worth recording: assets/lessons/counts.json."""

from __future__ import annotations

from collections import Counter
from typing import Any

from app.examples import EXAMPLES
from decoding.engine import Engine
from decoding.types import JSON
from tools.gallery_recipes import FEW_ROWS, SHARED_PROMPTS
from viz.lessons.sources import RunLibrary

Counts = dict[str, dict[str, int]]

ACCEPTANCES = ("lossless", "typical")
_PLACE = 4  # tokens of the answer before the one whose successor is counted
_WARM = 0.7  # the temperature of medusa-typical
RAIN = ({"role": "user", "content": next(prompt.text for prompt in SHARED_PROMPTS if prompt.id == "rain")},)


def count_successors(pocket: Engine, runs: int = 1000) -> Counts:
    """Count the tokens after "cards" in the answer of the recording medusa-typical, under both acceptance rules."""
    trace = RunLibrary().trace("medusa-typical")
    text = [*trace.header.prompt, *trace.ids[:_PLACE]]
    counts: Counts = {}
    for acceptance in ACCEPTANCES:
        tally = Counter[str]()
        for seed in range(runs):
            params: dict[str, JSON] = {**trace.header.params, "acceptance": acceptance}
            run = pocket.decode(text, "medusa", params, {"temperature": _WARM, "seed": seed}, 8, record="off")
            while len(run.ids) < 2:
                next(run)
            assert run.ids[0] == trace.ids[_PLACE], "the token before is certain"
            tally[pocket.codec.piece(run.ids[1]).strip()] += 1
        counts[f"after-cards-{acceptance}"] = dict(tally.most_common())
    return counts


def count_rates(pocket: Engine, runs: int = 20) -> Counts:
    """Count tokens and passes of Medusa's two acceptance rules over the temperature, in answers to the sum."""
    counts: Counts = {}
    for acceptance in ACCEPTANCES:
        for temperature in (0.25, 0.5, _WARM, 1.0):
            tally = Counter[str]()
            for seed in range(runs):
                sampling = {"temperature": temperature, "seed": seed}
                run = pocket.decode(
                    EXAMPLES["sum"].prompt, "medusa", {"acceptance": acceptance}, sampling, 160, record="off"
                )
                tally.update(passes=len(list(run)), tokens=len(run.ids))
            counts[f"medusa-{acceptance}-{temperature}"] = dict(tally)
    return counts


def count_phrases(pocket: Engine) -> Counts:
    """Count the passes and rows of Ouroboros by the number of phrases that it adds to a draft, in the sum."""
    counts: Counts = {}
    for phrases in (0, 1, 3, 6, 12):
        run = pocket.decode(EXAMPLES["sum"].prompt, "ouroboros", {"K": phrases}, None, 160, record="off")
        first, *later = run
        rows, tokens = sum(step.fed for step in later), sum(len(step.emitted) for step in later)
        counts[f"phrases-{phrases}"] = {"passes": len(later) + 1, "rows": rows, "tokens": tokens}
    return counts


def count_askings(english: Engine, times: int = 3) -> Counts:
    """Count the passes of methods that remember, each time that they are asked about the rain."""
    counts: Counts = {}
    for method in ("suffix", "token_recycling"):
        memory, passes = dict[str, Any](), dict[str, int]()
        for time in range(1, times + 1):
            run = english.generate(RAIN, method, FEW_ROWS.get(method, {}), None, 128, record="off", memory=memory)
            passes[str(time)] = run.summary.steps
        counts[f"asked-{method}"] = passes
    return counts
