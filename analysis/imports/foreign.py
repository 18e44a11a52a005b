"""Identifies files without records: parts of an answer, answers that count no guesses, servers' logs."""

from __future__ import annotations

import re

from .fields import Fields

_BEGINNING = 2**22  # bytes that identify a log; it may have many lines on its start before the first request
_EVENTS = re.compile(rb"\s*(?:event|data): ?[{\[a-z]")
_EVENT_LINE = re.compile(rb":|(?:event|data|id|retry):")  # a comment or a field
_LOGS = (
    rb"SpecDecoding metrics:",  # vLLM
    rb"\b(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d",  # vLLM
    rb"Decode batch[.,]",  # SGLang
    rb"draft acceptance rate =|slot +print_timing",  # llama.cpp
)
_LOG = re.compile(b"|".join(_LOGS))
_LEVEL, _MESSAGE = ("level", "levelname", "severity", "lvl"), ("message", "msg", "event", "function")  # of a log's line
_COUNTERS = re.compile(rb"(?m)^# (?:HELP|TYPE) \w")
_TENSORRT = ("avg_decoded_tokens_per_iter", "disaggregated_params", "mm_embedding_handle")
_SGLANG = "matched_stop"


def is_chunk(fields: Fields) -> bool:
    """Return True if this is a piece of a streamed answer."""
    return str(fields.plain.get("object")).endswith(".chunk") or any(
        each.spells("delta") for each in fields.seen("choices")
    )


def is_of_another_server(fields: Fields) -> bool:
    """Return True if an answer has what neither vLLM nor its forks write, but TensorRT-LLM or SGLang does."""
    return any(choice.spells(*_TENSORRT, _SGLANG) for choice in fields.seen("choices"))


def describe(fields: Fields) -> str | None:
    """Say what kind of record this is and what to import instead; None if that is unknown."""
    choices = fields.seen("choices")
    if is_chunk(fields):
        return "a chunk of a streamed answer: import whole answers, asked for without stream"
    if any(choice.spells(*_TENSORRT) for choice in choices):
        return "TensorRT-LLM's answer, which holds at most a mean (avg_decoded_tokens_per_iter) and no accepted guesses"
    if any(choice.spells(_SGLANG) for choice in choices):
        return "SGLang's answer without its details: ask for return_spec_tokens_details"
    if "question_id" in fields and choices:
        return "an answer file without accept_lengths, which Spec-Bench's have"
    if choices:
        return (
            "an answer that says neither which engine wrote it nor what was accepted: "
            "vLLM does with --per-request-spec-decode-metrics"
        )
    if fields.spells(*_LEVEL) and fields.spells(*_MESSAGE):
        return "a line of a log, which has means over the requests of some seconds: import a server's answers"
    return "the error that a server answered with" if fields.spells("error") and len(fields.plain) < 3 else None


def describe_text(data: bytes) -> str | None:
    """Say the same of a file that is not JSON."""
    beginning = data[:_BEGINNING]
    if _EVENTS.match(beginning) or _is_event(beginning):
        return "the file is a stream of events, the chunks of an answer: import whole answers, asked for without stream"
    if _COUNTERS.search(beginning):
        return "the file holds a server's counters, which are sums over all requests: import its answers"
    if _LOG.search(beginning):
        return "the file is a server's log, which has means over the requests of some seconds: import its answers"
    return None


def _is_event(beginning: bytes) -> bool:
    """Return True if a text up to its first empty line is a server-sent event, or comments between such."""
    lines = beginning.lstrip().partition(b"\r\n\r\n")[0].partition(b"\n\n")[0].splitlines()
    return bool(lines) and all(_EVENT_LINE.match(line) for line in lines)
