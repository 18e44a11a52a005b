"""Settings of the methods that may be fastest on a CPU: what `tune` tries beside defaults and presets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from decoding.methods.token_recycling import TokenRecyclingParams
from decoding.types import JSON

from .tuned import CPU

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
