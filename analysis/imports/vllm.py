"""vLLM's answers to requests with per-request metrics, as JSON lines or one JSON document; and our export of them.

Names as in vLLM's docs/features/per_request_metrics.md and speculative_decoding/acceptance_metrics.md
(`--per-request-spec-decode-metrics summary` or `detailed`), and `return_token_ids` of its OpenAI server.
Our `trace export --format vllm` writes the same and an object `specscope`, which names the method. Forks of vLLM, such
as Aphrodite Engine, write its answers too, so the engine is vLLM only where these metrics are.
"""

from __future__ import annotations

import json
from typing import Any

from .acceptance import Acceptance, from_vllm
from .cuts import TokenCount, add_steps, starts_of
from .fields import Fields
from .foreign import is_chunk, is_of_another_server
from .records import Contents
from .tables import Imported, ImportedRows, speed

NAME, TITLE = "vllm", "answers like vLLM's"
_SPECULATION = "speculative_decoding"
_METRICS = (_SPECULATION, "time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms")
_KEYS = ("prompt_logprobs", "kv_transfer_params")  # vLLM and its forks write them even where they are null
FINISH = {"length": "length", "stop": "stop", "abort": "cancelled", "error": "error"}
NO_STEPS = (
    "some of these answers have no metrics.speculative_decoding, which vLLM writes "
    "with --per-request-spec-decode-metrics"
)


def recognises(first: Fields) -> bool:
    """Return True if this is a whole answer, of a chat or a text, with what vLLM and its forks write, or we."""
    theirs = (
        "specscope" in first or first.spells(*_KEYS) or any(each.spells(*_METRICS) for each in first.seen("metrics"))
    )
    return theirs and "choices" in first and not is_chunk(first) and not is_of_another_server(first)


def read(contents: Contents) -> Imported:
    """Read a run from each answer."""
    tables, engines = ImportedRows(), set[str]()
    for fields in contents.records():
        engines.add(_add(tables, fields))
    source = next((each for each in ("specscope", NAME) if each in engines), "unknown")
    title = "vLLM's answer" if source == NAME else "the answer"
    return tables.finished(contents.name, source, title, format=NAME)


def _add(tables: ImportedRows, fields: Fields) -> str:
    """Add an answer's run, and return who decoded it."""
    choice, usage, ours = fields.only("choices"), fields.at("usage"), fields.at("specscope")
    metrics = fields.at("metrics") or Fields({}, fields.where)
    spec = metrics.at(_SPECULATION)
    engine = "specscope" if ours else NAME if spec else "unknown"
    ids, prompt_ids = choice.ids("token_ids"), one_list(fields, choice, "prompt_token_ids")
    tokens, prompt = usage_of(usage, prompt_ids, ids)
    first, later = metrics.maybe_number("time_to_first_token_ms"), metrics.maybe_number("generation_time_ms")
    _check_speed(metrics, tokens, first, later)
    method = (ours.text("method") if ours else None) or "speculative"
    run = tables.add_run(
        fields.where,
        question=fields.label("id") or str(len(tables)),
        method=method,
        params=_settings(ours, "params"),
        sampling=_settings(ours, "sampling"),
        engine=engine,
        model=fields.text("model"),
        draft=ours.text("draft") if ours else None,
        finish=FINISH.get(choice.text("finish_reason") or ""),
        text=answer_text(choice),
        prompt_ids=prompt_ids,
        ids=ids,
        prompt_tokens=prompt,
        new_tokens=tokens,
        **speed(tokens, *(None if each is None else each / 1000 for each in (first, later))),
    )
    acceptance = from_vllm(spec) if spec else None
    if ours:
        columns = _own_steps(ours, acceptance, tokens, prompt)
        tables.add_steps(fields.where, run, drafts=None, **columns)
    elif acceptance is None or tokens is None:
        tables.missing["steps"] = NO_STEPS
    else:
        add_steps(tables, token_count(usage, choice, "token_ids"), run, acceptance, tokens, prompt)
    return engine


