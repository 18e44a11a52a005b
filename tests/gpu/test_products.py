"""Products that read their weight once, against float64: in Triton's interpreter where there is no CUDA device."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from decoding.gpu import products
from decoding.gpu.choice import PRODUCTS
from decoding.model import decoder, linear, quantised
from decoding.model.decoder import Decoder
from decoding.model.fused_layers import FEW
from decoding.model.loading import from_transformers
from decoding.model.quantised import rounded
from decoding.native import products as native_products
from tests import families
from tests.gpu import DEVICE
from tests.tiers import crossed, sampled, slow

ROW, BLOCK16, BLOCK64 = products.Tiling(0, 16, 128), products.Tiling(16, 64, 128), products.Tiling(64, 64, 64)
PLANS = [(1, ROW), (1, BLOCK16), (3, BLOCK16), (16, BLOCK16), (65, BLOCK64), (128, products.Tiling(128, 64, 32))]
STEP = {torch.float32: 2e-5, torch.float16: 2**-10, torch.bfloat16: 2**-7}


def random(*size: int, dtype: torch.dtype, at: int = 0) -> torch.Tensor:
    made = torch.randn(size, generator=torch.Generator().manual_seed(at))
    return (made / size[-1] ** 0.5 if len(size) == 2 else made).to(DEVICE, dtype)


def close(y: torch.Tensor, expected: torch.Tensor, steps: float = 0.6) -> None:
    assert y.shape == expected.shape
    assert ((y.double() - expected).abs() <= steps * STEP[y.dtype] * expected.abs().clamp(min=0.5)).all()


@sampled
@pytest.mark.parametrize(("rows", "by", "dtype"), crossed(PLANS, [*STEP]))
@pytest.mark.parametrize(("outputs", "inputs", "split"), [(320, 600, 3), pytest.param(576, 192, 1, marks=slow)])
def test_products_are_those_of_float64(
    dtype: torch.dtype, rows: int, by: products.Tiling, outputs: int, inputs: int, split: int
) -> None:
    """Sizes that blocks do not divide, and inputs shared among programs, some of which get none in the last block."""
    x, weight, bias = (random(*size, dtype=dtype) for size in ((rows, inputs), (outputs, inputs), (outputs,)))
    by = replace(by, split=split)
    y = products.product(x * inputs**0.5, weight, products.Extras(bias=bias), by)
    close(y, (x * inputs**0.5).double() @ weight.double().T + bias.double())


@pytest.mark.parametrize(("rows", "dtype"), crossed([(1,), (2,), (16,), (17,), (64,), (128,)], [*STEP]), ids=str)
def test_plans_cover_every_shape(rows: int, dtype: torch.dtype) -> None:
    """A plan whose blocks do not reach the last row or output would leave what the memory held before."""
    x, weight = random(rows, 200, dtype=dtype), random(72, 200, dtype=dtype)
    close(products.product(x, weight), x.double() @ weight.double().T)


@pytest.mark.parametrize("split", [1, 3])
@pytest.mark.parametrize("by", [ROW, BLOCK16])
def test_weights_of_eight_bits(by: products.Tiling, split: int) -> None:
    """Codes are widened in registers by bit patterns: every one of them must come out right."""
    weight, bias = random(80, 256, dtype=torch.float32), random(80, dtype=torch.float16)
    weight[0] = torch.arange(-128, 128, device=DEVICE) / 127
    codes, scales = rounded(weight.half())
    assert len(codes[0].unique()) > 250
    x = random(1 if by is ROW else 5, 256, dtype=torch.float16)
    extras = products.Extras(bias=bias, scales=scales)
    y = products.product(x, codes, extras, replace(by, split=split))
    close(y, x.double() @ (codes.double() * scales.double()[:, None]).T + bias.double())


@pytest.mark.parametrize(("by", "dtype"), crossed([(ROW,), (BLOCK16,)], [*STEP]), ids=str)
def test_norm_and_swiglu_in_the_product(dtype: torch.dtype, by: products.Tiling) -> None:
    """Rounded where transformers rounds: a norm that is rounded only after its weight is another model."""
    x, weight = random(1 if by is ROW else 5, 192, dtype=dtype), random(144, 192, dtype=dtype)
    norm, bias = random(192, dtype=dtype), random(144, dtype=dtype)
    wide = x.double()
    normal = (wide * (wide.square().mean(1, keepdim=True) + 1e-5).rsqrt()).to(dtype).double()
    sums = (normal * norm.double()).to(dtype).double() @ weight.double().T + bias.double()
    gate, up = sums.to(dtype).double().chunk(2, 1)
    expected = (gate * gate.sigmoid()).to(dtype).double() * up
    y = products.product(x, weight, products.Extras(norm=norm, eps=1e-5, gated=True, bias=bias), by)
    close(y, expected, steps=3)  # both sums may be rounded the other way


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("by", [ROW, BLOCK16])
def test_the_residual_is_added_to_the_rounded_product(by: products.Tiling, split: int) -> None:
    x, weight = random(1 if by is ROW else 5, 256, dtype=torch.float16), random(48, 256, dtype=torch.float16)
    residual = random(len(x), 48, dtype=torch.float16, at=1)
    by = replace(by, split=split)
    alone = products.product(x, weight, by=by)
    y = products.product(x, weight, products.Extras(residual=residual), by)
    assert torch.equal(y, residual + alone)


def test_a_row_does_not_depend_on_the_others() -> None:
    """With the same blocks, a row has the same bits wherever it is: greedy texts must not differ by what is guessed."""
    x, weight = random(16, 320, dtype=torch.float16), random(48, 320, dtype=torch.float16)
    whole = products.product(x, weight, by=BLOCK16)
    for rows in ([3], [7, 3], [3, *range(15)]):
        assert torch.equal(products.product(x[rows], weight, by=BLOCK16)[rows.index(3)], whole[3])


@pytest.mark.parametrize(("outputs", "inputs"), [(960, 576), (2048, 8192), (4096, 4096), (32_000, 4096)])
def test_sums_are_taken_in_one_order_for_all_rows(outputs: int, inputs: int) -> None:
    """Then a token read alone has the bits that it has among guesses."""
    plans = [products.steady_plan(rows, outputs, inputs) for rows in range(1, products.ROWS + 1)]
    assert len({(plan.outputs, plan.inputs, plan.split) for plan in plans}) == 1
    assert all(plan.rows >= rows for rows, plan in enumerate(plans, 1))


@torch.inference_mode()
def answers(model: Decoder) -> list[torch.Tensor]:
    """Return what a model makes of a text that takes plain products, and of a few rows and one after it."""
    session = model.open(64, 32)
    session.reset(1)
    made = list[torch.Tensor]()
    for rows in (FEW + 2, 2, 1):
        reading = session.read(list(range(3, 3 + rows)), tuple(range(-1, rows - 1)))
        session.commit(range(rows))
        made += [reading.logits, reading.hidden]
    return made


@slow  # a model in the interpreter of kernels
@pytest.mark.parametrize(("family", "precision"), [("qwen3", "float32"), ("llama-biased", "int8+float32")])
def test_a_model_answers_the_same(family: str, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product that norms, gates or adds where another should would still give numbers of the right shape."""
    monkeypatch.setattr(native_products, "library", lambda: None)
    monkeypatch.setattr(linear, "_packs", lambda dtype: False)
    made = list[list[torch.Tensor]]()
    for names in ((), PRODUCTS, *([(*PRODUCTS, "int8")] if "int8" in precision else [])):
        for module in (decoder, linear, quantised):
            monkeypatch.setattr(module, "chosen", lambda *arguments, names=names: frozenset(names))
        model = from_transformers(families.tiny(family).to(DEVICE), precision)
        complete = {*PRODUCTS, *(["int8"] if "int8" in precision else [])} <= {*names}
        assert isinstance(model, Decoder) and (model._fused is not None) == complete
        made.append(answers(model))
    for one, *others in zip(*made, strict=True):
        for other in others:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
