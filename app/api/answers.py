"""Writes the answers of runs: ours, and those of OpenAI's chat completions with vLLM's request metrics."""

from __future__ import annotations

import time
from dataclasses import dataclass

from analysis.export import vllm
from decoding.types import Trace

from ..controls import runnable
from ..models.entry import CatalogEntry
from ..server.middleware.bodies import Json
from .run import ApiRun


def decode_answer(run: ApiRun, trace: Trace, root: str) -> Json:
    """Return the answer of `decode`."""
    header, summary = trace.header, trace.summary
    assert summary is not None
    return {
        "id": run.id,
        "record": record(run, root),
        "model": run.entry.name,
        "method": header.method,
        "params": dict(header.params),
        "sampling": dict(header.sampling),
        "lossless": header.lossless,
        "text": summary.text,
        "finish": summary.finish,
        "prompt_tokens": len(header.prompt),
        "new_tokens": summary.new_tokens,
        "steps": summary.steps,
        "drafted": sum(step.drafted for step in trace.steps),
        "accepted": sum(step.accepted for step in trace.steps),
        "mean_acceptance_length": summary.mean_acceptance_length,
        "draft_acceptance_rate": summary.draft_acceptance_rate,
        "acceptance_histogram": list(summary.acceptance_histogram),
        "waited_seconds": round(run.waited, 4),
        "prefill_seconds": summary.prefill_seconds,
        "decode_seconds": summary.decode_seconds,
        "tokens_per_second": summary.tokens_per_second,
    }


def record(run: ApiRun, root: str) -> str:
    """Return the address at which the page opens the record, while the server stores it."""
    return f"{root}/?run={run.id}"


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """The answer to a chat, whole or in chunks."""

    run: ApiRun
    root: str
    created: int

    @classmethod
    def of(cls, run: ApiRun, root: str) -> ChatAnswer:
        return cls(run, root, int(time.time()))

    def whole(self, trace: Trace) -> Json:
        """Return the whole answer."""
        plain, choice = self._plain(trace)
        message = {"role": "assistant", "content": choice.pop("text")}
        return {
            **self._about("chat.completion"),
            **plain,
            "choices": [{**choice, "message": message, "logprobs": None}],
        }

    def chunk(self, text: str, *, first: bool) -> Json:
        """Return a chunk with more of the text."""
        delta = {"role": "assistant", "content": text} if first else {"content": text}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        return {**self._about("chat.completion.chunk"), "choices": [choice]}

    def last(self, trace: Trace) -> Json:
        """Return the chunk that says why the text ended, with the metrics."""
        plain, choice = self._plain(trace)
        choice.pop("text")
        usage = plain.pop("usage")
        more = {"usage": usage} if self.run.call.usage else {}
        return {
            **self._about("chat.completion.chunk"),
            **plain,
            **more,
            "choices": [{**choice, "delta": {}, "logprobs": None}],
        }

    def _about(self, kind: str) -> Json:
        entry = self.run.entry.name
        return {"id": f"chatcmpl-{self.run.id}", "object": kind, "created": self.created, "model": entry}

    def _plain(self, trace: Trace) -> tuple[Json, Json]:
        """Return the export in vLLM's form and its choice, with the fields that only a server knows."""
        written = vllm(trace)
        [choice] = written["choices"]
        prompt_ids, ids = choice.pop("prompt_token_ids"), choice.pop("token_ids")
        more = {}
        if self.run.call.ids:
            choice["token_ids"], more["prompt_token_ids"] = ids, prompt_ids
        metrics = {**written["metrics"], "queue_time_ms": round(self.run.waited * 1000, 4)}
        ours = {**written["specscope"], "record": record(self.run, self.root)}
        return {"usage": written["usage"], "metrics": metrics, "specscope": ours, **more}, choice


def model_object(entry: CatalogEntry) -> Json:
    """Return a model as an entry of OpenAI's list, with the methods that it can run."""
    return {"id": entry.name, "object": "model", "created": 0, "owned_by": "specscope", "methods": runnable(entry)}
