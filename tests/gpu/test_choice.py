"""Which kernels a device runs, on devices that are only said to be there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from decoding.errors import ModelError
from decoding.gpu import choice
from decoding.gpu.choice import KERNELS, OVERLAP, PREFERRED, VARIABLE, chosen, in_words

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Forget what a pretended device could do."""
    yield
    choice.failure.cache_clear()


def device(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], probe: Any) -> None:
    """Pretend a device of that capability, on which the first kernel does that."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(choice, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "decoding.gpu.probe", SimpleNamespace(probe=probe))  # type: ignore[arg-type]
    choice.failure.cache_clear()


def test_what_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a measurement is said to be of must be what ran."""
    device(monkeypatch, (9, 0), lambda device: None)
    for asked, names in (("", PREFERRED), ("all", KERNELS), ("off", ()), ("norm,merge", ("norm", "merge"))):
        monkeypatch.setenv(VARIABLE, asked)
        assert chosen(CUDA, torch.bfloat16) == {*names}
        assert chosen(CUDA, torch.float32) == {*names} - (set() if asked else {"int8", "products"})
        assert chosen(CPU) == chosen(CUDA, torch.float64) == set()
    assert in_words(CUDA, torch.bfloat16) == ", norm, merge in Triton" and in_words(CPU, torch.bfloat16) == ""
    monkeypatch.setenv(VARIABLE, "nrom")
    with pytest.raises(ModelError, match=r"SPECSCOPE_FUSED must be .* not 'nrom'"):
        chosen(CPU)


def test_launches_overlap_only_where_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Ampere device would refuse the launch, and a header must not claim it."""
    words = ", norm in Triton"
    for capability, overlaps in (((8, 0), False), ((8, 9), False), ((9, 0), True), ((12, 0), True)):
        device(monkeypatch, capability, lambda device: None)
        for asked, names in (("", PREFERRED), ("all", {*KERNELS})):
            monkeypatch.setenv(VARIABLE, asked)
            assert chosen(CUDA, torch.bfloat16) == names, "not before it has been measured"
        monkeypatch.setenv(VARIABLE, f"norm,{OVERLAP}")
        assert chosen(CUDA, torch.bfloat16) == {"norm"} | ({OVERLAP} if overlaps else set())
        in_turn = ", each kernel starting while the one before it ends" if overlaps else ""
        assert in_words(CUDA, torch.bfloat16) == words + in_turn
        monkeypatch.setenv(VARIABLE, f"attention,{OVERLAP}")
        assert in_words(CUDA, torch.bfloat16) == in_turn


def test_an_old_device_keeps_torchs_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    device(monkeypatch, (7, 5), lambda device: pytest.fail("tried"))
    assert chosen(CUDA) == set() and in_words(CUDA, torch.float16) == ""


def test_so_does_one_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor's run must not end with what Triton lacks, and its owner must see it."""
    tried = []

    def fail(device: torch.device) -> None:
        tried.append(device)
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC environment variable.")

    device(monkeypatch, (9, 0), fail)
    assert chosen(CUDA) == chosen(CUDA) == set() and tried == [CUDA]
    assert in_words(CUDA, torch.bfloat16) == ", without Triton (RuntimeError: Failed to find C compiler.)"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
def test_triton_runs_here() -> None:
    """Where it falls back, everything else passes, slowly."""
    assert choice.failure(CUDA) is None
