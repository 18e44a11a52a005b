"""Writes our runs in the formats of other engines and tools."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.export import vllm
from analysis.prompts.tasks import Task
from decoding.engine import Engine
from decoding.types import JSON, Trace

METHOD, GAMMA = "eagle3", 4


@dataclass(frozen=True, slots=True)
class AnsweredTask:
    """A question and the run that answers its first turn."""

    task: Task
    trace: Trace


def vllm_detailed(engine: Engine, answered: Sequence[AnsweredTask]) -> str:
    """Write as `vllm serve --per-request-spec-decode-metrics detailed` answers, token ids included."""
    return json_lines(_response(answer) for answer in answered)


def vllm_summary(engine: Engine, answered: Sequence[AnsweredTask]) -> str:
    """Write as `--per-request-spec-decode-metrics summary` answers: histograms alone, one JSON list."""
    short = []
    for answer in answered:
        response = _response(answer)
        spec = response["metrics"]["speculative_decoding"]
        del spec["per_step_accepted"], spec["per_step_drafted"]
        del response["choices"][0]["prompt_token_ids"], response["choices"][0]["token_ids"]
        short.append(response)
    return json.dumps(short, indent=1) + "\n"


def sglang(engine: Engine, answered: Sequence[AnsweredTask]) -> str:
    """Write as SGLang's /generate answers."""
    lines = []
    for answer in answered:
        spec, trace = _spec(answer.trace), answer.trace
        assert trace.summary is not None
        steps = spec["num_spec_steps"]
        lines.append(
            {
                "text": trace.summary.text,
                "output_ids": list(trace.ids),
                "meta_info": {
                    "id": f"question-{answer.task.id}",
                    "finish_reason": {"type": _finish(trace)},
                    "prompt_tokens": len(trace.header.prompt),
                    "completion_tokens": len(trace.ids),
                    "e2e_latency": round(trace.summary.prefill_seconds + trace.summary.decode_seconds, 6),
                    "spec_verify_ct": steps,
                    "spec_accept_length": len(trace.ids) / steps,
                    "spec_accept_rate": spec["draft_acceptance_rate"],
                    "spec_num_correct_drafts": spec["num_accepted_draft_tokens"],
                    "spec_num_proposed_drafts": spec["num_draft_tokens"],
                    "spec_correct_drafts_histogram": spec["acceptance_histogram"],
                },
            }
        )
    return json_lines(lines)


def llama_cpp(engine: Engine, answered: Sequence[AnsweredTask]) -> str:
    """Write as llama.cpp's OpenAI server answers, drafts counted in `timings`."""
    lines = []
    for answer in answered:
        trace, spec = answer.trace, _spec(answer.trace)
        summary, tokens, prompt = trace.summary, len(trace.ids), len(trace.header.prompt)
        assert summary is not None
        first, later = round(summary.prefill_seconds * 1000, 3), round(summary.decode_seconds * 1000, 3)
        lines.append(
            {
                "choices": [
                    {
                        "finish_reason": _finish(trace),
                        "index": 0,
                        "message": {"role": "assistant", "content": summary.text},
                    }
                ],
                "model": "pocket",
                "system_fingerprint": "b9251-e2b129e1b",
                "object": "chat.completion",
                "usage": {
                    "completion_tokens": tokens,
                    "prompt_tokens": prompt,
                    "total_tokens": tokens + prompt,
                },
                "id": f"chatcmpl-{answer.task.id}",
                "timings": {
                    "cache_n": 0,
                    "prompt_n": prompt,
                    "prompt_ms": first,
                    "prompt_per_token_ms": first / prompt,
                    "prompt_per_second": 1000 * prompt / first,
                    "predicted_n": tokens,
                    "predicted_ms": later,
                    "predicted_per_token_ms": later / tokens,
                    "predicted_per_second": 1000 * tokens / later,
                    "draft_n": spec["num_draft_tokens"],
                    "draft_n_accepted": spec["num_accepted_draft_tokens"],
                },
            }
        )
    return json_lines(lines)


def aiperf(engine: Engine, answered: Sequence[AnsweredTask]) -> str:
    """Write as `aiperf profile --export-level records` exports."""
    lines = []
    for number, answer in enumerate(answered):
        spec, summary = _spec(answer.trace), answer.trace.summary
        assert summary is not None
        counts = {str(j): count for j, count in enumerate(spec["acceptance_histogram"]) if count}
        first, total = summary.prefill_seconds * 1000, (summary.prefill_seconds + summary.decode_seconds) * 1000
        metrics = {
            "time_to_first_token": (round(first, 4), "ms"),
            "request_latency": (round(total, 4), "ms"),
            "input_sequence_length": (len(answer.trace.header.prompt), "tokens"),
            "output_sequence_length": (len(answer.trace.ids), "tokens"),
        }
        names = ["mean_acceptance_length", "draft_acceptance_rate", "num_spec_steps", "num_spec_tokens"]
        names += ["num_accepted_draft_tokens", "num_draft_tokens", "per_step_accepted", "per_step_drafted"]
        lines.append(
            {
                "metadata": {
                    "session_num": number,
                    "conversation_id": f"question-{answer.task.id}",
                    "turn_index": 0,
                    "benchmark_phase": "profiling",
                },
                "metrics": {name: {"value": value, "unit": unit} for name, (value, unit) in metrics.items()},
                "spec_decode_acceptance": {
                    "engine": "vllm",
                    "acceptance_histogram": counts,
                    "completion_tokens": len(answer.trace.ids),
                    **{name: spec[name] for name in names},
                },
                "error": None,
            }
        )
    return json_lines(lines)


