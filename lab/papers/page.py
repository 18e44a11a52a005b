"""Writes findings as a page for people and as JSON for scripts."""

from __future__ import annotations

import html
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from textwrap import fill

import torch

from decoding.types import JSON

from .claims import CLEAR, ROUGH, CheckedClaim, ClaimOutcome
from .experiment import Experiment
from .other_page import OtherPage
from .tables import ResultCell, ResultTable

_WIDTH, _LONGEST = 118, 80  # letters of a line of prose, and of a cell

_INTRO = f"""\
Every claim below was put to the test on a small model, and every verdict was computed from the numbers beside it by
the rule given there. "More" means more by at least {CLEAR:.0%}, or by {ROUGH:.0%} where the clock decides,
texts are sampled or differences are compared; a run of numbers rises or falls where the last differs from the first
by that much and none between turns back by it. A claim that does not hold here may hold where it was made: a small
model's answers are short and easily guessed, and a step of it spends its time on other things than one of a large
model."""

_FEW = 20  # prompts
_FEW_PROMPTS = " With so few prompts, a difference of some percent may be theirs rather than the methods'."

_TERMS = """\
Tokens per step count the target's own token, so autoregressive decoding writes 1; a step is a pass of the target.
Rows per token are the tokens fed to the target for every token written, the prompts left out. Speed is in multiples of
autoregressive decoding's, both timed in turn on every question, the prompts left out: it alone changes from run to
run and from machine to machine."""


def conditions(experiment: Experiment, flags: Sequence[str] = ()) -> dict[str, JSON]:
    """Describe the conditions of the measurement: model, machine, questions and flags."""
    engine, header = experiment.engine, experiment.engine.decode(experiment.questions[0].ids, max_new_tokens=1).header
    same, answers, violated = experiment.identical
    return {
        "flags": list(flags),
        "model": engine.model.card.name,
        "parameters": engine.model.card.parameters,
        "draft": engine.draft.card.name if engine.draft else None,
        "device": header.device,
        "dtype": header.dtype,
        "attention": header.attention,
        "threads": torch.get_num_threads(),
        "versions": dict(header.versions),
        "questions": len(experiment.questions),
        "kinds": experiment.kinds,
        "tokens": sum(len(question.answer) for question in experiment.questions),
        "max_new_tokens": experiment.budget,
        "answers": answers,
        "identical_answers": same,
        "rescored_answers": answers - same,
        "answers_with_violations": violated,
    }


