"""The draft model's own bookkeeping: its cache, its early stop, its distributions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from decoding.codec import Codec
from decoding.drafting.drafter import Drafter
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods.base import Context
from decoding.methods.draft_model import DraftModel, DraftModelParams
from decoding.model.table import TableModel, TableSession
from decoding.sampling import Sampler, Sampling
from decoding.types import Draft, Verdict
from tests.toys import correlated, cycle, engine, hashed, plain

TARGET = hashed(vocabulary=9, seed=3)


class Watched(DraftModel):
    """Checks the drafter's cache after every turn and counts the rows that it read."""

    rows = 0

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Assert that the stored text is the committed one."""
        super().observe(draft, verdict)
        session, text = self._drafter.session, self._context.text
        assert isinstance(session, TableSession)
        assert session._text == text[: session.length], "the drafter's cache holds a rejected token"
        unread = len(text) - session.length
        assert unread in (1, 2) or len(draft.tokens) == 1, "the drafter has to read more than it must"
        type(self).rows += 1


@pytest.mark.parametrize("gamma", [1, 2, 5])
@pytest.mark.parametrize("mix", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_drafters_cache_holds_the_committed_text(gamma: int, mix: float, temperature: float) -> None:
    """After full acceptance the last draft is still unread; after a rejection everything after it must go."""
    machine = engine(TARGET, correlated(TARGET, mix))
    sampling = {"temperature": temperature, "seed": gamma}
    for chunk in (1, 4, 512):
        run = machine.decode((1, 2, 3), Watched, {"gamma": gamma}, sampling, 40, prefill_chunk=chunk)
        assert sum(len(step.emitted) for step in run) == 40
    assert Watched.rows > 0


def proposal(gamma: int = 4, drafter: TableModel = TARGET, remaining: int = 99, **settings: Any) -> Draft:
    """Return the first draft after (1, 2)."""
    params = DraftModelParams(gamma=gamma, threshold=settings.pop("threshold", 0.0))
    ends = settings.pop("end_tokens", frozenset())
    sampler = Sampler(Sampling(**settings), 9, torch.device("cpu"), (1, 2))
    context = Context([1, 2], 2, remaining, sampler, ends)
    context.draft = Drafter(drafter.open(64, 64), context)
    return DraftModel(context, params).propose()


def test_a_greedy_draft_is_the_drafters_text_without_distributions() -> None:
    """A greedy draft with a distribution would be tested by chance against a target that leaves nothing to chance."""
    draft = proposal()
    assert draft.tokens[1:] == plain(TARGET, (1, 2), 4)
    assert draft.sources == ("root", "draft:1", "draft:2", "draft:3", "draft:4")
    assert draft.q == (None,) * 5


def test_a_sampled_drafts_distribution_is_the_one_it_was_drawn_from() -> None:
    """q must be after temperature, filters and penalty, on the draft's own path."""
    settings = {"temperature": 0.7, "top_k": 3, "repetition_penalty": 1.5}
    draft = proposal(**settings)
    for node in range(1, 5):
        sampler = Sampler(Sampling(**settings), 9, torch.device("cpu"), (1, 2, *draft.tokens[1:node]))
        logits = sampler.penalise(TARGET.logits((1, 2, *draft.tokens[1:node]))[None], [()])
        assert draft.q is not None and draft.q[node] is not None
        torch.testing.assert_close(draft.q[node], sampler.probabilities(logits[0]))
        assert draft.q[node][draft.tokens[node]] > 0


def test_a_drafter_stops_behind_the_token_it_is_unsure_of() -> None:
    """The unsure token is kept: it has been paid for, and dropping it would make its distribution depend on itself."""
    for seed in range(20):
        drafter = hashed(vocabulary=9, seed=seed, sharpness=2.0)
        tokens = plain(drafter, (1, 2), 6)
        sure = [float(drafter.logits((1, 2, *tokens[:i])).softmax(-1).max()) >= 0.6 for i in range(6)]
        expected = sure.index(False) + 1 if False in sure else 6
        assert len(proposal(6, drafter, threshold=0.6).tokens) == 1 + expected
    assert len(proposal(6, threshold=0.0).tokens) == 7


def test_a_drafter_stops_at_an_end_of_text_and_at_the_budget() -> None:
    """Guesses after an end of text, or after the budget, can never be emitted."""
    assert proposal(6, cycle(9), end_tokens=frozenset({4})).tokens == (2, 3, 4)
    assert proposal(6, cycle(9), remaining=3).tokens == (2, 3, 4)
    assert proposal(6, cycle(9), remaining=1).tokens == (2,)


def test_it_needs_a_drafter() -> None:
    """Without one the run must be refused in words, before it starts."""
    with pytest.raises(ParamError, match="draft_model needs a drafter: load the engine with draft="):
        Engine(TARGET, Codec()).decode((1,), "draft_model")


def test_the_panel_shows_the_confidence_of_every_draft() -> None:
    """The threshold cannot be chosen by someone who does not see what it is compared with."""
    steps = engine(TARGET).generate((1, 2), "draft_model", params={"gamma": 3, "threshold": 0.1}, max_new_tokens=9)
    for step in steps.trace.steps:
        assert len(step.panel["confidence"]) == step.drafted or step.drafted == 0
        assert step.panel["threshold"] == 0.1
