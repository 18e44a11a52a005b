"""Records of engines that say less than ours, or nothing: none of them is taken for another engine's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from analysis.imports import read_any
from analysis.metrics import Selection, measure
from decoding.errors import TraceError

from .samples import changed, sample

USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
CHAT = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [CHAT],
    "usage": USAGE,
}
CHUNK = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "He"}}]}
TIMES = {"prompt_n": 9, "prompt_ms": 20.0, "predicted_n": 5, "predicted_ms": 50.0, "cache_n": 0}
DRAFTED = {"draft_n": 6, "draft_n_accepted": 3}

# Shape by name, what its first record is, and what the refusal must say.
FOREIGN: list[tuple[str, Any, str]] = [
    (
        "OpenAI's chat",
        ANSWER | {"system_fingerprint": "fp_44709d6fcb", "service_tier": "default"},
        "neither which engine",
    ),
    (
        "a completion",
        ANSWER | {"object": "text_completion", "choices": [{"text": "a", "index": 0}]},
        "neither which engine",
    ),
    ("OpenAI's stream", CHUNK, "a chunk of a streamed answer"),
    ("vLLM's last chunk", {"object": "chat.completion.chunk", "choices": [], "metrics": {"queue_time_ms": 1}}, "chunk"),
    ("llama.cpp's last chunk", {"object": "chat.completion.chunk", "choices": [], "timings": TIMES | DRAFTED}, "chunk"),
    (
        "TensorRT-LLM's chat",
        ANSWER | {"choices": [CHAT | {"stop_reason": None, "avg_decoded_tokens_per_iter": 2.5}]},
        "TensorRT-LLM's answer",
    ),
    (
        "TensorRT-LLM's chat of a server that splits its passes",
        ANSWER | {"choices": [CHAT | {"disaggregated_params": None}], "kv_transfer_params": None},
        "TensorRT-LLM's answer",
    ),
    (
        "SGLang's chat behind a router of vLLM's",
        ANSWER | {"choices": [CHAT | {"matched_stop": None}], "prompt_logprobs": None},
        "SGLang's answer without its details",
    ),
    ("SGLang's chat", ANSWER | {"choices": [CHAT | {"matched_stop": 2}]}, "SGLang's answer without its details"),
    ("MT-bench's answers", {"question_id": 1, "choices": [{"index": 0, "turns": ["a"]}]}, "without accept_lengths"),
    ("EAGLE's answers", {"question_id": 1, "choices": [{"turns": ["a"], "idxs": [3], "new_tokens": [9]}]}, "accept_l"),
    ("an error", {"error": {"message": "no such model", "code": 404}}, "the error that a server answered with"),
    ("Ollama's chat", {"model": "m", "message": CHAT["message"], "done": True, "eval_count": 5}, "no record"),
    ("TGI's answer", {"generated_text": "a", "details": {"generated_tokens": 5, "tokens": []}}, "no record"),
    ("Anthropic's message", {"type": "message", "role": "assistant", "content": [], "usage": {}}, "no record"),
    ("Gemini's answer", {"candidates": [{"content": {}}], "usageMetadata": {"totalTokenCount": 9}}, "no record"),
    ("OpenAI's response", {"object": "response", "output": [], "usage": {"output_tokens": 5}}, "no record"),
    ("OpenAI's batch", {"custom_id": "1", "response": {"status_code": 200, "body": ANSWER}}, "no record"),
    ("an experiment's metrics", {"metadata": {"name": "x"}, "metrics": {"loss": 1.5}}, "no record"),
    ("lm-eval's results", {"results": {"gsm8k": {"acc": 0.5}}, "config": {"model": "m"}}, "no record"),
    ("a chat for training", {"messages": [{"role": "user", "content": "a"}], "meta": {"source": "x"}}, "no record"),
    ("other meta_info", {"meta_info": {"author": "x"}, "text": "a"}, "no record"),
    ("vllm bench's result", {"backend": "vllm", "num_prompts": 9, "mean_ttft_ms": 1, "mean_itl_ms": 2}, "no record"),
    ("a file's header", {"kind": "header", "columns": 3}, "no record"),
]


@pytest.mark.parametrize(("name", "record", "sentence"), FOREIGN, ids=[name for name, *_ in FOREIGN])
def test_a_foreign_record_is_refused_for_what_it_is(name: str, record: Any, sentence: str) -> None:
    """It became a folder of vLLM's with no step, which a chart shows as nothing ever accepted."""
    with pytest.raises(TraceError, match="line 1 is") as refusal:
        read_any(json.dumps(record).encode())
    assert sentence in str(refusal.value) and len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'data: {"object": "chat.completion.chunk", "choices": []}\n\ndata: [DONE]\n', "a stream of events"),
        (b"event: message\ndata: {}\n", "a stream of events"),
        (b': ping\n\ndata: {"object": "chat.completion.chunk", "choices": []}\n\n', "a stream of events"),
        (b": ping - 2026-01-01 10:00:00\r\n\r\n: ping\r\n\r\n", "a stream of events"),
        (b'id: 1\ndata: {"choices": []}\n\nid: 2\ndata: [DONE]\n\n', "a stream of events"),
        (b"id: 1\n\n", "a stream of events"),
        (b"retry: 3000\n:\ndata:{}\n\n", "a stream of events"),
        (
            b"INFO 09-16 05:26:57 [metrics.py:120] SpecDecoding metrics: Mean acceptance length: 3.00, Accepted "
            b"throughput: 9.00 tokens/s, Drafted: 90 tokens, Per-position acceptance rate: 1.000, 1.000\n",
            "a server's log",
        ),
        (
            b"[2026-01-01 10:00:00] Decode batch, #running-req: 1, accept len: 2.5, gen throughput: 9\n",
            "a server's log",
        ),
        (
            b"slot print_timing: id 0 | draft acceptance rate = 0.81944 (118 accepted / 144 generated)\n",
            "a server's log",
        ),
        (
            b"=" * 70 + b"\n" + b"  loading | tensor\n" * 9_000 + b"[x] Decode batch, #running-req: 1\n",
            "a server's log",
        ),
        (
            b'{"levelname": "INFO", "message": "SpecDecoding metrics: Mean acceptance length: 3.00"}\n{"levelname"',
            "a line of a log",
        ),
        (b'{"timestamp": 1, "level": "INFO", "function": "print_timings", "msg": "eval time"}\n', "a line of a log"),
        (b"# HELP vllm:spec_decode_num_drafts_total Drafts.\nvllm:spec_decode_num_drafts_total 5\n", "counters"),
    ],
)
def test_logs_and_streams_are_called_so(data: bytes, sentence: str) -> None:
    """A log was a table whose second line had another number of cells."""
    with pytest.raises(TraceError, match=sentence):
        read_any(data)


