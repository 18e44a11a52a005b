"""How many kernels a layer launches on a CUDA device: where rows are few, their launches are most of a step."""

from __future__ import annotations

import pytest
import torch

from decoding.gpu.choice import POINTWISE, VARIABLE
from decoding.model.captured import StepBuffer, StoredText
from decoding.model.decoder import Decoder
from tests.pretended.device import Pretended, pretended
from tests.pretended.test_pretended import made_of

pytestmark = pytest.mark.pretended
PRODUCTS, ATTENTION = 4, 2


@torch.inference_mode()
def of_a_layer(device: Pretended, model: Decoder) -> int:
    """Count the launches of a layer of a captured pass, after a text that has a prefix."""
    cache, tables = model.cache(600, 8), model.rope.tables(1, 608)
    inputs = model.buffered_inputs(StepBuffer(4, model.device), StoredText(cache, tables, model.cut(256)))
    counts = []
    for stop in (1, 2):
        before = len(device.launches)
        model.forward(inputs.ids, inputs, 0, stop)
        counts.append(len(device.launches) - before)
    return counts[1] - counts[0]


@pytest.mark.parametrize("family", ["mistral-full", "llama-biased", "qwen3"])
def test_a_layer_launches_few_kernels(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation that slips in between two of our kernels costs as much as a kernel saves."""
    made, launches = made_of(family, torch.bfloat16), []
    with pretended(monkeypatch) as device:
        for names in ("off", ",".join(POINTWISE), ""):
            monkeypatch.setenv(VARIABLE, names)
            model = made.decoder(0)
            assert isinstance(model, Decoder)
            launches.append(of_a_layer(device, model))
    unfused, fused, preferred = launches
    assert fused == PRODUCTS + ATTENTION + 2 + 3  # two norms, and the other three kernels once each
    assert preferred == fused - 1, "our own attention, two kernels as well, has no parts to merge"
    assert unfused > 2 * fused, "or operations are not counted"
