"""Trees of guesses: the cost of a pass over k chains of w on measured machines, and the tokens that they write."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decoding.errors import TraceError
from decoding.packed import ASSETS
from decoding.trace.schema import from_json

# Tokens that methods write, by the size of their trees; made by benchmarks/written_tokens.py.
COUNTED = {method: ASSETS / "costs" / "tokens" / f"{method}.json" for method in ("ngrammys", "medusa")}
_MOST, _MOST_BYTES, _MOST_MS = 16, 2**20, 1e7


@dataclass(frozen=True, slots=True)
class TreeCosts:
    """Times of a model's passes over trees, after a text of one length."""

    shape: str  # the model
    context: int
    k: tuple[int, ...]
    w: tuple[int, ...]
    single_milliseconds: float  # of a pass over one token, measured in the same rounds
    milliseconds: tuple[tuple[float, ...], ...]  # by k and w
    noisy: tuple[tuple[int, int], ...] = ()  # k and w of the times that were disturbed; 1 and 0: of the single pass


def read_trees(path: Path, leave_out: Callable[[str], None]) -> dict[tuple[str, int], TreeCosts]:
    """Read a file's trees by model and context; `leave_out` is called with a sentence on each incomplete one."""
    trees = dict[tuple[str, int], TreeCosts]()
    rows = _content(path).get("trees")
    for number, row in enumerate(rows if isinstance(rows, list) else (), start=1):
        try:
            each = _checked(row, f"{path.name}: tree {number}")
        except TraceError as error:
            leave_out(f"trees are left out: {error}")
        else:
            trees[each.shape, each.context] = each
    return trees


def read_drafting(path: Path, method: str) -> dict[str, float]:
    """Return how many milliseconds a method's drafting took in a step, for each model that was measured undisturbed."""
    rows, times = _content(path).get("methods"), dict[str, float]()
    for row in rows if isinstance(rows, list) else ():
        with suppress(TypeError, KeyError, AttributeError):
            if row["method"] == method and 0 <= row["draft_milliseconds"] < _MOST_MS and not row.get("disturbed"):
                times[row["shape"]] = row["draft_milliseconds"]
    return times


def tokens_per_step(method: str) -> dict[str, dict[str, Any]]:
    """Return a method's tokens per step by the size of its trees, for each model that was counted."""
    content = _content(COUNTED[method])
    facts = {name: content.get(name) for name in ("questions", "max_new_tokens", "date")}
    return {each["model"]: each | facts for each in content.get("models", ())}


def _content(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MOST_BYTES + 1))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _checked(row: Any, where: str) -> TreeCosts:
    if not isinstance(row, dict):
        raise TraceError(f"{where} is no object")
    names = TreeCosts.__dataclass_fields__
    trees: TreeCosts = from_json(TreeCosts, {name: row[name] for name in names if name in row}, where)
    if not all(_grows(sizes) for sizes in (trees.k, trees.w)):
        raise TraceError(f"{where} has numbers of guesses that do not grow")
    if [len(each) for each in trees.milliseconds] != [len(trees.w)] * len(trees.k):
        raise TraceError(f"{where} has not a time for every k and w")
    times = [trees.single_milliseconds, *(each for line in trees.milliseconds for each in line)]
    if not all(math.isfinite(each) and 0 < each < _MOST_MS for each in times):
        raise TraceError(f"{where} has times that are none")
    return trees


def _grows(sizes: Sequence[int]) -> bool:
    return 1 <= len(sizes) <= _MOST and sizes[0] >= 1 and all(a < b for a, b in zip(sizes, sizes[1:], strict=False))