def test_a_text_with_fields_of_others_is_no_stream() -> None:
    with pytest.raises(TraceError) as refusal:
        read_any(b"id: 1\nname: a run\n")
    assert "stream" not in str(refusal.value)


def test_a_format_that_is_named_is_no_excuse() -> None:
    with pytest.raises(TraceError, match="no record of answers like vLLM's, but a chunk of a streamed answer"):
        read_any(json.dumps(CHUNK).encode(), format="vllm")


@pytest.mark.parametrize(
    ("more", "engine"),
    [
        ({"system_fingerprint": "b9251-e2b129e1b"}, "llama.cpp"),
        ({"system_fingerprint": "fp_1"}, "unknown"),  # others write timings in the same form
        ({}, "unknown"),
    ],
)
def test_llama_cpps_counts_are_imported(more: dict[str, Any], engine: str) -> None:
    imported = read_any(json.dumps(ANSWER | more | {"timings": TIMES | DRAFTED}).encode())
    (run,) = imported.runs.to_pylist()
    assert (run["engine"], run["drafted"], run["accepted"], run["new_tokens"], run["prompt_tokens"]) == (
        engine,
        6,
        3,
        5,
        9,
    )
    assert (run["text"], run["finish"], run["steps"]) == ("Hello", "stop", None)
    assert run["decode_seconds"] == pytest.approx(0.05) and not len(imported.steps)
    assert "not those of each step" in imported.summary["missing"]["runs.steps"]
    rate = measure("draft_acceptance_rate", Selection.of(*imported[:3], imported.summary["missing"]))
    assert rate["value"] == 0.5


def test_llama_cpps_own_completions_are_read() -> None:
    record = {"content": "a b", "tokens": [5, 6, 7, 8, 9], "stop_type": "limit", "generation_settings": {"seed": 1}}
    (run,) = read_any(json.dumps(record | {"timings": TIMES}).encode()).runs.to_pylist()
    assert (run["engine"], run["ids"], run["finish"], run["text"]) == ("llama.cpp", [5, 6, 7, 8, 9], "length", "a b")
    assert run["drafted"] is None and run["prompt_tokens"] == 9  # before it counted drafts, or without a drafter


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ({"draft_n": 2}, "draft_n_accepted is 3, but draft_n is 2"),
        ({"draft_n": None}, "draft_n is missing"),
        (
            {"draft_n": 60, "draft_n_accepted": 40},
            "draft_n_accepted is 40, but predicted_n, which counts these and the first token, is 5",
        ),
        ({"draft_n_accepted": 5}, "draft_n_accepted is 5, but predicted_n"),
        ({"predicted_n": 6}, "predicted_n is 6, but the tokens of the answer give 5"),
        ({"cache_n": 1}, "prompt_n is 9, but the prompt tokens of usage without cache_n give 8"),
        ({"predicted_per_second": 500.0}, "predicted_per_second is 500, but predicted_n and predicted_ms give"),
        ({"predicted_ms": -1}, "predicted_ms must be a number from 0"),
    ],
)
def test_timings_that_do_not_add_up_are_refused(times: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TraceError, match=sentence):
        read_any(json.dumps(ANSWER | {"timings": TIMES | DRAFTED | times}).encode())


KEYS = {"prompt_logprobs": None, "kv_transfer_params": None}  # of vLLM's answers, and of its forks', even where null


