"""JSON lines of vllm-vcr's recorder: one line a request, perhaps one in front of them all with `meta`.

Names as in its trace schema: `itl_ms` are the times between chunks, `itl_tokens` the tokens of the chunk after each
(one where it is left out), the first chunk has the rest of `output_tokens`; `output_token_ids` only on request.
"""

from __future__ import annotations

from .cuts import starts_of
from .fields import Fields
from .records import Contents
from .tables import Imported, ImportedRows, speed
from .vllm import FINISH

NAME, TITLE = "vllm-vcr", "the recording of vllm-vcr"
NO_STEPS = "some of these requests have no itl_ms, only its mean"


def recognises(first: Fields) -> bool:
    """Return True if this is a request's record, or what precedes them."""
    return ("output_tokens" in first and "ttft_ms" in first) or [*first.names()] == ["meta"]


def read(contents: Contents) -> Imported:
    """Read a run from each request."""
    tables, model = ImportedRows(), None
    for fields in contents.records():
        meta = fields.at("meta")
        if meta is not None and not len(tables) and "output_tokens" not in fields:
            model = meta.text("model")
        else:
            _add(tables, fields, model)
    return tables.finished(contents.name, NAME, TITLE, format=NAME)


def _add(tables: ImportedRows, fields: Fields, model: str | None) -> None:
    tokens, prompt, first = fields.count("output_tokens"), fields.count("prompt_tokens"), fields.number("ttft_ms")
    ids, gaps = fields.ids("output_token_ids"), fields.numbers("itl_ms") if "itl_ms" in fields else None
    if ids is not None:
        fields.agree("output_tokens", tokens, "the output_token_ids", len(ids))
    later = sum(gaps) if gaps is not None else _mean(fields)
    run = tables.add_run(
        fields.where,
        method="speculative" if "itl_tokens" in fields else "autoregressive",
        engine="vllm",
        model=model,
        finish=FINISH.get(fields.text("finish_reason") or ""),
        ids=ids,
        prompt_tokens=prompt,
        new_tokens=tokens,
        **speed(tokens, first / 1000, None if later is None else later / 1000),
    )
    if gaps is None:
        if tokens > 1:
            tables.missing["steps"] = NO_STEPS
            return
        gaps = []
    chunks = fields.counts("itl_tokens") if "itl_tokens" in fields else [1] * len(gaps)
    if "itl_tokens" in fields:
        fields.agree("itl_tokens", len(chunks), "the entries of itl_ms", len(gaps))
    if sum(chunks) >= tokens > 0 or sum(chunks) > tokens:
        fields.refuse("output_tokens", f"is {tokens}, but the chunks after the first hold {sum(chunks)}")
    if "itl_tokens" not in fields and tokens and len(gaps) != tokens - 1:
        fields.refuse("output_tokens", f"is {tokens}, but itl_ms has {len(gaps)} gaps, a token each")
    written = [tokens - sum(chunks), *chunks] if tokens else []
    for place, chunk in enumerate(chunks):
        if chunk == 0:
            fields.refuse(f"itl_tokens[{place}]", "is 0: a step writes at least one token")
    plain = "itl_tokens" not in fields
    tables.add_steps(
        fields.where,
        run,
        [each - 1 for each in written],
        written=written,
        start=starts_of(written, prompt),
        drafted=[0 if plain or not step else None for step in range(len(written))],
        total_ms=[first, *gaps][: len(written)],
    )


def _mean(fields: Fields) -> float | None:
    """Return the seconds after the first token, from the mean gap."""
    summary = fields.at("itl_summary")
    return summary.number("mean_ms") * summary.count("count") if summary else None
