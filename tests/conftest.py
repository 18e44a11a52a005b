"""One thread for torch, and hypothesis without chance: a failure found once is found by everyone."""

from __future__ import annotations

import os

import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)  # the tests run side by side

_STEADY = {"derandomize": True, "deadline": None, "print_blob": True}
_SLOW_FIXTURES = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("ci", max_examples=100, suppress_health_check=_SLOW_FIXTURES, **_STEADY)
settings.register_profile("nightly", max_examples=10_000, suppress_health_check=_SLOW_FIXTURES, **_STEADY)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
