"""Random numbers of a training."""

from __future__ import annotations

import torch

from lab.training.seeding import seeded


def test_chance_is_of_the_seed_inside_and_untouched_outside() -> None:
    before = torch.get_rng_state()
    with seeded("1/2", torch.device("cpu")):
        one = torch.rand(3)
    with seeded("1/2", torch.device("cpu")):
        again = torch.rand(3)
    with seeded("1/3", torch.device("cpu")):
        other = torch.rand(3)
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)