def document(findings: Sequence[CheckedClaim], measured: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return everything, for scripts."""
    return {**measured, "claims": [_entry(finding) for finding in findings]}


def page(findings: Sequence[CheckedClaim], measured: Mapping[str, JSON], other: OtherPage | None = None) -> str:
    """Write the page in Markdown, with the verdicts on another model beside its own."""
    counts = Counter(finding.judgement.verdict for finding in findings)
    numbers = "; ".join(f"{verdict}: {counts[verdict]}" for verdict in ClaimOutcome if counts[verdict])
    blocks = [
        f"# What the papers found, on {_plain(measured['model'])}",
        f"This page is written by `python -m decoding {_plain(shlex.join(['paper-checks', *measured['flags']]))}`.",
        _INTRO,
        _head(measured),
        _TERMS,
        f"Claims: {len(findings)}. {numbers.capitalize()}.",
        _summary(findings, other),
    ]
    if other is not None:
        blocks += _differences(findings, other)
    for paper, group in groupby(findings, key=lambda finding: finding.paper):
        blocks += [f"## {paper.title}", f"{paper.citation}."]
        before: list[ResultTable] = []
        for finding in group:
            blocks += _section(finding, finding.table in before)
            before += [finding.table] if finding.table else []
    return "\n\n".join(_wrapped(block) for block in blocks) + "\n"


def _head(measured: Mapping[str, JSON]) -> str:
    """Write one sentence on what was measured, and one on whether all methods wrote the same."""
    versions = ", ".join(f"{name} {version}" for name, version in measured["versions"].items())
    threads = "1 thread" if measured["threads"] == 1 else f"{measured['threads']} threads"
    drafter = f", drafter {_plain(measured['draft'])}" if measured["draft"] else ""
    size = f" ({measured['parameters']:,} parameters)" if measured["parameters"] else ""
    kinds = ", ".join(map(_plain, measured["kinds"]))
    text = (
        f"Measured: {_plain(measured['model'])}{size}{drafter}; {measured['dtype']} on {_plain(measured['device'])}, "
        f"{threads}, attention {_plain(measured['attention'])}; {_plain(versions)}; {measured['questions']} prompts "
        f"({kinds}), answered greedily with {measured['tokens']:,} tokens, at most {measured['max_new_tokens']} each."
    )
    return text + _same(measured) + (_FEW_PROMPTS if measured["questions"] < _FEW else "")


def _same(measured: Mapping[str, JSON]) -> str:
    """Say whether the methods wrote the text of autoregressive decoding, and if not, what is wrong."""
    answers, same = measured["answers"], measured["identical_answers"]
    if not answers:
        return ""
    text = f" Of {answers:,} greedy answers by the methods, {same:,} are autoregressive decoding's to the last token"
    if answers == same:
        return f"{text}."
    violated = measured["answers_with_violations"]
    return (
        f"{text}; the {answers - same:,} others were checked against plain passes of the target: in "
        f"{answers - same - violated:,} every token is its choice or as near to it as rounding reaches, in "
        f"{violated:,} some token is neither."
    )


def _summary(findings: Sequence[CheckedClaim], other: OtherPage | None) -> str:
    heads = ["paper", "place", "claim", "verdict", *([f"on {other.model}"] if other else [])]
    lines = [heads]
    for paper, claim, verdict in ((each.paper, each.claim, each.judgement.verdict) for each in findings):
        there = [other.outcome(paper, claim.title)[0]] if other else []
        lines.append([paper.title, claim.place, claim.title, verdict, *there])
    rows = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([rows[0], "|---" * len(heads) + "|", *rows[1:]])


def _differences(findings: Sequence[CheckedClaim], other: OtherPage) -> list[str]:
    """Show both explanations of each claim whose verdict differs on the other model."""
    differ, there = list[str](), other.model
    for finding in findings:
        verdict, says = other.outcome(finding.paper, finding.claim.title)
        if ClaimOutcome.UNMEASURED not in (verdict, finding.judgement.verdict) and verdict != finding.judgement.verdict:
            differ += [
                f"**{finding.paper.title}, {finding.claim.title}**: "
                f"{finding.judgement.verdict.removesuffix(' here')} here, {verdict.removesuffix(' here')} on {there}.",
                f"Here: {_plain(finding.judgement.says)}",
                f"On {there}: {says}",
            ]
    return [f"## Where {there} differs", *(differ or ["Nowhere."])]


def _section(finding: CheckedClaim, shown: bool) -> list[str]:
    """Write a claim; `shown` if its table is on the page already."""
    claim, judgement = finding.claim, finding.judgement
    blocks = [f"### {claim.place}: {claim.title}", f"The paper: {claim.finding}", f"Here: {claim.measured}"]
    if shown:
        blocks.append("The numbers are those above.")
    elif finding.table is not None:
        blocks.append(_grid(finding.table))
        if finding.table.facts:
            facts = (f"{name} {_shown(value)}" for name, value in finding.table.facts.items())
            blocks.append(f"Besides: {', '.join(facts)}.")
    verdict = judgement.verdict.capitalize()
    return [*blocks, f"**{verdict}.** {_plain(judgement.says)}", f"The rule: {claim.rule}"]


def _grid(table: ResultTable) -> str:
    """Write the numbers as a Markdown table."""
    lines = [
        "| " + " | ".join(_plain(head[:_LONGEST]) for head in table.heads) + " |",
        "|---" + "|---:" * (len(table.heads) - 1) + "|",
        *("| " + " | ".join(_plain(_shown(cell)[:_LONGEST]) for cell in row) + " |" for row in table.rows),
    ]
    return "\n".join(lines)


def _shown(cell: ResultCell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.3f}"


def _plain(text: str) -> str:
    """Escape an untrusted text for Markdown and HTML, on one line: kinds come from files of tasks."""
    line = html.escape(" ".join(str(text).split()), quote=False)
    return line.replace("|", "\\|").replace("`", "'").replace("[", "\\[")


def _wrapped(block: str) -> str:
    """Wrap prose in lines of ordinary length; tables and headings stay as they are."""
    if block.startswith(("|", "#")):
        return block
    text = fill(block, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return re.sub(r"^(\d*)([-+*>.)])(?=\s)", r"\1\\\2", text, flags=re.MULTILINE)  # else a list, or a quotation


def _entry(finding: CheckedClaim) -> dict[str, JSON]:
    claim, table = finding.claim, finding.table
    return {
        "paper": finding.paper.name,
        "place": claim.place,
        "title": claim.title,
        "found": claim.finding,
        "measured": claim.measured,
        "rule": claim.rule,
        "table": None
        if table is None
        else {
            "heads": list(table.heads),
            "rows": [[round(cell, 6) if isinstance(cell, float) else cell for cell in row] for row in table.rows],
            "facts": {name: round(value, 6) for name, value in table.facts.items()},
        },
        "verdict": finding.judgement.verdict.value,
        "says": finding.judgement.says,
    }