@pytest.mark.parametrize(
    "record",
    [
        ANSWER | KEYS,
        ANSWER | {"kv_transfer_params": None, "service_tier": None, "system_fingerprint": None},
        ANSWER | KEYS | {"metrics": {"time_to_first_token_ms": 1.0}},  # others have such times too
        ANSWER | KEYS | {"metrics": None},
    ],
)
def test_an_answer_in_vllms_form_without_its_metrics_is_of_an_unknown_engine(record: Any) -> None:
    """Aphrodite Engine writes it too; what it lacks has its reason."""
    imported = read_any(json.dumps(record).encode())
    assert imported.runs["engine"].to_pylist() == ["unknown"] and not len(imported.steps)
    assert imported.runs["text"].to_pylist() == ["Hello"] and imported.runs["new_tokens"].to_pylist() == [5]
    assert imported.summary["source"] == "unknown"
    assert "--per-request-spec-decode-metrics" in imported.summary["missing"]["steps"]


def test_an_answer_without_metrics_between_those_of_vllm_is_of_an_unknown_engine() -> None:
    data = sample("vllm.jsonl") + json.dumps(ANSWER | KEYS).encode()
    imported = read_any(data)
    engines = imported.runs["engine"].to_pylist()
    assert set(engines[:-1]) == {"vllm"} and engines[-1] == "unknown" and imported.summary["source"] == "vllm"


def spec(row: Any) -> Any:
    return row["metrics"]["speculative_decoding"]


DISAGREEING: list[tuple[str, Callable[[Any], object], str]] = [
    (
        "sglang.jsonl",
        lambda row: row["meta_info"].update(spec_accept_token_num=row["meta_info"]["spec_num_correct_drafts"] + 1),
        "spec_accept_token_num holds another value than spec_num_correct_drafts",
    ),
    (
        "sglang.jsonl",
        lambda row: row["meta_info"].update(spec_draft_token_num=1),
        "spec_draft_token_num holds another value than spec_num_proposed_drafts",
    ),
    (
        "sglang.jsonl",
        lambda row: row["meta_info"].update(spec_accept_histogram=[1, 2, 3]),
        "spec_accept_histogram holds another value than spec_correct_drafts_histogram",
    ),
    (
        "sglang.jsonl",
        lambda row: row["meta_info"].update(output_token_ids=[1, 2]),
        "output_ids holds other tokens than output_token_ids",
    ),
    (
        "sglang.jsonl",
        lambda row: row.update(usage={"completion_tokens": 1, "prompt_tokens": 2}),
        "completion_tokens",
    ),
    ("vllm.jsonl", lambda row: row.update(prompt_token_ids=[1, 2, 3]), "prompt_token_ids holds other tokens"),
    (
        "vllm.jsonl",
        lambda row: spec(row)["per_step_drafted"].__setitem__(slice(0, 2), [5, 3]),
        "acceptance_histogram_by_draft_length counts|per_step_accepted",
    ),
    ("vllm.jsonl", lambda row: spec(row).pop("per_step_accepted"), "per_step_accepted is missing"),
    ("vllm.jsonl", lambda row: row["metrics"].update(tokens_per_second=99_999), "tokens_per_second is 99999, but"),
    ("vllm.jsonl", lambda row: row["metrics"].update(generation_time_ms=1.0), "but the tokens and"),
]


@pytest.mark.parametrize(("name", "change", "sentence"), DISAGREEING)
def test_fields_that_say_the_same_twice_must_agree(name: str, change: Callable[[Any], object], sentence: str) -> None:
    """The first of them was read, and the other one passed."""
    with pytest.raises(TraceError, match=f"line 2.*({sentence})"):
        read_any(changed(name, 2, change))


def longer(row: Any) -> None:
    """Count fewer tokens than the steps write, wherever that is counted."""
    for holder in (row.get("usage"), row.get("meta_info"), row.get("spec_decode_acceptance")):
        if holder and "completion_tokens" in holder:
            holder["completion_tokens"] = 3
            holder.pop("total_tokens", None)
    for choice in [row, *row.get("choices", ())]:
        for ids in ("token_ids", "output_ids"):
            choice.pop(ids, None)
    row.get("metrics", {}).pop("tokens_per_second", None)
    row.get("metrics", {}).pop("mean_itl_ms", None)
    row.get("meta_info", {}).pop("spec_accept_length", None)


@pytest.mark.parametrize("name", ["vllm.jsonl", "sglang.jsonl", "aiperf.jsonl"])
def test_a_token_count_that_is_wrong_is_named_by_its_path(name: str) -> None:
    """The sentence named metrics.speculative_decoding.usage.completion_tokens, which no record has."""
    rows = [json.loads(line) for line in sample(name).splitlines()]
    longer(rows[1])
    with pytest.raises(TraceError) as refusal:
        read_any(b"\n".join(json.dumps(row).encode() for row in rows))
    path = re.search(r"line 2: (\S+) is 3, but", str(refusal.value))
    assert path, str(refusal.value)
    value = rows[1]
    for key in path[1].split("."):
        value = value[key]
    assert value == 3
