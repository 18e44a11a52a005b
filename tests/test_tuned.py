"""The fastest settings on a CPU: which model and device get which."""

from __future__ import annotations

import pytest

from analysis.candidates import CANDIDATES
from analysis.tuned import CPU, POCKET, TUNED, tuned_params, tuned_preset
from decoding.embedded import DRAFTER, MEDUSA_2, TARGET
from decoding.loader import load
from decoding.methods import METHODS

SPECULATIVE = [name for name in METHODS if name != "autoregressive"]


@pytest.mark.parametrize("method", SPECULATIVE)
def test_every_method_has_settings_for_a_cpu_that_differ_from_its_defaults(method: str) -> None:
    assert tuned_preset(method, "smollm2", "cpu") == CPU
    kind = METHODS[method].Params
    for name in TUNED:
        if name in kind.presets:
            assert kind.parse(kind.presets[name]) != kind()


def test_every_method_has_candidates_to_measure() -> None:
    """A method that is left out keeps settings that nobody measured."""
    assert sorted(CANDIDATES) == sorted(SPECULATIVE)


def test_the_embedded_family_has_its_own() -> None:
    assert {tuned_preset("medusa", name, "cpu") for name in (TARGET, DRAFTER, MEDUSA_2)} == {POCKET}
    assert tuned_preset("draft_model", TARGET, "cpu") is None  # its defaults win


def test_a_gpu_gets_the_papers_settings() -> None:
    assert not any(tuned_preset(name, "smollm2", "cuda") for name in SPECULATIVE)
    assert tuned_preset("autoregressive", "smollm2", "cpu") is None


def test_an_engine_gets_those_of_its_model() -> None:
    params = tuned_params(load(TARGET, device="cpu"), ["autoregressive", "medusa", "draft_model", "no such method"])
    assert params == {"medusa": dict(METHODS["medusa"].Params.presets[POCKET])}
