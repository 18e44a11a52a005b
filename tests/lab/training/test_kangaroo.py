"""A Kangaroo adapter in training: aligned with the model it drafts for, and read again as it was trained."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from decoding.errors import ParamError
from decoding.model.loading import decoder_of
from decoding.parts.adapter_config import ARCHITECTURES
from decoding.parts.adapter_files import load_adapter
from lab.training.backbone import Backbone
from lab.training.batches import Batch
from lab.training.kangaroo import AdapterSettings, KangarooLearner, usual_exit
from lab.training.vocabulary import write_vocabulary

from .test_medusa import MakeBackbone, check_pieces, check_resuming, shaken, train

IDS = torch.tensor([token for token in range(300) if token % 3])


def by_hand(
    learner: KangarooLearner, batch: Batch, folder: Path, shift: int = 0, ids: Tensor | None = None
) -> tuple[float, float, float]:
    """Count loss over the tokens that may be drafted, top-1 agreement and expected acceptance, row by row, with the
    adapter as the engine runs it.
    """
    model = learner.backbone.model
    learner.save(folder)
    if ids is not None:
        write_vocabulary(folder, ids.tolist())
    drafted = torch.arange(learner.backbone.shape.vocabulary) if ids is None else ids
    adapter = load_adapter(str(folder), decoder_of(model))
    losses, right, accepted = list[float](), list[bool](), list[float]()
    for row, positions, learnt in zip(batch.ids, batch.positions, batch.learnt, strict=True):
        begins = [*(positions == 0).nonzero().flatten().tolist(), len(row)]
        for begin, end in pairwise(begins):
            with torch.no_grad():
                output = model(input_ids=row[None, begin:end], output_hidden_states=True)
            session = adapter.open(64, 64)
            made = session.read(output.hidden_states[adapter.layer][0])
            for t in range(end - begin - 1 - shift):
                if learnt[begin + t + 1]:
                    draft, logits = session.logits(made[t : t + 1])[0], output.logits[0, t + shift]
                    target = logits.softmax(-1)
                    losses.append(float(cross_entropy(draft, logits[drafted].softmax(-1))))
                    right.append(bool(drafted[draft.argmax()] == target.argmax()))
                    accepted.append(float(torch.minimum(draft.softmax(-1), target[drafted]).sum()))
    return sum(losses) / len(losses), sum(right) / len(right), sum(accepted) / len(accepted)


@pytest.mark.parametrize(
    ("family", "layer", "architecture", "ids"),
    [
        ("llama", 1, "kangaroo", None),
        ("mistral", 2, "kangaroo", IDS),
        ("qwen3", 2, "kangaroo_head", None),
        ("qwen3", 2, "kangaroo_head", IDS),
        ("llama", 2, "transformer", IDS),
        ("llama", 1, "mlp_only", None),
    ],
)
def test_the_adapter_learns_the_models_own_distribution_at_the_same_place(
    backbone: MakeBackbone, batch: Batch, tmp_path: Path, family: str, layer: int, architecture: str, ids: Tensor | None
) -> None:
    """Measured on packed rows, and by hand on each alone with the engine's adapter. The control is off by one."""
    assert architecture in ARCHITECTURES
    learner = KangarooLearner(backbone(family), AdapterSettings(layer, architecture), 1, ids)
    shaken(learner)
    few = next(batch.parts(2))
    loss, right, accepted = by_hand(learner, few, tmp_path, ids=ids)
    (head,) = learner.measure([few])["heads"]
    assert head["loss"] == pytest.approx(loss, rel=1e-3)
    assert head["top"][0] == pytest.approx(right, abs=1e-6)
    assert head["acceptance"] == pytest.approx(accepted, rel=1e-3)
    assert learner.learn(few, few.counts(1), 0.0)["loss"] == pytest.approx(loss, rel=1e-3)
    assert abs(by_hand(learner, few, tmp_path, 1, ids)[0] - loss) > 1e-2 * loss


def test_an_untaught_adapter_says_what_the_model_would_if_it_ended_there(backbone: MakeBackbone, batch: Batch) -> None:
    """Behind the last layer, that is what the model says: everything would be accepted."""
    learner = KangarooLearner(backbone(), AdapterSettings(3), seed=1)
    (head,) = learner.measure([batch])["heads"]
    assert head["top"][0] == 1.0 and head["acceptance"] == pytest.approx(1.0, abs=1e-4)


def test_an_adapter_learns_and_its_model_stays_as_it_is(backbone: MakeBackbone, batch: Batch, tmp_path: Path) -> None:
    model = backbone()
    before = {name: weight.clone() for name, weight in model.model.state_dict().items()}
    learner = KangarooLearner(model, AdapterSettings(1, rate=0.01), seed=1)
    (start,) = learner.measure([batch])["heads"]
    losses = train(learner, batch, tmp_path)
    (end,) = learner.measure([batch])["heads"]
    assert sum(losses[-5:]) < sum(losses[:5]) - 1.0, "towards the entropy of the model, below which none goes"
    assert end["acceptance"] > start["acceptance"] + 0.05
    assert all(torch.equal(weight, before[name]) for name, weight in model.model.state_dict().items())


@pytest.mark.slow  # it trains
def test_a_model_in_bfloat16_teaches_almost_the_same(backbone: MakeBackbone, batch: Batch, tmp_path: Path) -> None:
    exact = train(KangarooLearner(backbone(), AdapterSettings(1), seed=1), batch, tmp_path / "exact", steps=12)
    model = Backbone(backbone().model.to(torch.bfloat16), "llama")
    rounded = train(KangarooLearner(model, AdapterSettings(1), seed=1), batch, tmp_path / "rounded", steps=12)
    assert rounded == pytest.approx(exact, rel=0.03)


def test_a_killed_training_goes_on_to_the_same_weights(backbone: MakeBackbone, batch: Batch, tmp_path: Path) -> None:
    check_resuming(
        lambda: KangarooLearner(backbone(), AdapterSettings(1), seed=1), batch, tmp_path, steps=6, killed_after=2
    )


def test_pieces_small_enough_for_the_memory_change_nothing(
    backbone: MakeBackbone, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_pieces(lambda: KangarooLearner(backbone(), AdapterSettings(1), seed=1), batch, "adapter", 6, monkeypatch)


def test_the_exit_is_where_the_paper_has_it() -> None:
    assert [usual_exit(layers) for layers in (1, 6, 32, 40)] == [1, 1, 2, 3]


@pytest.mark.parametrize("layer", [0, 4])
def test_an_exit_that_the_model_does_not_have_is_refused(backbone: MakeBackbone, layer: int) -> None:
    with pytest.raises(ParamError, match="from 1 to the model's 3 layers"):
        KangarooLearner(backbone(), AdapterSettings(layer), seed=1)
