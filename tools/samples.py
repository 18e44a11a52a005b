"""Make the sample files of `assets/samples/`: our runs of pocket, in the formats of other engines.

python -m tools.samples            # all files again
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis.prompts.tasks import read_tasks, spread
from analysis.restoring.restoring_loop import Cuts, RecordedStep, Sessions
from decoding import embedded, load
from decoding.engine import Engine
from decoding.packed import ASSETS
from decoding.types import JSON

from .sample_formats import (
    GAMMA,
    METHOD,
    AnsweredTask,
    aiperf,
    json_lines,
    llama_cpp,
    sglang,
    spec_bench,
    specdec_bench,
    speculators,
    vllm_detailed,
    vllm_summary,
    vllm_vcr,
)

FOLDER = ASSETS / "samples"
_QUESTIONS, _TOKENS = 7, 64
# A chain of a fixed length, none after the prompt's own pass: what vLLM and SGLang do with an EAGLE drafter.
PARAMS: dict[str, JSON] = {"form": "chain", "gamma": GAMMA, "threshold": 0.0}
_DRAFTERS: dict[str, tuple[str, dict[str, JSON]]] = {
    "acc_ngram": ("prompt_lookup", {"K": 10}),
    "acc_eagle": (METHOD, PARAMS | {"gamma": 8}),
}


def answers(engine: Engine, limit: int = _QUESTIONS) -> list[AnsweredTask]:
    """Answer questions of every kind greedily."""
    answered = []
    for task in spread(read_tasks(embedded.TASKS), limit):
        prompt = engine.as_turn(task.turns[0])
        answered.append(AnsweredTask(task, engine.generate(prompt, METHOD, PARAMS, {"temperature": 0}, _TOKENS).trace))
    return answered


def specdecode_bench(engine: Engine, answered: Sequence[AnsweredTask]) -> str:
    """Write the input of SpecDecode-Bench's simulator: how far two drafters get from every position."""
    lines = []
    for answer in answered:
        prompt, ids = answer.trace.header.prompt, answer.trace.ids
        lengths = {name: {"acc_len": _everywhere(engine, prompt, ids, *how)} for name, how in _DRAFTERS.items()}
        lines.append(
            {"id": str(answer.task.id), "prompt_token_ids": list(prompt), "generated_token_ids": list(ids), **lengths}
        )
    return json_lines(lines)


FILES: dict[str, Callable[[Engine, Sequence[AnsweredTask]], str]] = {
    "vllm.jsonl": vllm_detailed,
    "vllm_summary.json": vllm_summary,
    "sglang.jsonl": sglang,
    "llama_cpp.jsonl": llama_cpp,
    "aiperf.jsonl": aiperf,
    "acceptance.csv": speculators,
    "speculation_profile.json": specdec_bench,
    "vllm_vcr.jsonl": vllm_vcr,
    "specdecode_bench.jsonl": specdecode_bench,
    "spec_bench.jsonl": spec_bench,
}


class _OneByOne(Cuts):
    """Cuts after every token."""

    def __init__(self) -> None:
        super().__init__({"engine": "specscope"}, [])

    def take(self, guesses: int) -> RecordedStep:
        """Accept nothing."""
        return RecordedStep(accepted=0, drafted=None, written=1)


def _everywhere(
    engine: Engine, prompt: Sequence[int], ids: Sequence[int], method: str, params: dict[str, JSON]
) -> list[int]:
    """Count the tokens of a step after each token of a text but the last, the target's own token included."""
    run = engine.decode(prompt, method, params, {"temperature": 0}, len(ids) + 64, memory={})
    with Sessions(engine, run.request) as loop:
        loop.ids = ids
        return [reached + 1 for reached in loop.compare(0, _OneByOne()).reached[1:]]


def main() -> None:
    """Write all files."""
    engine = load(embedded.TARGET)
    answered = answers(engine)
    FOLDER.mkdir(exist_ok=True)
    for name, make in FILES.items():
        (FOLDER / name).write_text(make(engine, answered), encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
