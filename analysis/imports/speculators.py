"""`acceptance.csv` of the evaluation of vllm-project/speculators: a row a subset of its prompts.

Columns as its scripts/evaluate writes them: subset, num_drafts, num_draft_tokens, num_accepted_tokens,
acceptance_length = 1 + accepted / drafts, acceptance_at_pos_i = the share of drafts whose guess i was accepted.
"""

from __future__ import annotations

from .acceptance import from_histogram
from .cuts import SEVERAL_RUNS
from .fields import Fields
from .records import Contents
from .tables import Imported, ImportedRows

NAME, TITLE = "speculators", "Speculators' acceptance.csv"
_POSITION = "acceptance_at_pos_"


def recognises(first: Fields) -> bool:
    """Return True if the table has these columns."""
    return "num_drafts" in first.names() and f"{_POSITION}0" in first.names()


def read(contents: Contents) -> Imported:
    """Read a run from each row, whose steps are the drafts."""
    tables = ImportedRows()
    for fields in contents.records():
        subset = fields.label("subset") or str(len(tables))
        steps, accepted, drafts = (
            fields.count(name) for name in ("num_drafts", "num_accepted_tokens", "num_draft_tokens")
        )
        run = tables.add_run(
            fields.where,
            question=subset,
            category=subset,
            method="speculative",
            engine="vllm",
            drafted=drafts,
            new_tokens=steps + accepted,
        )
        reached = _reached(fields, steps, accepted)
        longest = len(reached) - 1  # of any draft: a mean of whole numbers may be one by chance
        if not accepted <= drafts <= longest * steps:
            fields.refuse(
                "num_draft_tokens", f"is {drafts}, but {steps} drafts of {longest} positions accepted {accepted}"
            )
        counts = [here - there for here, there in zip(reached, [*reached[1:], 0], strict=True)]
        acceptance = from_histogram(fields, "num_drafts", counts)
        each = longest if drafts == longest * steps else None
        tables.add_steps(fields.where, run, acceptance.accepted, drafted=[each] * steps)
    tables.missing |= SEVERAL_RUNS
    return tables.finished(contents.name, NAME, TITLE, format=NAME)


def _reached(fields: Fields, steps: int, accepted: int) -> list[int]:
    """Count the drafts that came at least so far, from the shares by position; entry 0 counts all of them."""
    if steps > 10**9:
        fields.refuse("num_drafts", f"is {steps}, more than can be read")
    count = sum(name.startswith(_POSITION) for name in fields.names())
    reached = [steps]
    for place in range(count):
        name = f"{_POSITION}{place}"
        if name not in fields:
            break
        share = fields.number(name)
        hits = round(share * steps)
        if hits > reached[-1]:
            fields.refuse(name, f"is {share:.6g}, but fewer drafts came so far: {reached[-1]} of {steps}")
        fields.agree(name, share, "whole numbers of drafts", hits / steps if steps else 0.0, 1e-3)
        reached.append(hits)
    fields.agree("num_accepted_tokens", accepted, "the shares by position", sum(reached[1:]))
    if steps:
        fields.about("acceptance_length", "accepted tokens and drafts", 1 + accepted / steps)
    return reached
