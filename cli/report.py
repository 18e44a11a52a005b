"""Formats the summary of a run for the terminal."""

from __future__ import annotations

from decoding.trace.rescore import Rescore
from decoding.types import Header, Step, Summary

from .paint import Paint, one_line

_MOST_BARS = 8
_FINISH = {
    "length": "the budget is used up",
    "end_of_text": "the model ended its text",
    "stop": "a stop string occurred",
    "time": "the time limit was reached",
    "cancelled": "it was cancelled",
}


def summary_lines(paint: Paint, header: Header, steps: list[Step], summary: Summary, verdict: Rescore) -> str:
    """Format the lines of the summary."""
    per_step = f"{summary.mean_acceptance_length:.2f} tokens per step, including the target's own"
    lines = [
        paint.dim("─" * paint.width),
        _line("wrote", f"{summary.new_tokens} tokens in {summary.steps} steps; {_FINISH[summary.finish]}"),
        _line("acceptance", paint.bold(per_step.split(" tokens")[0]) + " tokens" + per_step.split(" tokens")[1]),
    ]
    if summary.draft_acceptance_rate is not None:
        accepted, drafted = sum(step.accepted for step in steps), sum(step.drafted for step in steps)
        lines.append(_line("", f"{accepted} of {drafted} guesses accepted ({summary.draft_acceptance_rate:.0%})"))
        lines += _histogram(paint, summary.acceptance_histogram)
    lines += _time(paint, summary)
    lines.append(_line("rescored", judgement(paint, verdict, greedy=header.sampling["temperature"] == 0)))
    if not header.lossless:
        lines.append(_line("lossless", "no: with typical acceptance, the distribution is not the target's own"))
    lines.append(paint.dim(_line("ran on", f"{one_line(header.model.name)}, {header.device}, {header.dtype}")))
    return paint.fit("\n".join(lines))


def judgement(paint: Paint, verdict: Rescore, *, greedy: bool) -> str:
    """Format the result of rescoring as a sentence."""
    claim = "the target's first choice" if greedy else "possible under the target's distribution"
    if verdict.violations:
        return paint(f"{verdict.violations} of {verdict.checked} tokens are not {claim}", "1", "166")
    ties = f" ({verdict.near_ties} within rounding noise of it)" if verdict.near_ties else ""
    return f"all {verdict.checked} tokens are {claim}, by one plain pass{ties}"


def _histogram(paint: Paint, counts: tuple[int, ...]) -> list[str]:
    """Draw the histogram of accepted guesses per step as bars; the largest counts share the last one."""
    bars = [(str(accepted), count) for accepted, count in enumerate(counts[:_MOST_BARS])]
    if len(counts) > _MOST_BARS:
        bars.append((f"{_MOST_BARS}+", sum(counts[_MOST_BARS:])))
    scale = (paint.width - 36) / max(count for _, count in bars)
    lines = []
    for index, (name, count) in enumerate(bars):
        bar = "█" * round(count * scale) or ("▏" if count else "")
        head = "guesses accepted" if index == 0 else "by a step" if index == 1 else ""
        lines.append(f"  {head:16} {name:>3} {paint(bar, colour='36')} {count}")
    return lines


def _time(paint: Paint, summary: Summary) -> list[str]:
    """Format the times of the phases."""
    timing = summary.timing
    parts = {
        "draft": timing.draft_ms,
        "forward": timing.forward_ms,
        "accept": timing.accept_ms,
        "commit": timing.commit_ms,
        "other": timing.other_ms,
    }
    total = sum(parts.values())
    prefill = f"{1000 * summary.prefill_seconds:.1f} ms for the first step, which reads the prompt"
    if not total or summary.tokens_per_second is None:
        return [_line("time", prefill)]
    colours = dict(zip(parts, ("75", "36", "214", "175", "245"), strict=True))
    room = paint.width - 14
    bar = "".join(paint("█" * round(room * ms / total), colour=colours[name]) for name, ms in parts.items())
    split = "  ".join(paint(f"{name} {ms / total:.0%}", colour=colours[name]) for name, ms in parts.items())
    speed = f"{summary.tokens_per_second:,.0f} tokens per second after it"
    bars = [_line("", bar)] if paint.colours else []
    return [_line("time", f"{prefill}; {speed}"), *bars, _line("", split)]


def _line(head: str, text: str) -> str:
    return f"{head:12}{text}"
