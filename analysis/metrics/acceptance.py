"""Counts accepted guesses: by step, by position and by draft length, in all usual conventions."""

from __future__ import annotations

import numpy as np

from decoding.trace.metrics import compression_rate, consistent_acceptance
from decoding.trace.metrics import survival as rates_by_position

from . import intervals
from .columns import NO_GUESS, Array
from .guesses import branches
from .result import Condition, MetricResult, UnknownError, percent, result
from .selection import Selection

_LONGEST = 64  # positions that are listed
_PAIRS = 1000  # of a draft length and what came true of it
_MOST = 4096  # guesses of a step that are counted apart; no drafter makes more


def mean_acceptance_length(selection: Selection) -> MetricResult:
    """Compute tokens per step, the target's own included, in the conventions of several tools."""
    steps = selection.steps
    written, accepted = steps.number("written"), steps.number("accepted")
    guessing = selection.guessing
    ones = np.ones(len(steps))
    alone = guessing.all() and "steps.first" in steps.columns.reasons  # no record of the steps without a guess
    each = "tokens written per step with guesses" if alone else "tokens written per step (Spec-Bench, Kangaroo's CR)"
    sums = {
        each: (written, ones),
        "1 + accepted per step with guesses (vLLM)": (np.where(guessing, accepted + 1, 0), guessing),
        "accepted per step, the target's own token left out (gpt-fast)": (accepted, ones),
    }
    above = np.stack([selection.by_question(values) for values, _ in sums.values()], axis=1)
    below = np.stack([selection.by_question(counts) for _, counts in sums.values()], axis=1)
    value, low, high = intervals.ratio(above, below)
    rows = [list(row) for row in zip(sums, value, low, high, strict=True)]
    means = above[:, :1] / below[:, :1]  # REST's macro average: every question weighs the same
    macro = [float(bound[0]) for bound in intervals.ratio(means, np.ones_like(means))]
    rows.append(["tokens written per step, mean of the questions' means (REST, macro)", *macro])
    questions = len(selection.questions)
    sentence = f"A step{' with guesses' if alone else ''} writes {value[0]:.2f} tokens, including the target's own"
    if np.isfinite(low[0]):
        sentence += f" ({low[0]:.2f} to {high[0]:.2f} over {questions} questions)"
    if f"{value[1]:.2f}" != f"{value[0]:.2f}" and guessing.any():
        sentence += f"; as vLLM counts, 1 + accepted guesses per step with guesses, {value[1]:.2f}"
    interval = (float(low[0]), float(high[0]))
    columns = ("counted as", "tokens", "low", "high")
    return result(f"{sentence}.", value=value[0], interval=interval, unit="tokens", columns=columns, rows=rows)


def draft_acceptance_rate(selection: Selection) -> MetricResult:
    """Divide accepted guesses by drafted ones."""
    accepted, drafted = guesses_by_run(selection)
    above, below = selection.runs_by_question(accepted), selection.runs_by_question(drafted)
    if not below.any():
        raise UnknownError(NO_GUESS)
    value, low, high = (float(number) for number in intervals.ratio(above, below))
    sentence = f"{above.sum():,.0f} of {below.sum():,.0f} guesses were accepted."
    if branches(selection):
        sentence += " In a tree at most one guess per position is right: compare trees by acceptance length."
    return result(sentence, value=value, interval=(low, high), unit="share")


def guesses_by_run(selection: Selection) -> tuple[Array, Array]:
    """Sum accepted and drafted guesses by run, 0 where unknown; some records count them only for whole runs."""
    steps, runs = selection.steps, selection.runs
    drafted, accepted = steps.maybe("drafted"), steps.maybe("accepted")
    by_steps = (selection.by_run(np.isnan(drafted + accepted)) == 0) & (selection.by_run(np.ones(len(steps))) > 0)
    by_runs = ~by_steps & selection.complete & ~np.isnan(runs.maybe("drafted")) & ~np.isnan(runs.maybe("accepted"))
    if not (by_steps | by_runs).any():
        raise steps.lacking("drafted")
    summed = (selection.by_run(np.nan_to_num(values)) for values in (accepted, drafted))
    whole = (np.nan_to_num(runs.maybe(name)) for name in ("accepted", "drafted"))
    one, other = (
        np.where(by_steps, sums, np.where(by_runs, counts, 0)) for sums, counts in zip(summed, whole, strict=True)
    )
    return one, other


