"""The fastest settings on this machine's CPU: `python -m benchmarks.tune --model smollm2`.

Every candidate decodes the same prompts in turn, beside autoregressive decoding; the table says what each was worth.
The fastest are the methods' presets (analysis/tuned.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from analysis.bench.methods import BenchEntry, base_entry, measure, method_entry
from analysis.prompts.tasks import Task
from analysis.tuned import CPU
from cli.bench import read_questions
from cli.progress import ProgressBar
from decoding import load
from decoding.engine import Engine
from decoding.methods.token_recycling import TokenRecyclingParams
from decoding.types import JSON

from .measure import flags, publish, table

Settings = Mapping[str, JSON]

CANDIDATES: Mapping[str, Sequence[Settings]] = {
    "jacobi": [{"n": n} for n in (1, 2, 3, 5)],
    "lookahead": [
        {"W": W, "N": N, "G": G, "layout": "merged", "prompt_as_reference": True}
        for W, N, G in ((1, 3, 2), (2, 3, 2), (2, 3, 3), (3, 3, 3), (5, 3, 3), (4, 4, 4))
    ],
    "draft_model": [
        *({"gamma": gamma} for gamma in (1, 2, 3, 5)),
        *({"gamma": gamma, "threshold": limit} for gamma in (2, 4, 6) for limit in (0.3, 0.5)),
    ],
    "prompt_lookup": [{"K": K, "max_ngram": n} for K in (3, 5, 7, 10) for n in (3, 5)],
    "suffix": [
        {"alpha": alpha, "c": c, "epsilon": epsilon}
        for alpha, c in ((2.0, 5), (3.0, 8), (5.0, 5), (5.0, 8))
        for epsilon in (0.1, 0.3)
    ],
    "ngrammys": [
        {"k": k, "w": w, "layout": "trie"} for k, w in ((2, 2), (3, 1), (3, 2), (3, 3), (4, 2), (5, 4), (8, 4))
    ],
    "token_recycling": [
        {"tree": "grown", "size": size, "warm_start": "across", "prompt_as_reference": pairs}
        for size, pairs in (*((size, True) for size in (3, 4, 5, 7, 10, 15)), (5, False), (7, False))
    ]
    + [TokenRecyclingParams.presets[CPU]],  # a tree grown from other numbers
    "medusa": [{"size": size} for size in (3, 4, 5, 6, 7, 10, 15)],
    "kangaroo": [
        *({"gamma": gamma, "eta": 0.0} for gamma in (1, 2, 3)),
        *({"gamma": gamma, "eta": eta} for gamma in (3, 6) for eta in (0.3, 0.4, 0.5, 0.6)),
    ],
    "eagle3": [
        *({"form": "chain", "gamma": gamma, "threshold": limit} for gamma in (4, 6, 8) for limit in (0.0, 0.3, 0.5)),
        *(
            {"m": m, "k": min(m, 4), "depth": 4, "threshold": 0.05, "expand": expand}
            for m in (3, 4, 5, 7, 10)
            for expand in (0.2, 0.4)
        ),
    ],
    "ouroboros": [
        {"drafting": "plain", "gamma": gamma, "K": K, "N": N, "W": 3, "G": 3, "warm_start": "prompt"}
        for gamma, K, N in ((1, 1, 3), (1, 2, 3), (2, 1, 3), (2, 2, 3), (3, 1, 3), (4, 2, 4), (6, 2, 4))
    ],
    "rest": [
        {"c": c, "length": length, "shortest": shortest}
        for c, length in ((3, 6), (5, 10), (7, 10), (15, 10))
        for shortest in (1, 2)
    ],
}


def tune(engine: Engine, tasks: Sequence[Task], methods: Sequence[str], budget: int) -> str:
    """Measure every candidate, and list the best of each method first."""
    base, by_method = base_entry(engine), dict[str, list[tuple[BenchEntry, Settings]]]()
    for method in methods:
        by_method[method] = [(method_entry(engine, method, settings), settings) for settings in CANDIDATES[method]]
    entries = [entry for candidates in by_method.values() for entry, _ in candidates]
    with ProgressBar() as progress:
        measure(engine, tasks, [base, *entries], budget, progress=progress)
    rows = [["method", "settings", "tokens/step", "speedup"]]
    for method, candidates in by_method.items():
        for entry, settings in sorted(candidates, key=lambda pair: pair[0].speed or 0.0, reverse=True):
            rows.append([method, _spelt(settings), f"{_length(entry):.2f}", f"{_ratio(entry, base):.2f}x"])
    return table(rows)


def _ratio(entry: BenchEntry, base: BenchEntry) -> float:
    return (entry.speed or 0.0) / (base.speed or 1.0)


def _length(entry: BenchEntry) -> float:
    return sum(len(run.ids) for run in entry.runs) / sum(run.steps for run in entry.runs)


def _spelt(settings: Settings) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def main() -> None:
    """Measure and print."""
    parser = flags("tune", __doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--methods", default=",".join(CANDIDATES))
    parser.add_argument("--limit", type=int, default=7, help="tasks (default: one of each kind)")
    parser.add_argument("--max-new-tokens", type=int, default=64)
    parser.add_argument("--dtype")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    engine = load(arguments.model, device="cpu", dtype=arguments.dtype)
    tasks = read_questions(None, arguments.model, arguments.limit)
    publish("tune", tune(engine, tasks, arguments.methods.split(","), arguments.max_new_tokens), arguments.out)


if __name__ == "__main__":
    main()
