"""How many kernels a layer launches on a CUDA device: where rows are few, their launches are most of a step."""

from __future__ import annotations

import pytest
import torch

from decoding.gpu.choice import OVERLAP, POINTWISE, PREFERRED, VARIABLE
from decoding.model.captured import StepBuffer, StoredText
from decoding.model.decoder import Decoder
from tests.pretended.device import Pretended, pretended
from tests.pretended.test_pretended import made_of

pytestmark = pytest.mark.pretended
PRODUCTS, ATTENTION = 4, 2


@torch.inference_mode()
def of_a_layer(device: Pretended, model: Decoder) -> list[str]:
    """Name the launches of the second layer of a captured pass, after a text that has a prefix."""
    cache, tables = model.cache(600, 8), model.rope.tables(1, 608)
    inputs = model.buffered_inputs(StepBuffer(4, model.device), StoredText(cache, tables, model.cut(256)))
    made = []
    for stop in (1, 2):
        before = len(device.launches)
        model.forward(inputs.ids, inputs, 0, stop)
        made.append(device.launches[before:])
    return made[1][len(made[0]) - 1 : -1]  # without the last sum, which the next norm would take along


@pytest.mark.parametrize("family", ["mistral-full", "llama-biased", "qwen3"])
def test_a_layer_launches_few_kernels(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation that slips in between two of our kernels costs as much as a kernel saves."""
    made, launches = made_of(family, torch.bfloat16), []
    with pretended(monkeypatch) as device:
        for names in ("off", ",".join(POINTWISE), "", ",".join((*PREFERRED, OVERLAP))):
            monkeypatch.setenv(VARIABLE, names)
            model = made.decoder(0)
            assert isinstance(model, Decoder)
            launches.append(of_a_layer(device, model))
    unfused, fused, preferred, overlapping = map(len, launches)
    assert fused == PRODUCTS + ATTENTION + 2 + 3  # two norms, and the other three kernels once each
    assert preferred == fused - 1, "our own attention, two kernels as well, has no parts to merge"
    assert overlapping == preferred
    assert {*launches[-1]} == {"triton, overlapping"}, "one that waits for its launch holds up all others"
    assert unfused > 2 * fused, "or operations are not counted"
