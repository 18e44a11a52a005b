"""`speculation_profile.json` of NVIDIA Model Optimizer's specdec_bench: one measured drafter.

Names as its speculation_profile.py writes them. The histogram's keys count the tokens of a step, the target's own one
included; entry i of the rates is about guess i + 1: marginal ones for all of them up to it, conditional ones after
those before it.
"""

from __future__ import annotations

from decoding.types import JSON

from .acceptance import from_histogram
from .cuts import SEVERAL_RUNS
from .fields import Fields
from .records import Contents
from .tables import Imported, ImportedRows

NAME, TITLE = "specdec_bench", "specdec_bench's profile"


def recognises(first: Fields) -> bool:
    """Return True if this is such a profile, measured or not."""
    return "schema_version" in first and "num_speculative_tokens" in first and "measured" in first


def read(contents: Contents) -> Imported:
    """Read one run, whose steps are all that were measured."""
    tables, categories = ImportedRows(), dict[str, JSON]()
    for fields in contents.records():
        if fields.plain.get("measured") is not True:
            fields.refuse("measured", "is not true: this profile is a placeholder, measure the drafter first")
        most = fields.count("num_speculative_tokens")
        run = tables.add_run(
            fields.where,
            question="all",
            method=fields.text("method") or "speculative",
            engine=_engine(fields),
            model=_checkpoint(fields, "target_model"),
            draft=_checkpoint(fields, "draft_checkpoint"),
        )
        lengths = fields.histogram("acceptance_length_histogram")
        if lengths and lengths[0]:
            fields.refuse(
                "acceptance_length_histogram", f"counts {lengths[0]} steps of no token: the target writes one"
            )
        acceptance = from_histogram(fields, "acceptance_length_histogram", lengths[1:])
        _check_rates(fields, lengths[1:], most)
        tables.add_steps(fields.where, run, acceptance.accepted)
        named = fields.at("per_category")
        categories = dict(named.plain) if named else {}
    tables.missing |= SEVERAL_RUNS
    return tables.finished(contents.name, NAME, TITLE, format=NAME, per_category=categories)


def _check_rates(fields: Fields, counts: list[int], most: int) -> None:
    steps = sum(counts)
    if not steps:
        fields.refuse("acceptance_length_histogram", "counts no step")
    fields.about("mean_accept_length", "the steps", 1 + sum(j * count for j, count in enumerate(counts)) / steps)
    for name in ("marginal_accept_rates", "conditional_accept_rates"):
        if name not in fields:
            continue  # of block verification there are none
        rates = fields.numbers(name)
        fields.agree(name, len(rates), "num_speculative_tokens", most)
        for place, rate in enumerate(rates):
            reached = sum(counts[place + 1 :])
            whole = steps if name.startswith("marginal") else sum(counts[place:])
            fields.agree(f"{name}[{place}]", rate, "the steps", reached / whole if whole else 0.0, 1e-3)


def _engine(fields: Fields) -> str:
    conditions = fields.at("measurement_conditions")
    return (conditions.text("engine") if conditions else None) or "unknown"


def _checkpoint(fields: Fields, name: str) -> str | None:
    """Return a checkpoint's name, which may be in an object."""
    if not isinstance(fields.plain.get(name), dict):
        return fields.text(name)
    inner = fields.inside(name)
    return next((inner.text(key) for key in ("id", "name", "path") if key in inner), None)
