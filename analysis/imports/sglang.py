"""SGLang's answers: of /generate with `meta_info.spec_*`, or of the OpenAI server with `sglext.spec_tokens_details`.

Names as its tokenizer manager writes them into `meta_info`, older ones beside newer, and `return_spec_tokens_details`
(pull request 33518, which also gives their identities: verify steps are the sum of the histogram, and
spec_accept_length is completion tokens over verify steps).
"""

from __future__ import annotations

from dataclasses import replace

from .acceptance import Acceptance, from_histogram
from .cuts import add_steps
from .fields import Fields
from .foreign import is_chunk
from .records import Contents
from .tables import Imported, ImportedRows
from .vllm import FINISH, answer_text, one_list, token_count, usage_of

NAME, TITLE = "sglang", "SGLang's answer"
_CORRECT = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_PROPOSED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")
NO_STEPS = "some of these answers have no spec_correct_drafts_histogram: ask for return_spec_tokens_details"


def recognises(first: Fields) -> bool:
    """Return True if this is an answer of one of SGLang's servers with its details."""
    infos = [*first.seen("meta_info"), *(info for choice in first.seen("choices") for info in choice.seen("meta_info"))]
    theirs = "sglext" in first or any(info.spells("spec_verify_ct", "completion_tokens") for info in infos)
    return theirs and not is_chunk(first)


def read(contents: Contents) -> Imported:
    """Read a run from each answer."""
    tables = ImportedRows()
    for fields in contents.records():
        _add(tables, fields)
    return tables.finished(contents.name, NAME, TITLE, format=NAME)


def _add(tables: ImportedRows, fields: Fields) -> None:
    choice = fields.only("choices") if "choices" in fields else fields
    info, extra = choice.at("meta_info"), fields.at("sglext")
    spec = (_details(extra) if extra else None) or info
    usage = fields.at("usage") or info
    ids = one_list(choice, info, "output_ids", "output_token_ids")
    prompt_ids = extra.ids("input_ids") if extra else None
    tokens, prompt = usage_of(usage, prompt_ids, ids)
    if usage is not None and info is not None and info is not usage:
        for name in ("completion_tokens", "prompt_tokens"):
            if name in usage and name in info:
                info.agree(name, info.count(name), f"the {name} of usage", usage.count(name))
    seconds = info.maybe_number("e2e_latency") if info else None
    run = tables.add_run(
        fields.where,
        question=fields.label("id") or (info.label("id") if info else None) or str(len(tables)),
        method="speculative",
        engine=NAME,
        model=fields.text("model"),
        finish=_finish(choice, info),
        text=answer_text(choice),
        prompt_ids=prompt_ids,
        ids=ids,
        prompt_tokens=prompt,
        new_tokens=tokens,
        tokens_per_second=tokens / seconds if seconds and tokens else None,
    )
    acceptance = _acceptance(spec, tokens) if spec else None
    if info is not None and spec is not info and "spec_verify_ct" in info:
        other = _acceptance(info, tokens)
        if other is not None and acceptance is not None and other.accepted != acceptance.accepted:
            info.refuse(next(name for name in _HISTOGRAM if name in info), "counts other steps than sglext")
    if acceptance is None or tokens is None:
        tables.missing["steps"] = NO_STEPS
        return
    add_steps(tables, token_count(usage, choice, "output_ids"), run, acceptance, tokens, prompt)


def _details(extra: Fields) -> Fields | None:
    """Return the details of an answer of one sequence."""
    try:
        return extra.at("spec_tokens_details")
    except ValueError:
        return extra.only("spec_tokens_details")


def _acceptance(spec: Fields, tokens: int | None) -> Acceptance | None:
    steps, correct, proposed = (spec.maybe_count(*names) for names in (("spec_verify_ct",), _CORRECT, _PROPOSED))
    counts, name = spec.maybe_histogram(*_HISTOGRAM), next((name for name in _HISTOGRAM if name in spec), None)
    if steps and correct is not None and "spec_accept_length" in spec and tokens is not None:
        length, ours = spec.number("spec_accept_length"), 1 + correct / steps
        if abs(length - ours) > 1e-3 * ours:  # else by the tokens, of which the end may have cut some
            spec.about("spec_accept_length", "completion tokens and verify steps", tokens / steps)
    if proposed and correct is not None:
        spec.about("spec_accept_rate", "correct and proposed drafts", correct / proposed)
    if name is None or counts is None:
        return None
    acceptance = from_histogram(spec, name, counts)
    if steps is not None:
        spec.agree("spec_verify_ct", steps, f"the counts of {name}", len(acceptance.accepted))
    if correct is not None:
        label = next(each for each in _CORRECT if each in spec)
        spec.agree(label, correct, f"the entries of {name}", sum(acceptance.accepted))
    # SGLang verifies as many guesses in every step, unless it adapts their number.
    if proposed is not None and sum(acceptance.accepted) > proposed:
        label = next(each for each in _PROPOSED if each in spec)
        spec.refuse(label, f"is {proposed}, but {sum(acceptance.accepted)} drafts were correct")
    if steps and proposed and proposed % steps == 0 and proposed // steps >= max(acceptance.accepted):
        return replace(acceptance, drafted=(proposed // steps,) * steps)
    return replace(acceptance, drafts=proposed)


def _finish(choice: Fields, info: Fields | None) -> str | None:
    if "finish_reason" in choice:
        return FINISH.get(choice.text("finish_reason") or "")
    reason = info.at("finish_reason") if info else None
    return FINISH.get(reason.text("type") or "") if reason else None
