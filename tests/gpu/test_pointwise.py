"""The kernels between a layer's products against float64, and a model that runs them against one that does not."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from benchmarks.gpu_kernels import copied, steps
from benchmarks.kernel_cases import LayerSizes
from decoding.gpu.choice import POINTWISE
from decoding.model import attention, captured, decoder, kernels
from decoding.model.decoder import Decoder
from decoding.model.graphs import Recorder
from tests import families
from tests.gpu import DEVICE
from tests.model.texts import random_tree
from tests.tiers import sampled, slow

NAMES = ("norm", "rotary", "rotary, qk-norm", "swiglu", "merge")
# Sizes that fill no block: the second has one key for all heads, the third halves of heads that are no power of two.
SHAPES = (
    LayerSizes("even", 128, 96, 4, 2, 16),
    LayerSizes("one key", 65, 1030, 3, 1, 64),
    LayerSizes("odd", 200, 33, 6, 2, 20),
)
BLOCK = 8  # prefixes of a text that need not be long
CHAIN = (-1, 0, 1, 2, 3)


def case(name: str) -> Any:
    """Return a case of the benchmark; asked for in tests, because there may be no Triton to import."""
    return next(each for each in import_module("benchmarks.kernel_cases.pointwise").CASES if each.name == name)


@sampled
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize("name", NAMES)
def test_against_float64(name: str, shape: LayerSizes, dtype: torch.dtype) -> None:
    """A mask that ends too early or too late, or a rounding that is left out, which turns every third number."""
    made = case(name)
    for rows in (1, 5):
        torch.manual_seed(rows)
        inputs = made.make(shape, rows, DEVICE, dtype)
        exact = tree_leaves(made.exact(*copied(inputs)))
        results = tree_leaves(made.outputs(inputs, made.ours(*inputs)))
        for each, wanted in zip(results, exact, strict=True):
            assert each.dtype == dtype
            if dtype == torch.float32:
                torch.testing.assert_close(each.double(), wanted, rtol=2e-6, atol=2e-6)
            else:  # half a step is the rounding itself; what is rounded on the way may fall to the other side
                assert steps(each, wanted, dtype) <= 2.0
                assert (each != wanted.to(dtype)).sum() <= 0.005 * each.numel()


# Of a kernel's inputs those of one row.
ROW: dict[str, Callable[[Any, int], Any]] = {
    "norm": lambda inputs, row: (*(each[row : row + 1] for each in inputs[:2]), *inputs[2:]),
    "rotary": lambda inputs, row: tuple(
        each[row : row + 1] if at in (0, 3, 5) else each for at, each in enumerate(inputs)
    ),
    "swiglu": lambda inputs, row: (inputs[0][row : row + 1],),
    "merge": lambda inputs, row: (
        *(tuple(each[:, :, 3 * row : 3 * row + 3] for each in part) for part in inputs[:2]),
        inputs[2][row : row + 1],
    ),
}
ROW["rotary, qk-norm"] = ROW["rotary"]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_does_not_depend_on_the_others(name: str) -> None:
    """Or a tree's rows would write another text than one token a step does."""
    made, shape = case(name), SHAPES[2]
    inputs = made.make(shape, 7, DEVICE, torch.bfloat16)
    together = tree_leaves(made.outputs(inputs, made.ours(*inputs)))
    for row in range(7):
        one = ROW[name](inputs, row)
        alone = tree_leaves(made.outputs(one, made.ours(*one)))
        assert all(torch.equal(a[0], b[row]) for a, b in zip(alone, together, strict=True))


def test_neighbouring_rows_need_no_positions() -> None:
    """A chain's positions and slots are slices, which the host knows."""
    rotary = import_module("decoding.gpu.rotary").rotary
    qkv, cos, sin, _, cache, _, _, eps = case("rotary").make(SHAPES[0], 5, DEVICE, torch.float32)
    other, places = cache.clone(), torch.arange(3, 8, device=DEVICE)
    expected = rotary(qkv, cos, sin, places, cache, places + 4, None, eps)
    neighbouring = rotary(qkv, cos[3:], sin[3:], None, other[:, 7:12], None, None, eps)
    assert torch.equal(neighbouring, expected) and torch.equal(other, cache)


class Again(Recorder):
    """Does the work again where a graph would be replayed."""

    def _record(self, work: Callable[[], None]) -> Any:
        work()
        return type("Work", (), {"replay": staticmethod(work)})()


@torch.inference_mode()
def answers(model: Decoder, turns: int) -> list[torch.Tensor]:
    """Read a text and trees after it, over the end of a prefix; in many turns, round a window's cache."""
    session = model.open(64, 5)
    session.tap(1, 3)
    session.reset(1)
    made, source = [], torch.Generator().manual_seed(0)
    for turn in range(turns):
        ids = torch.randint(3, 60, (5,), generator=source).tolist()
        reading = session.read(ids, random_tree(5, turn) if turn % 2 else CHAIN)
        session.commit([0] if turn % 2 else range(5))
        made += [reading.logits, reading.hidden, session.tapped()]
    entered = session.enter(ids, 2)
    return [*made, entered, session.resume(ids, CHAIN, 2, entered).logits]


@slow  # a model in the interpreter of kernels
@pytest.mark.parametrize(
    ("family", "graphs"), [pytest.param("mistral", False, marks=slow), ("qwen3", False), ("llama-biased", True)]
)
def test_a_model_answers_the_same(family: str, graphs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each place a kernel gets what torch's operations got, and early exits and tapped states are sums."""
    monkeypatch.setenv(kernels.VARIABLE, "plain")
    monkeypatch.setattr(decoder, "suits", lambda *arguments: False)
    for module in (attention, captured):
        monkeypatch.setattr(module, "BLOCK", BLOCK)
    both = []
    for names in ((), POINTWISE):
        monkeypatch.setattr(decoder, "chosen", lambda *arguments, names=names: frozenset(names))
        model = families.machine(family, torch.empty(0, device=DEVICE)).model
        assert isinstance(model, Decoder)
        model.recorder = Again(DEVICE) if graphs else None
        both.append(answers(model, 9 if model.shape.windows[0] else 5))
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
