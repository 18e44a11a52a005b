"""A DFlash drafter in training: each place of a block aligned with what the model says, and filled as in training."""

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
from decoding.parts.dflash_files import load_dflash
from lab.training.batches import Batch
from lab.training.dflash import DFlashLearner, DFlashSettings

from .test_medusa import MakeBackbone, check_pieces, check_resuming, shaken, train

IDS = torch.tensor([token for token in range(300) if token % 3])
ALL = 1000  # blocks of a line: as many as it has roots


def by_hand(learner: DFlashLearner, batch: Batch, folder: Path, shift: int = 0) -> list[tuple[float, float, float]]:
    """Loss, top-1 agreement and expected acceptance of every guess, with the drafter as the engine runs it."""
    model, guesses = learner.backbone.model, learner.settings.block - 1
    learner.save(folder)
    model.config.name_or_path = learner.backbone.name
    drafter = load_dflash(str(folder), decoder_of(model))
    ids = torch.arange(300) if drafter.vocabulary is None else drafter.vocabulary.ids
    measures: list[list[tuple[float, float, float]]] = [[] for _ in range(guesses)]
    for line, positions, learnt in zip(batch.ids, batch.positions, batch.learnt, strict=True):
        for begin, end in pairwise([*(positions == 0).nonzero().flatten().tolist(), len(line)]):
            with torch.no_grad():
                made = model(input_ids=line[None, begin:end], output_hidden_states=True)
            states = torch.cat([made.hidden_states[tap][0] for tap in drafter.layers], -1)
            session = drafter.open(64, 64)
            for root in range(1, end - begin - 1):
                session.read(states[session.length : root])
                logits = session.logits(session.fill(int(line[begin + root]), guesses))
                for guess in range(guesses):
                    place = root + 1 + guess  # of the token that it guesses
                    if place >= end - begin or not bool(learnt[begin + root + 1 : begin + place + 1].all()):
                        break
                    said = made.logits[0, place - 1 - shift]
                    loss = cross_entropy(logits[guess], said[ids].softmax(-1))
                    right = ids[logits[guess].argmax()] == said.argmax()
                    overlap = torch.minimum(logits[guess].softmax(-1), said.softmax(-1)[ids]).sum()
                    measures[guess].append((float(loss), float(right), float(overlap)))
    means = [torch.tensor(each).mean(0).tolist() for each in measures]
    return [(loss, right, overlap) for loss, right, overlap in means]


@pytest.mark.parametrize(
    ("family", "settings", "ids"),
    [
        ("llama", {"block": 4}, IDS),
        ("mistral", {"block": 5, "layers": 1}, IDS),
        ("qwen3", {"block": 3, "taps": (0, 2), "intermediate": 32, "layers": 3, "mask": 7}, None),
    ],
)
def test_every_place_learns_what_the_model_says_there(
    backbone: MakeBackbone, batch: Batch, tmp_path: Path, family: str, settings: dict[str, Any], ids: Tensor | None
) -> None:
    """Measured on packed rows at once, and by hand on each alone, drafting. The control is off by one."""
    learner = DFlashLearner(backbone(family), DFlashSettings(blocks=ALL, **settings), ids, seed=1)
    shaken(learner)
    few = next(batch.parts(1))
    wanted = by_hand(learner, few, tmp_path)
    measured: Any = learner.measure([few])["heads"]
    assert len(measured) == len(wanted) == learner.settings.block - 1
    for head, (loss, right, overlap) in zip(measured, wanted, strict=True):
        assert head["loss"] == pytest.approx(loss, rel=2e-3)
        assert head["top"][0] == pytest.approx(right, abs=1e-6)
        assert head["acceptance"] == pytest.approx(overlap, rel=2e-3)
    learnt = learner.learn(few, few.counts(learner.distances), 0.0)
    assert [learnt[f"guess {k}"] for k in range(1, len(wanted) + 1)] == pytest.approx([x[0] for x in wanted], rel=2e-2)
    shifted = by_hand(learner, few, tmp_path, shift=1)
    assert any(abs(one[0] - other[0]) > 1e-2 * other[0] for one, other in zip(shifted, wanted, strict=True))


def test_its_gradient_is_that_of_the_weighted_mean(backbone: MakeBackbone, batch: Batch) -> None:
    """Of the loss it reports, by a finite difference."""
    learner = DFlashLearner(backbone(), DFlashSettings(block=4, blocks=ALL, decay=2.0), IDS, seed=1)
    shaken(learner)
    counts = batch.counts(learner.distances)
    before = learner.learn(batch, counts, 0.0)
    weight, step = learner._weights["layers.0.mlp.down_proj.weight"], 1e-3
    assert weight.grad is not None
    slope = weight.grad / weight.grad.norm()
    expected = float((weight.grad * slope).sum())
    with torch.no_grad():
        weight += step * slope
    after = learner.learn(batch, counts, 0.0)
    assert (after["loss"] - before["loss"]) / step == pytest.approx(expected, rel=0.05)
    weights = [2.718281828 ** (-guess / 2.0) for guess in range(3)]
    mean = sum(w * before[f"guess {k}"] for k, w in enumerate(weights, start=1)) / sum(weights)
    assert before["loss"] == pytest.approx(mean, rel=1e-5)


def test_it_learns_and_its_model_stays_as_it_is(backbone: MakeBackbone, batch: Batch, tmp_path: Path) -> None:
    model = backbone()
    before = {name: weight.clone() for name, weight in model.model.state_dict().items()}
    learner = DFlashLearner(model, DFlashSettings(block=4, rate=0.01), IDS, seed=1)
    start: Any = learner.measure([batch])["heads"]
    losses = train(learner, batch, tmp_path)
    end: Any = learner.measure([batch])["heads"]
    assert sum(losses[-5:]) < sum(losses[:5]) - 1.0
    assert all(after["acceptance"] > first["acceptance"] + 0.02 for first, after in zip(start, end, strict=True))
    assert all(torch.equal(weight, before[name]) for name, weight in model.model.state_dict().items())


def test_a_killed_training_goes_on_to_the_same_weights(backbone: MakeBackbone, batch: Batch, tmp_path: Path) -> None:
    """With the same roots, which are drawn at random."""

    def make() -> DFlashLearner:
        return DFlashLearner(backbone(), DFlashSettings(block=4, blocks=3), IDS, seed=1)

    check_resuming(make, batch, tmp_path, steps=6, killed_after=2)


def test_pieces_small_enough_for_the_memory_change_nothing(
    backbone: MakeBackbone, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make() -> DFlashLearner:
        return DFlashLearner(backbone(), DFlashSettings(block=4, blocks=ALL), IDS, seed=1)

    check_pieces(make, batch, "drafter", 25, monkeypatch)


@pytest.mark.parametrize("taps", [(0, 3), (2, 1), (1, 1)])
def test_layers_that_it_cannot_read_are_refused(backbone: MakeBackbone, taps: tuple[int, ...]) -> None:
    """Before or after the final norm: nobody could tell what the last layer's output is."""
    with pytest.raises(ParamError, match="rising order, from 0 to the model's 2"):
        DFlashLearner(backbone(), DFlashSettings(taps=taps), IDS, seed=1)


def test_a_mask_that_is_no_token_is_refused(backbone: MakeBackbone) -> None:
    with pytest.raises(ParamError, match="--mask-token must be one of the model's 300 tokens, not 300"):
        DFlashLearner(backbone(), DFlashSettings(mask=300), IDS, seed=1)
