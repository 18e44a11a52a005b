"""An EAGLE-3 drafter in training: each guess aligned with what the model says, and read again as it was trained."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from decoding.errors import ParamError
from decoding.model.loading import decoder_of
from decoding.parts.eagle_files import load_eagle
from lab.training.backbone import Backbone
from lab.training.batches import Batch
from lab.training.eagle3 import Eagle3Learner, EagleSettings
from lab.training.eagle_folder import learnt_guesses

from .test_medusa import MakeBackbone, check_pieces, check_resuming, shaken, train

IDS = torch.tensor([token for token in range(300) if token % 3])


def by_hand(learner: Eagle3Learner, batch: Batch, folder: Path, shift: int = 0) -> list[tuple[float, float, float]]:
    """Loss, top-1 agreement and expected acceptance of every guess, with the drafter as the engine runs it."""
    model, guesses = learner.backbone.model, learner.settings.guesses
    learner.save(folder)
    model.config.name_or_path = learner.backbone.name
    eagle = load_eagle(str(folder), decoder_of(model))
    ids = torch.arange(300) if eagle.vocabulary is None else eagle.vocabulary.ids
    measures: list[list[tuple[float, float, float]]] = [[] for _ in range(guesses)]
    for line, positions, learnt in zip(batch.ids, batch.positions, batch.learnt, strict=True):
        for begin, end in pairwise([*(positions == 0).nonzero().flatten().tolist(), len(line)]):
            with torch.no_grad():
                made = model(input_ids=line[None, begin:end], output_hidden_states=True)
            # The last of these is behind the final norm, which no tapped state is: taps stay in front of it.
            states = torch.cat([made.hidden_states[tap][0] for tap in eagle.layers], -1)
            for t in range(end - begin - 1):
                if not learnt[begin + t + 1]:
                    continue
                session = eagle.open(64, 64)
                final, feature = session.read(line[begin + 1 : begin + t + 2].tolist(), states[: t + 1])
                final, feature = final[-1:], feature[-1:]
                for guess in range(guesses):
                    place = t + 1 + guess
                    if place + 1 >= end - begin or not bool(learnt[begin + t + 1 : begin + place + 2].all()):
                        break
                    logits, p = session.logits(final)[0], made.logits[0, place - shift].softmax(-1)
                    loss = cross_entropy(logits, made.logits[0, place - shift][ids].softmax(-1))
                    right = ids[logits.argmax()] == p.argmax()
                    overlap = torch.minimum(logits.softmax(-1), p[ids]).sum()
                    measures[guess].append((float(loss), float(right), float(overlap)))
                    final, feature = session.grow([int(line[begin + place + 1])], feature, [guess - 1])
    means = [torch.tensor(each).mean(0).tolist() for each in measures]
    return [(loss, right, overlap) for loss, right, overlap in means]


@pytest.mark.parametrize(
    ("family", "settings", "ids"),
    [
        ("llama", {}, IDS),
        ("mistral", {"guesses": 4}, IDS),
        ("llama", {"norm_before_residual": False, "norm_before_fc": True, "norm_output": True}, None),
        ("qwen3", {"fc_norm": True, "taps": (0, 2), "intermediate": 32, "guesses": 2}, IDS),
    ],
)
def test_every_guess_learns_what_the_model_says_further_on(
    backbone: MakeBackbone, batch: Batch, tmp_path: Path, family: str, settings: dict[str, Any], ids: Tensor | None
) -> None:
    """Measured on packed rows at once, and by hand on each alone, drafting. The control is off by one."""
    learner = Eagle3Learner(backbone(family), EagleSettings(**settings), ids, seed=1)
    shaken(learner)
    few = next(batch.parts(1))
    wanted = by_hand(learner, few, tmp_path)
    measured: Any = learner.measure([few])["heads"]
    assert len(measured) == len(wanted) == learner.settings.guesses
    for head, (loss, right, overlap) in zip(measured, wanted, strict=True):
        assert head["loss"] == pytest.approx(loss, rel=2e-3)
        assert head["top"][0] == pytest.approx(right, abs=1e-6)
        assert head["acceptance"] == pytest.approx(overlap, rel=2e-3)
    learnt = learner.learn(few, few.counts(learner.distances), 0.0)
    assert [learnt[f"guess {k}"] for k in range(1, len(wanted) + 1)] == pytest.approx([x[0] for x in wanted], rel=2e-3)
    shifted = by_hand(learner, few, tmp_path, shift=1)
    assert any(abs(one[0] - other[0]) > 1e-2 * other[0] for one, other in zip(shifted, wanted, strict=True))
    assert learnt_guesses(tmp_path) == learner.settings.guesses


def test_it_learns_and_its_model_stays_as_it_is(backbone: MakeBackbone, batch: Batch, tmp_path: Path) -> None:
    model = backbone()
    before = {name: weight.clone() for name, weight in model.model.state_dict().items()}
    learner = Eagle3Learner(model, EagleSettings(rate=0.01), IDS, seed=1)
    start: Any = learner.measure([batch])["heads"]
    losses = train(learner, batch, tmp_path)
    end: Any = learner.measure([batch])["heads"]
    assert sum(losses[-5:]) < sum(losses[:5]) - 1.0
    assert all(after["acceptance"] > first["acceptance"] + 0.05 for first, after in zip(start, end, strict=True))
    assert all(torch.equal(weight, before[name]) for name, weight in model.model.state_dict().items())


@pytest.mark.slow  # it trains
def test_a_model_in_bfloat16_teaches_almost_the_same(backbone: MakeBackbone, batch: Batch, tmp_path: Path) -> None:
    exact = train(Eagle3Learner(backbone(), EagleSettings(), IDS, seed=1), batch, tmp_path / "exact", steps=12)
    model = Backbone(backbone().model.to(torch.bfloat16), "llama")
    rounded = train(Eagle3Learner(model, EagleSettings(), IDS, seed=1), batch, tmp_path / "rounded", steps=12)
    assert rounded == pytest.approx(exact, rel=0.03)


def test_a_killed_training_goes_on_to_the_same_weights(backbone: MakeBackbone, batch: Batch, tmp_path: Path) -> None:
    check_resuming(
        lambda: Eagle3Learner(backbone(), EagleSettings(), IDS, seed=1), batch, tmp_path, steps=6, killed_after=2
    )


def test_pieces_small_enough_for_the_memory_change_nothing(
    backbone: MakeBackbone, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_pieces(lambda: Eagle3Learner(backbone(), EagleSettings(), IDS, seed=1), batch, "drafter", 12, monkeypatch)


@pytest.mark.parametrize("taps", [(0, 4), (2, 1), (1, 1)])
def test_layers_that_the_model_does_not_have_are_refused(backbone: MakeBackbone, taps: tuple[int, ...]) -> None:
    with pytest.raises(ParamError, match="rising order, from 0 to the model's 3"):
        Eagle3Learner(backbone(), EagleSettings(taps=taps), IDS, seed=1)
