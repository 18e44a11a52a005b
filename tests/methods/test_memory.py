"""What a method keeps from run to run."""

from __future__ import annotations

import torch

from decoding.drafting.candidate_table import CandidateRow, CandidateTable
from decoding.methods.base import Context
from decoding.sampling import Sampler, Sampling


def test_a_memory_holds_one_thing() -> None:
    """Those of other sizes that were all kept would fill the memory; one of the same sizes must be found again."""
    context = Context([1, 2], 2, 9, Sampler(Sampling(), 9, torch.device("cpu"), (1, 2)))
    table, row = context.remember("k=4", CandidateTable), CandidateRow((2, 3), 7, "accepted")
    first = table.begin()
    table.put(1, row._replace(run=first))
    again = context.remember("k=4", CandidateTable)
    assert again is table and again.begin() != first and again.row(1) == row._replace(run=first)
    assert len(context.remember("k=5", CandidateTable)) == 0 and len(context.memory) == 1
    assert len(context.remember("k=4", CandidateTable)) == 0, "it gave way to the other"
