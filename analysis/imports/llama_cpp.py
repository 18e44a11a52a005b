"""Imports answers of llama.cpp's server, from /completion or its OpenAI endpoints, each with `timings`.

Its server writes `draft_n` and `draft_n_accepted` only if something was drafted. Newer versions add `cache_n`, and
leave the first token out of `predicted_per_second`. `predicted_n` counts the token of the prompt's pass, and of each
later pass the accepted guesses and one token more. Other servers write the same `timings`, so an answer counts as
llama.cpp's only if its fingerprint is a build of llama.cpp, or if it has llama.cpp's settings.
"""

from __future__ import annotations

import re

from ..store.schema import STEPS, STEPS_SCHEMA
from .fields import Fields
from .foreign import is_chunk
from .records import Contents
from .tables import Imported, ImportedRows, speed
from .vllm import FINISH, answer_text, usage_of

NAME, TITLE = "llama-cpp", "an answer with llama.cpp's timings"
NO_STEPS = "timings count the guesses of a whole answer, not those of each step"
NO_DRAFTS = "timings without draft_n do not say whether anything was drafted"
_BUILD = re.compile(r"b\d+-[0-9a-f]{6,40}")
_STOPS = {"limit": "length", "eos": "stop", "word": "stop"}


def recognises(first: Fields) -> bool:
    """Return True if this is a whole answer with such timings."""
    return any(each.spells("predicted_n") for each in first.seen("timings")) and not is_chunk(first)


def read(contents: Contents) -> Imported:
    """Read a run from each answer."""
    tables = ImportedRows()
    for fields in contents.records():
        _add(tables, fields)
    missing = [f"{STEPS}.{name}" for name in STEPS_SCHEMA.names]
    tables.missing |= dict.fromkeys([STEPS, "runs.steps", "runs.mean_acceptance_length", *missing], NO_STEPS)
    return tables.finished(contents.name, NAME, TITLE, format=NAME)


def _add(tables: ImportedRows, fields: Fields) -> None:
    choice, timings = fields.only("choices") if "choices" in fields else fields, fields.inside("timings")
    tokens, read, cached = timings.count("predicted_n"), timings.count("prompt_n"), timings.maybe_count("cache_n")
    drafted, accepted = timings.maybe_count("draft_n"), timings.maybe_count("draft_n_accepted")
    if (drafted is None) != (accepted is None):
        timings.refuse("draft_n" if drafted is None else "draft_n_accepted", "is missing, but the other count is there")
    if drafted is None:
        tables.missing |= {"runs.drafted": NO_DRAFTS, "runs.accepted": NO_DRAFTS}
    elif accepted is not None and accepted > drafted:
        timings.refuse("draft_n_accepted", f"is {accepted}, but draft_n is {drafted}")
    elif accepted and accepted >= tokens:
        timings.refuse(
            "draft_n_accepted", f"is {accepted}, but predicted_n, which counts these and the first token, is {tokens}"
        )
    ids = (choice.ids("tokens") if "choices" not in fields else None) or None
    counted, prompt = usage_of(fields.at("usage"), None, ids)
    if counted is not None:
        timings.agree("predicted_n", tokens, "the tokens of the answer", counted)
    if prompt is not None and cached is not None:
        timings.agree("prompt_n", read, "the prompt tokens of usage without cache_n", prompt - cached)
    first, later = timings.number("prompt_ms"), timings.number("predicted_ms")
    _check_speed(timings, "prompt", first, (read,))
    _check_speed(timings, "predicted", later, (tokens, tokens - 1))
    ours = _BUILD.fullmatch(fields.text("system_fingerprint") or "") or "generation_settings" in fields
    tables.add_run(
        fields.where,
        question=fields.label("id") or str(len(tables)),
        method="speculative",
        engine="llama.cpp" if ours else "unknown",
        model=fields.text("model"),
        finish=FINISH.get(choice.text("finish_reason") or "") or _STOPS.get(fields.text("stop_type") or ""),
        text=answer_text(choice) if "choices" in fields else fields.text("content"),
        ids=ids,
        prompt_tokens=prompt if prompt is not None else None if cached is None else read + cached,
        new_tokens=tokens,
        drafted=drafted,
        accepted=accepted,
        **speed(tokens, first / 1000, later / 1000),
    )


def _check_speed(timings: Fields, kind: str, ms: float, counts: tuple[int, ...]) -> None:
    """Check the rates of a phase, which may be over any of these counts of tokens."""
    for name, rates in (
        (f"{kind}_per_second", [1000 * count / ms for count in counts if ms]),
        (f"{kind}_per_token_ms", [ms / count for count in counts if count > 0]),
    ):
        if name in timings and rates:
            rate = timings.number(name)
            nearest = min(rates, key=lambda each: abs(each - rate))
            timings.agree(name, rate, f"{kind}_n and {kind}_ms", nearest, slack=0.01 * nearest)