def speculators(engine: Engine, answered: Sequence[AnsweredTask]) -> str:
    """Write as the evaluation of vllm-project/speculators writes its acceptance.csv."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    names = ["subset", "num_drafts", "num_draft_tokens", "num_accepted_tokens", "acceptance_length"]
    table.writerow([*names, *(f"acceptance_at_pos_{position}" for position in range(GAMMA))])
    for category in dict.fromkeys(answer.task.category for answer in answered):
        specs = [_spec(answer.trace) for answer in answered if answer.task.category == category]
        accepted = [j for spec in specs for j in spec["per_step_accepted"]]
        drafts = sum(spec["num_draft_tokens"] for spec in specs)
        steps, hits = len(accepted), sum(accepted)
        table.writerow([category, float(steps), float(drafts), float(hits), 1 + hits / steps, *_marginal(accepted)])
    return out.getvalue()


def specdec_bench(engine: Engine, answered: Sequence[AnsweredTask]) -> str:
    """Write as NVIDIA's specdec_bench writes its speculation_profile.json."""
    accepted = [j for answer in answered for j in _spec(answer.trace)["per_step_accepted"]]
    marginal = _marginal(accepted)
    before = [1.0, *marginal]
    by_category: dict[str, list[int]] = {}
    for answer in answered:
        by_category.setdefault(answer.task.category, []).extend(_spec(answer.trace)["per_step_accepted"])
    profile = {
        "schema_version": "1.0",
        "measured": True,
        "method": METHOD,
        "draft_checkpoint": "pocket/eagle",
        "target_model": "pocket",
        "num_speculative_tokens": GAMMA,
        "verification_method": "longest_prefix",
        "conditional_accept_rates": [round(m / b, 6) if b else 0.0 for m, b in zip(marginal, before, strict=False)],
        "marginal_accept_rates": [round(share, 6) for share in marginal],
        "mean_accept_length": round(1 + sum(accepted) / len(accepted), 6),
        "acceptance_length_histogram": {str(j + 1): count for j, count in sorted(Counter(accepted).items())},
        "per_category": {
            name: {"mean_accept_length": round(1 + sum(steps) / len(steps), 6)} for name, steps in by_category.items()
        },
        "measurement_conditions": {"engine": "specscope", "dataset": "pocket", "num_samples": len(answered)},
    }
    return json.dumps(profile, indent=1) + "\n"


def vllm_vcr(engine: Engine, answered: Sequence[AnsweredTask]) -> str:
    """Write as vllm-vcr records with --record-tokens."""
    lines: list[JSON] = [{"meta": {"model": "pocket", "source": "specscope"}}]
    for answer in answered:
        later = answer.trace.steps[1:]
        lines.append(
            {
                "prompt_tokens": len(answer.trace.header.prompt),
                "output_tokens": len(answer.trace.ids),
                "ttft_ms": answer.trace.steps[0].timing.total_ms,
                "itl_ms": [step.timing.total_ms for step in later],
                "itl_tokens": [len(step.emitted) for step in later],
                "concurrency": 1,
                "output_token_ids": list(answer.trace.ids),
                "finish_reason": _finish(answer.trace),
            }
        )
    return json_lines(lines)


def spec_bench(engine: Engine, answered: Sequence[AnsweredTask]) -> str:
    """Write as Spec-Bench writes its answers."""
    lines = []
    for answer in answered:
        summary, steps = answer.trace.summary, answer.trace.steps
        assert summary is not None
        choice = {
            "index": 0,
            "turns": [summary.text],
            "decoding_steps": [len(steps)],
            "new_tokens": [len(answer.trace.ids)],
            "wall_time": [round(summary.prefill_seconds + summary.decode_seconds, 6)],
            "accept_lengths": [len(step.emitted) for step in steps],
        }
        about = {
            "question_id": answer.task.id,
            "category": answer.task.category,
            "answer_id": f"answer-{answer.task.id}",
        }
        lines.append({**about, "model_id": f"pocket-{METHOD}-float32-temperature-0.0", "choices": [choice]})
    return json_lines(lines)


def _response(answer: AnsweredTask) -> dict[str, JSON]:
    """Return vLLM's answer, without the fields that we add."""
    response = vllm(answer.trace)
    del response["specscope"]
    return {"id": f"cmpl-{answer.task.id}", **response}


def _marginal(accepted: Sequence[int]) -> list[float]:
    """Return the share of steps that accept a guess at each position."""
    return [sum(j > position for j in accepted) / len(accepted) for position in range(GAMMA)]


def _spec(trace: Trace) -> dict[str, JSON]:
    spec: dict[str, JSON] = vllm(trace)["metrics"]["speculative_decoding"]
    return spec


def _finish(trace: Trace) -> str:
    assert trace.summary is not None
    return "length" if trace.summary.finish == "length" else "stop"


def json_lines(rows: Iterable[JSON]) -> str:
    """Write a JSON object a line."""
    return "".join(json.dumps(row) + "\n" for row in rows)
