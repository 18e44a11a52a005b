"""Reads the steps with guesses of a record, as counts, a histogram or one by one, and checks that they add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .fields import Fields, trimmed

MOST_STEPS = 2_000_000  # of one record, before its steps are written one by one


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The steps with guesses: what each accepted and drafted. Without `ordered`, their order is ours."""

    accepted: tuple[int, ...]
    drafted: tuple[int | None, ...]
    ordered: bool
    drafts: int | None = None  # guesses of all steps, where they are not known step by step


def from_histogram(fields: Fields, name: str, counts: Sequence[int]) -> Acceptance:
    """Make steps from a histogram, from the fewest accepted guesses to the most."""
    if sum(counts) > MOST_STEPS:
        fields.refuse(name, f"counts {sum(counts)} steps, more than the {MOST_STEPS} that are read")
    accepted = tuple(j for j, count in enumerate(counts) for _ in range(count))
    return Acceptance(accepted, (None,) * len(accepted), ordered=False)


def from_vllm(fields: Fields) -> Acceptance:
    """Read what vLLM calls `speculative_decoding` and AIPerf `spec_decode_acceptance`: the same names and rules.

    Names as in vLLM's docs/features/speculative_decoding/acceptance_metrics.md and AIPerf's
    SpecDecodeAcceptanceRecord; AIPerf's histogram leaves out what was never counted.
    """
    counts = trimmed(fields.histogram("acceptance_histogram"))
    steps, accepted, drafts = (
        fields.count(name) for name in ("num_spec_steps", "num_accepted_draft_tokens", "num_draft_tokens")
    )
    fields.agree("num_spec_steps", steps, "the counts of acceptance_histogram", sum(counts))
    hits = sum(j * count for j, count in enumerate(counts))
    fields.agree("num_accepted_draft_tokens", accepted, "the entries of acceptance_histogram", hits)
    if accepted > drafts:
        fields.refuse("num_accepted_draft_tokens", f"is {accepted}, but num_draft_tokens is {drafts}")
    most = fields.maybe_count("num_spec_tokens")
    if most is not None and len(counts) > most + 1:
        fields.refuse(
            "acceptance_histogram", f"has steps that accepted {len(counts) - 1}, but num_spec_tokens is {most}"
        )
    if most is not None and drafts > most * steps:
        fields.refuse("num_draft_tokens", f"is {drafts}, but {steps} steps of num_spec_tokens {most} draft fewer")
    if steps:
        fields.about("mean_acceptance_length", "accepted tokens and steps", 1 + accepted / steps)
    if drafts:
        fields.about("draft_acceptance_rate", "accepted and drafted tokens", accepted / drafts)
    by_length = _by_length(fields, counts, drafts) if "acceptance_histogram_by_draft_length" in fields else None
    if "per_step_accepted" in fields:
        return _every_step(fields, counts, drafts, by_length)
    if "per_step_drafted" in fields:
        fields.refuse("per_step_accepted", "is missing, but per_step_drafted is there")
    if by_length is not None:
        return by_length
    acceptance = from_histogram(fields, "acceptance_histogram", counts)
    if most and drafts == most * steps:
        return replace(acceptance, drafted=(most,) * steps)
    return replace(acceptance, drafts=drafts)


def _every_step(fields: Fields, counts: Sequence[int], drafts: int, by_length: Acceptance | None) -> Acceptance:
    accepted = fields.counts("per_step_accepted")
    if trimmed(histogram(accepted)) != list(counts):
        fields.refuse(
            "per_step_accepted",
            f"has {len(accepted)} steps that accepted {sum(accepted)}, but acceptance_histogram "
            f"counts {sum(counts)} that accepted {sum(j * count for j, count in enumerate(counts))}, or others",
        )
    if "per_step_drafted" not in fields:
        return Acceptance(tuple(accepted), (None,) * len(accepted), ordered=True, drafts=drafts)
    drafted = fields.counts("per_step_drafted")
    fields.agree("per_step_drafted", len(drafted), "the entries of per_step_accepted", len(accepted))
    fields.agree("num_draft_tokens", drafts, "the entries of per_step_drafted", sum(drafted))
    for step, (hits, guesses) in enumerate(zip(accepted, drafted, strict=True)):
        if hits > guesses:
            fields.refuse(f"per_step_accepted[{step}]", f"is {hits}, but per_step_drafted[{step}] is {guesses}")
    if by_length is not None:
        here = Counter[tuple[int | None, int]](zip(drafted, accepted, strict=True))
        there = Counter(zip(by_length.drafted, by_length.accepted, strict=True))
        length, hits = min(((here - there) + (there - here)).keys(), default=(0, -1))
        if hits >= 0:
            fields.refuse(
                "acceptance_histogram_by_draft_length",
                f"counts {there[length, hits]} steps that accepted {hits} of {length}, "
                f"but the lists by step have {here[length, hits]}",
            )
    return Acceptance(tuple(accepted), tuple(drafted), ordered=True)


def _by_length(fields: Fields, counts: Sequence[int], drafts: int) -> Acceptance:
    """Make steps from the fewest drafted guesses to the most, and from the fewest accepted ones to the most."""
    lengths = fields.inside("acceptance_histogram_by_draft_length")
    pairs: list[tuple[int, int]] = []
    for name in lengths.names():
        if not (name.isascii() and name.isdigit() and len(name) <= 6):
            lengths.refuse(name, "must be a draft's length, a whole number below 1,000,000")
        counted = lengths.histogram(name)
        if len(trimmed(counted)) > int(name) + 1:
            lengths.refuse(name, f"counts steps that accepted {len(trimmed(counted)) - 1} of {name} guesses")
        if len(pairs) + sum(counted) > sum(counts):
            lengths.refuse(name, f"makes more steps than the {sum(counts)} of acceptance_histogram")
        pairs += [(int(name), hits) for hits, count in enumerate(counted) for _ in range(count)]
    pairs.sort()
    fields.agree("num_draft_tokens", drafts, "the draft lengths of all steps", sum(length for length, _ in pairs))
    if trimmed(histogram([hits for _, hits in pairs])) != list(counts):
        fields.refuse(
            "acceptance_histogram_by_draft_length",
            f"counts {len(pairs)} steps that accepted {sum(hits for _, hits in pairs)}, but acceptance_histogram "
            f"{sum(counts)} that accepted {sum(j * count for j, count in enumerate(counts))}, or others",
        )
    return Acceptance(tuple(hits for _, hits in pairs), tuple(length for length, _ in pairs), ordered=False)


def histogram(values: Sequence[int]) -> list[int]:
    """Count how often each number j occurs, in entry j."""
    counts = Counter(values)
    return [counts[j] for j in range(max(counts, default=-1) + 1)] if max(counts, default=0) < 10**6 else []