def _own_steps(
    ours: Fields, acceptance: Acceptance | None, tokens: int | None, prompt: int | None
) -> dict[str, list[Any]]:
    """Read the steps of our export, which has those without a guess as well; its first may have had guesses."""
    written, guessing = ours.counts("written"), ours.counts("spec_steps")
    if tokens is not None:
        ours.agree("written", sum(written), "the tokens of the answer", tokens)
    acceptance = acceptance or Acceptance((), (), ordered=True)
    ours.agree("spec_steps", len(guessing), "the entries of per_step_accepted", len(acceptance.accepted))
    if guessing != sorted(set(guessing)) or (guessing and guessing[-1] >= len(written)):
        ours.refuse("spec_steps", f"must number some of the {len(written)} steps, in their order")
    accepted, drafted = (
        dict(zip(guessing, acceptance.accepted, strict=True)),
        dict(zip(guessing, acceptance.drafted, strict=True)),
    )
    columns: dict[str, list[Any]] = {
        "written": written,
        "accepted": [accepted.get(step, 0) for step in range(len(written))],
        "drafted": [drafted.get(step, 0) for step in range(len(written))],
    }
    for step, (hits, count) in enumerate(zip(columns["accepted"], written, strict=True)):
        if not hits <= count <= hits + 1 or not count:
            ours.refuse(f"written[{step}]", f"is {count}, but the step accepted {hits} guesses")
    if prompt is not None:
        columns["start"] = starts_of(written, prompt)
    return columns


def answer_text(choice: Fields) -> str | None:
    """Return an answer's text, of a chat or a completion."""
    message = choice.at("message")
    return message.text("content") if message else choice.text("text")


def one_list(fields: Fields, other: Fields | None, name: str, other_name: str = "") -> list[int] | None:
    """Return token ids that two objects may both hold, and then must agree on."""
    ids, others = fields.ids(name), other.ids(other_name or name) if other else None
    if ids is not None and others is not None and ids != others:
        fields.refuse(name, f"holds other tokens than {other_name or name} of {other.where if other else ''}")
    return others if ids is None else ids


def token_count(usage: Fields | None, choice: Fields, ids: str) -> TokenCount:
    """Return where an answer counts its tokens: in its usage, else by listing them."""
    counts = usage is not None and "completion_tokens" in usage
    return TokenCount(usage, "completion_tokens") if usage is not None and counts else TokenCount(choice, ids)


def _check_speed(metrics: Fields, tokens: int | None, first: float | None, later: float | None) -> None:
    """Check the rates beside the times of which vLLM makes them."""
    if tokens is None or first is None or later is None:
        return
    for name, what, value in (
        ("tokens_per_second", "the tokens and both times", 1000 * tokens / (first + later) if first + later else None),
        ("mean_itl_ms", "the tokens and generation_time_ms", later / (tokens - 1) if tokens > 1 else None),
    ):
        if value is not None and name in metrics:
            metrics.agree(name, metrics.number(name), what, value, slack=max(0.02 * value, 1e-3))


def usage_of(
    usage: Fields | None, prompt_ids: list[int] | None, ids: list[int] | None
) -> tuple[int | None, int | None]:
    """Return the numbers of new tokens and prompt tokens, which must agree with the ids, if there are any."""
    tokens, prompt = (None if ids is None else len(ids)), (None if prompt_ids is None else len(prompt_ids))
    if usage is None:
        return tokens, prompt
    counted, read = usage.maybe_count("completion_tokens"), usage.maybe_count("prompt_tokens")
    if counted is not None and read is not None and "total_tokens" in usage:
        usage.agree("total_tokens", usage.count("total_tokens"), "prompt and completion tokens", counted + read)
    for name, number, listed in (("completion_tokens", counted, tokens), ("prompt_tokens", read, prompt)):
        if number is not None and listed is not None:
            usage.agree(name, number, "the token ids", listed)
    return (tokens if counted is None else counted), (prompt if read is None else read)


def _settings(ours: Fields | None, name: str) -> str | None:
    settings = ours.at(name) if ours else None
    return json.dumps(settings.plain) if settings else None