def survival(selection: Selection) -> MetricResult:
    """Compute the share of steps with guesses that accepted at least i of them: vLLM's rate by position."""
    accepted, guessing = selection.steps.number("accepted"), selection.guessing
    if not guessing.any():
        raise UnknownError(NO_GUESS)
    counts = _counts(accepted[guessing])
    reached = counts[::-1].cumsum()[::-1][1:]
    if not len(reached):
        raise UnknownError("no guess of this selection was accepted")
    low, high = intervals.wilson(reached, np.full(len(reached), counts.sum()))
    shares = rates_by_position(counts.tolist())
    rows = [
        [place + 1, int(reached[place]), int(counts.sum()), shares[place], low[place], high[place]]
        for place in range(min(_LONGEST, len(reached)))
    ]
    columns = ("position", "accepted", "steps", "share", "low", "high")
    where = [[("steps", "accepted", ">=", row[0])] for row in rows]
    half = next((row[0] for row in rows if row[3] < 0.5), None)
    sentence = f"The first guess was accepted in {percent(rows[0][3])} of {rows[0][2]:,} steps"
    sentence += f"; in fewer than half from guess {half} on." if half and half > 1 else "."
    return result(sentence, columns=columns, rows=rows, where=where)


def conditional_acceptance(selection: Selection) -> MetricResult:
    """Compute, of the steps that were right up to a position, the share that was right there too."""
    asked, right = positions(selection, np.zeros(len(selection.steps), np.int64), 1)
    asked, right = asked[0], right[0]
    low, high = intervals.wilson(right, asked)
    rows = [
        [place + 1, int(right[place]), int(asked[place]), right[place] / asked[place], low[place], high[place]]
        for place in range(min(_LONGEST, len(asked)))
        if asked[place]
    ]
    if not rows:
        raise UnknownError("no guess of this selection was judged")
    columns = ("position", "accepted", "judged", "share", "low", "high")
    where = [judged_at(selection, row[0]) for row in rows]
    first, last = rows[0], rows[-1]
    sentence = f"Guess 1 is right in {percent(first[3])} of {first[2]:,} steps"
    if last is not first:
        sentence += f", guess {last[0]} in {percent(last[3])} of the {last[2]:,} in which all earlier ones were"
    return result(f"{sentence}.", columns=columns, rows=rows, where=where)


def consistent_token_acceptance(selection: Selection) -> MetricResult:
    """Compute CTAR(w) of the Kangaroo paper."""
    written = _counts(selection.steps.number("written"))
    passes = {tokens: count for tokens, count in enumerate(written.tolist()) if count}
    widest = min(_LONGEST, max(len(written) - 2, 1))
    rows = [
        [w, consistent_acceptance(passes, w), sum(n for tokens, n in passes.items() if tokens > w)]
        for w in range(1, widest + 1)
    ]
    for row in rows:
        row += [float(bound) for bound in intervals.wilson(np.array(row[2]), written.sum())]
    where = [[("steps", "written", ">", row[0])] for row in rows]
    rate = compression_rate(passes)
    sentence = f"{percent(rows[0][1])} of all passes wrote more than one token; the compression rate is {rate:.2f}."
    return result(sentence, columns=("w", "share", "steps", "low", "high"), rows=rows, where=where)


def acceptance_histogram(selection: Selection) -> MetricResult:
    """Count the steps with guesses that accepted exactly j."""
    guessing = selection.guessing
    counts = _counts(selection.steps.number("accepted")[guessing])
    if not len(counts):
        raise UnknownError(NO_GUESS)
    rows = [[accepted, count, count / counts.sum()] for accepted, count in enumerate(counts.tolist())]
    counted = not np.isnan(selection.steps.maybe("drafted")).all()
    some: list[Condition] = [("steps", "drafted", ">", 0)] if counted else []
    where = [[("steps", "accepted", "=", row[0]), *some] for row in rows]
    without = int((~guessing).sum())
    sentence = f"{percent(rows[0][2])} of the steps with guesses accepted none"
    sentence += f"; {without:,} steps had no guess." if without else "."
    return result(sentence, columns=("accepted", "steps", "share"), rows=rows, where=where)


