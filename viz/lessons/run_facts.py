"""The facts that lessons state of recorded runs, as pure functions.

Every public function of this file, of `step_facts.py` and of `formulas.py` is a fact, and there are no others.
`fact_reader.py` reads their arguments by the types of their parameters.
"""

from __future__ import annotations

from statistics import median

from decoding.types import Step, Trace

from .fact_types import At, FactError, RunNames, given, text_of
from .step_facts import ms_per_row, overwritten_tokens


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
    """Count the rejected guesses with only accepted ones before them: at most one a step."""
    return sum(step.accepted < step.drafted and len(step.emitted) > step.accepted for step in run.steps)


def tokens_per_pass(run: Trace) -> float:
    """Return new tokens divided by passes."""
    return new_tokens(run) / passes(run)


def rows_per_token(run: Trace) -> float:
    """Return the rows that the target read for one new token, the prompt's left out."""
    later = run.steps[1:]
    return sum(step.fed for step in later) / sum(len(step.emitted) for step in later)


def rows_ms(run: Trace, rows: int) -> float:
    """Return the median time of the target's passes over `rows` rows, the first pass left out."""
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
    """Count the steps after the first that read `rows` rows."""
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


def draft_ms(run: Trace) -> float:
    """Return the median time that drafting took in a step, the first left out."""
    return median(step.timing.draft_ms for step in run.steps[1:])


def draft_growth(run: Trace, other: Trace) -> float:
    """Return how many times as long drafting took in a step of a run as in one of another."""
    return draft_ms(run) / draft_ms(other)


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
    return given(run.header.model.pass_bytes, "the bytes that a pass reads") / 1e6


def token_bytes(run: Trace) -> int:
    """Return the bytes of one token's keys and values."""
    return given(run.header.model.token_bytes, "the bytes of a cached token")


def cache_mb(run: Trace, tokens: int) -> float:
    """Return the megabytes that the keys and values of `tokens` tokens take."""
    return tokens * token_bytes(run) / 1e6


def cache_share(run: Trace, tokens: int) -> float:
    """Return the share of a pass's reads, in percent, that the keys and values of `tokens` tokens are."""
    cached = cache_mb(run, tokens)
    return 100 * cached / (cached + pass_mb(run))


def many_heads_bytes(run: Trace, heads: int) -> int:
    """Return the bytes of one token's keys and values if this many query heads did not share theirs."""
    return heads * token_bytes(run)


def slots(run: Trace) -> int:
    """Return how many tokens the cache has room for; of a cache that rolls, before it begins again."""
    return given(run.header.slots or None, "a cache that rolls")


def sight(run: Trace) -> int:
    """Return how many tokens a row sees: itself and those before it."""
    return given(run.header.window, "a sliding window")


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
    return given(tokens, "the drafter's vocabulary")


def unsayable(run: Trace) -> int:
    """Count the tokens of the text that the drafter's vocabulary lacks."""
    return sum(token in step.panel["unsayable"] for step in run.steps for token in step.emitted)


def doubted(run: Trace) -> int:
    """Count the steps in which Kangaroo stopped because its last guess was unsure."""
    return len(_doubted(run))


def doubted_kept(run: Trace) -> int:
    """Count the steps in which the unsure guess that Kangaroo stopped at was accepted anyway."""
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
    """Count the passes of the drafter: with phrases as the panel counts them, one for a block, else one for a guess."""
    if "block" in run.steps[-1].panel:
        return sum(step.drafted > 0 for step in run.steps)
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
        start, text = step.start, text_of(run)
        for node in step.nodes[1:]:
            at = start + node.depth - 1
            if node.accepted or at >= len(text) or node.token != text[at] or at < later.start:
                continue
            outcome.append(any(other.token == node.token and later.start + other.depth - 1 == at
                               for other in later.nodes[1:]))  # fmt: skip
    return outcome
