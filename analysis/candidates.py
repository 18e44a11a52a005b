"""The settings that `tune` tries beside a method's defaults and presets: grids of what matters for speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from decoding.types import JSON

Settings = Mapping[str, JSON]


def _grid(**values: Sequence[JSON]) -> Iterator[Settings]:
    """Yield every combination of these values."""
    return (dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))


_SHARES = (0.0, 0.2, 0.3, 0.4, 0.5, 0.7)  # thresholds of confidence

CANDIDATES: Mapping[str, Sequence[Settings]] = {
    "jacobi": [*_grid(n=(1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24), refill=("prompt", "last", "zero"))],
    "lookahead": [
        *_grid(W=(1, 2, 3, 5, 7, 10), N=(3, 4, 5), G=(2, 3, 5), layout=("merged",), prompt_as_reference=(True,))
    ],
    "draft_model": [{"gamma": 1}, *_grid(gamma=(2, 3, 4, 6, 8, 12), threshold=_SHARES)],
    "prompt_lookup": [*_grid(K=(1, 2, 3, 4, 5, 7, 10, 15), max_ngram=(2, 3, 5), tail=("repeat", "short"))],
    "suffix": [*_grid(alpha=(1.0, 2.0, 3.0, 5.0), c=(3, 5, 8, 12, 24), epsilon=(0.1, 0.3))],
    "ngrammys": [*_grid(k=(1, 2, 3, 4, 6, 8), w=(1, 2, 3, 4, 6, 10), layout=("trie",))],
    "token_recycling": [
        *_grid(
            tree=("grown",),
            size=(2, 3, 4, 5, 6, 7, 10, 15, 20, 30, 40, 60),
            warm_start=("across",),
            prompt_as_reference=(True, False),
        )
    ],
    "medusa": [*_grid(size=(1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 40), heads=(0, 2, 3))],
    "kangaroo": [{"gamma": 1}, *_grid(gamma=(2, 3, 4, 6, 8), eta=(0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7))],
    "eagle3": [
        *_grid(form=("chain",), gamma=(1, 2, 3, 4, 6, 8), threshold=(0.0, 0.1, 0.3, 0.5)),
        *_grid(m=(3, 5, 7, 10, 15, 24), k=(4,), depth=(4, 6), threshold=(0.05,), expand=(0.2, 0.4)),
    ],
    "dflash": [
        *_grid(gamma=(1, 2, 3, 4, 6, 8, 15), threshold=(0.0, 0.1, 0.2, 0.3, 0.5)),
        *_grid(form=("tree",), m=(4, 7, 12, 20), k=(3,), gamma=(4, 8), threshold=(0.02, 0.05)),
    ],
    "ouroboros": [
        *_grid(drafting=("plain",), gamma=(1, 2, 3, 4, 6, 8), K=(0,)),
        *_grid(
            drafting=("plain",),
            gamma=(1, 2, 3, 4, 6, 8),
            K=(1, 2, 3),
            N=(3, 4),
            W=(3,),
            G=(3,),
            warm_start=("prompt",),
        ),
    ],
    "rest": [*_grid(c=(2, 3, 5, 7, 10, 15, 30), length=(4, 6, 10), shortest=(1, 2))],
}