def histogram_by_draft_length(selection: Selection) -> MetricResult:
    """Compute the acceptance histogram for each number of guesses."""
    steps = selection.steps
    drafted, accepted = steps.number("drafted"), steps.number("accepted")
    some = drafted > 0
    if not some.any():
        raise steps.lacking("drafted") if np.isnan(drafted).any() else UnknownError(NO_GUESS)
    pairs = np.minimum(np.stack([drafted[some], accepted[some]]), _MOST).astype(np.int64)
    cells, counts = np.unique(pairs[0] * (_MOST + 1) + pairs[1], return_counts=True)
    most = np.sort(np.argsort(-counts, kind="stable")[:_PAIRS])
    rows = [
        [cell // (_MOST + 1), cell % (_MOST + 1), count]
        for cell, count in zip(cells[most].tolist(), counts[most].tolist(), strict=True)
    ]
    where = [[("steps", "drafted", "=", row[0]), ("steps", "accepted", "=", row[1])] for row in rows]
    lengths = len({row[0] for row in rows})
    sentence = (
        f"Drafts have {lengths} lengths, up to {rows[-1][0]}" if lengths > 1 else f"Drafts have {rows[0][0]} guesses"
    )
    unknown = int((np.isnan(drafted) & (accepted > 0)).sum())
    sentence += f"; {unknown:,} more steps are not recorded." if unknown else "."
    return result(sentence, columns=("drafted", "accepted", "steps"), rows=rows, where=where)


def fed_per_token(selection: Selection) -> MetricResult:
    """Count the rows that the target read for each token written."""
    steps = selection.steps
    fed, written = steps.number("fed"), steps.number("written")
    later = (steps.number("step") > 0) & ~np.isnan(fed)
    if not written[later].any():
        raise UnknownError("only the first steps of this selection count the rows that the target read")
    above, below = (selection.by_question(values[later], later) for values in (fed, written))
    value, low, high = (float(number) for number in intervals.ratio(above, below))
    sentence = f"The target reads {value:.2f} rows for each token; their cost depends on how full its passes are."
    return result(sentence, value=value, interval=(low, high), unit="rows per token")


def positions(selection: Selection, place: Array, size: int) -> tuple[Array, Array]:
    """Count by group and position the steps in which the target judged a guess there, and those in which it agreed.

    `place` gives every step one of `size` places, or -1. Where the record has nodes, these say how deep a tree went on;
    else a draft is taken for a chain.
    """
    steps = selection.steps
    accepted = np.minimum(steps.number("accepted"), _LONGEST).astype(np.int64)
    deepest = np.where(selection.guessing, accepted, 0)
    recorded = np.zeros(len(steps), bool)
    if len(selection.nodes):
        recorded[selection.step_of_node] = True
        judged = np.flatnonzero(selection.guesses & (selection.nodes.number("judged") > 0))
        depth = np.minimum(selection.nodes.number("depth")[judged], _LONGEST).astype(np.int64)
        np.maximum.at(deepest, selection.step_of_node[judged], depth)
    drafted = steps.maybe("drafted")
    if np.isnan(drafted[~recorded]).any():
        raise steps.lacking("drafted")
    chain = np.minimum(accepted + 1, np.minimum(np.nan_to_num(drafted), _LONGEST).astype(np.int64))
    deepest = np.where(recorded, deepest, np.maximum(chain, accepted))
    most, some = int(deepest.max(initial=0)), place >= 0
    place = place[some]
    return _reached(place, deepest[some], size, most), _reached(place, accepted[some], size, most)


def judged_at(selection: Selection, position: int) -> list[Condition]:
    """Return the conditions of a step in which the target judged a guess there."""
    if len(selection.nodes):
        return [("nodes", "role", "=", "verify"), ("nodes", "judged", "=", True), ("nodes", "depth", "=", position)]
    return [("steps", "accepted", ">=", position - 1), ("steps", "drafted", ">=", position)]


def _reached(place: Array, depth: Array, size: int, most: int) -> Array:
    """Count by group and position, from 1, the steps that went at least as deep."""
    cells = np.bincount(place * (most + 1) + np.minimum(depth, most), minlength=size * (most + 1))
    return np.asarray(cells.reshape(size, most + 1)[:, ::-1].cumsum(1)[:, ::-1][:, 1:])


def _counts(values: Array) -> Array:
    return np.bincount(np.minimum(values, _MOST).astype(np.int64))
