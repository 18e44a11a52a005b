"""Medusa heads in training: what they are taught, held to loops that spell it out, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, linear, silu

from decoding.errors import ExtraError
from decoding.model.loading import decoder_of
from decoding.parts.heads import load_heads
from lab.training.backbone import Backbone, Lora
from lab.training.batches import Batch
from lab.training.loop import TrainingBudget, TrainingLoop
from lab.training.measures import agreement, measure_model, rank_of
from lab.training.medusa import HeadSettings, Joint, MedusaLearner
from lab.training.optimizers import GroupedAdamW
from tests.tiers import slow

MakeBackbone = Callable[..., Backbone]
JOINT = Joint(Lora(rank=4, alpha=8, dropout=0.1), rate=3e-3, schedule="constant")


class Fixed:
    """Always the same batch."""

    about: Mapping[str, Any] = {"data": "fixed"}

    def __init__(self, batch: Batch) -> None:
        self._batch, self.held_out = batch, [batch]

    def draw(self, step: int) -> Batch:
        return self._batch


class Kill(Exception):  # noqa: N818  # it is no error
    """Stands for the end of the process."""


def train(
    learner: Any, batch: Batch, folder: Path, steps: int = 30, reports: Iterator[None] | None = None, **options: Any
) -> list[float]:
    """The losses of a training, or of as much of it as `reports` lets pass."""
    heard: list[str] = []

    def progress(what: str, share: float) -> None:
        heard.append(what)
        if reports is not None and next(reports, Kill) is Kill:
            raise Kill

    budget, optimizer = (
        TrainingBudget(steps, len(batch.ids), batch.ids.shape[1]),
        GroupedAdamW(learner.groups, warm_up=3),
    )
    TrainingLoop(budget, learner, optimizer, Fixed(batch), folder, 1, measure=learner.measure, **options).run(progress)
    return [float(what.split("loss ")[1].split(",")[0]) for what in heard]


def shaken(learner: Any) -> None:
    """Weights with which nothing is at its start any more."""
    source = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for group in learner.groups.values():
            for weight in group.weights.values():
                weight.add_(torch.randn(weight.shape, generator=source) * 0.2)


def alone(model: Any, batch: Batch) -> Iterator[tuple[list[int], list[bool], Tensor]]:
    """Every row with its hidden states, read without any other."""
    for ids, positions, learnt in zip(batch.ids, batch.positions, batch.learnt, strict=True):
        begins = [*(positions == 0).nonzero().flatten().tolist(), len(ids)]
        for begin, end in pairwise(begins):
            with torch.no_grad():
                hidden = model.model(input_ids=ids[None, begin:end]).last_hidden_state[0]
            yield ids[begin:end].tolist(), learnt[begin:end].tolist(), hidden


def said(learner: MedusaLearner, head: int, hidden: Tensor) -> Tensor:
    """What a head says, by the definition: residual blocks, then an output layer."""
    weights = learner.groups["heads"].weights
    for layer in range(learner.settings.layers):
        hidden = hidden + silu(linear(hidden, weights["weight"][layer, head], weights["bias"][layer, head]))
    output = weights["output"][head] if "output" in weights else learner.backbone.model.lm_head.weight
    return linear(hidden, output).detach()


def brute(learner: MedusaLearner, batch: Batch, shift: int = 0) -> tuple[list[float], list[list[float]], list[float]]:
    """Losses, accuracies and expected acceptance of all heads, place by place; `shift` is for the control."""
    count = learner.settings.heads
    losses = [list[float]() for _ in range(count)]
    ranks, accepted = [list[int]() for _ in range(count)], [list[float]() for _ in range(count)]
    for ids, learnt, hidden in alone(learner.backbone.model, batch):
        target = learner.backbone.model.lm_head(hidden)
        for t in range(len(ids)):
            for k in range(1, count + 1):
                far = t + k + 1 + shift
                if far < len(ids) and all(learnt[t + 1 : far + 1]):
                    logits = said(learner, k - 1, hidden[t])
                    losses[k - 1].append(float(cross_entropy(logits, torch.tensor(ids[far]))))
                    order = sorted(range(len(logits)), key=lambda token, row=logits: (-float(row[token]), token))
                    ranks[k - 1].append(order.index(int(target[far - 1].argmax())))
                    accepted[k - 1].append(float(torch.minimum(target[far - 1].softmax(0), logits.softmax(0)).sum()))
    shares = [[row.count(rank) / len(row) for rank in range(10)] for row in ranks]
    return [sum(row) / len(row) for row in losses], shares, [sum(row) / len(row) for row in accepted]


@pytest.mark.parametrize("own_output", [False, True])
def test_losses_accuracies_and_acceptance_are_those_counted_by_hand(
    backbone: MakeBackbone, batch: Batch, own_output: bool
) -> None:
    """Head k at place t answers for token t + k + 1, and for nothing else. The control is off by one."""
    learner = MedusaLearner(backbone(), HeadSettings(heads=3, layers=2, own_output=own_output), seed=1)
    shaken(learner)
    few = next(batch.parts(2))
    losses, accuracies, accepted = brute(learner, few)
    measured = learner.measure([few])
    learnt = learner.learn(few, few.counts(4), 0.0)
    for k in range(3):
        assert measured["heads"][k]["loss"] == pytest.approx(losses[k], rel=1e-4)
        assert learnt[f"head {k + 1}"] == pytest.approx(losses[k], rel=1e-4)
        assert measured["accuracies"][k] == pytest.approx(accuracies[k], abs=1e-6)
        assert measured["heads"][k]["acceptance"] == pytest.approx(accepted[k], rel=1e-3)
        assert measured["heads"][k]["top"] == pytest.approx([sum(accuracies[k][: n + 1]) for n in range(5)])
    assert learnt["loss"] == pytest.approx(sum(0.8**k * loss for k, loss in enumerate(losses, start=1)), rel=1e-4)
    wrong, _, _ = brute(learner, few, shift=1)
    assert all(abs(wrong[k] - losses[k]) > 1e-3 * losses[k] for k in range(3))


def test_untaught_heads_say_what_the_model_says(backbone: MakeBackbone, batch: Batch) -> None:
    """The paper's start: blocks that add nothing, and the output layer of the model."""
    for own_output in (False, True):
        learner = MedusaLearner(backbone(), HeadSettings(heads=2, own_output=own_output), seed=1)
        hidden = torch.randn(5, 64)
        for head in range(2):
            assert torch.equal(said(learner, head, hidden), learner.backbone.model.lm_head(hidden))


def test_pieces_small_enough_for_the_memory_change_nothing(
    backbone: MakeBackbone, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines by lines, and logits by logits: the same gradients, loss and measures."""
    passes, steady = [], Joint(Lora(rank=4, dropout=0.0), schedule="constant")
    for at_once, logits in ((len(batch.ids), 2**22), (1, 300 * 3)):
        monkeypatch.setattr("lab.training.medusa._LOGITS", logits)
        learner = MedusaLearner(backbone(), HeadSettings(heads=2, own_output=True, joint=steady), seed=1)
        shaken(learner)
        parts = [learner.learn(part, batch.counts(3), 0.5) for part in batch.parts(at_once)]
        losses = {name: sum(part[name] for part in parts) for name in parts[0]}
        weights = [weight for group in learner.groups.values() for weight in group.weights.values()]
        gradients = [torch.zeros_like(w) if w.grad is None else w.grad.clone() for w in weights]
        passes.append((losses, gradients, learner.measure([batch])))
    (losses, gradients, measured), (other_losses, other_gradients, other_measured) = passes
    assert losses == pytest.approx(other_losses, rel=1e-5)
    for one, other in zip(gradients, other_gradients, strict=True):
        assert torch.allclose(one, other, atol=4e-6 * max(1.0, float(one.abs().max())))
    assert sum(bool(gradient.abs().sum() > 0) for gradient in gradients) > len(gradients) // 2
    assert measured["accuracies"] == other_measured["accuracies"]


def test_heads_learn_and_the_model_behind_them_stays_as_it_is(
    backbone: MakeBackbone, batch: Batch, tmp_path: Path
) -> None:
    model = backbone()
    before = {name: weight.clone() for name, weight in model.model.state_dict().items()}
    learner = MedusaLearner(model, HeadSettings(heads=2, own_output=True, rate=0.01), seed=1)
    losses = train(learner, batch, tmp_path)
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])
    assert all(torch.equal(weight, before[name]) for name, weight in model.model.state_dict().items())
    shared = MedusaLearner(backbone(), HeadSettings(heads=2, rate=0.01), seed=1)
    losses = train(shared, batch, tmp_path / "shared")
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


@slow  # it trains twice
@pytest.mark.parametrize("joint", [None, Joint(Lora(rank=4), schedule="sine", distilled=True)])
def test_a_model_in_bfloat16_teaches_almost_the_same(
    backbone: MakeBackbone, batch: Batch, tmp_path: Path, joint: Joint | None
) -> None:
    """What learns stays in float32; only products are rounded."""
    learner = MedusaLearner(backbone(), HeadSettings(heads=2, joint=joint, rate=0.01), seed=1)
    exact = train(learner, batch, tmp_path / "exact", steps=12)
    model = Backbone(backbone().model.to(torch.bfloat16), "llama")
    rounded = MedusaLearner(model, HeadSettings(heads=2, joint=joint, rate=0.01), seed=1)
    assert train(rounded, batch, tmp_path / "rounded", steps=12) == pytest.approx(exact, rel=0.03)
    assert all(weight.dtype == torch.float32 for weight in weights_of(rounded))
    assert model.dtype == torch.bfloat16
    rounded.save(tmp_path, "llama", [[0.5]] * 2)
    assert load_heads(str(tmp_path), decoder_of(backbone().model)).count == 2


@pytest.mark.parametrize("own_output", [False, True])
def test_what_was_saved_is_what_was_measured(
    backbone: MakeBackbone, batch: Batch, tmp_path: Path, own_output: bool
) -> None:
    """The engine's heads, read from the folder, guess exactly as those in training."""
    learner = MedusaLearner(backbone(), HeadSettings(heads=3, layers=2, own_output=own_output), seed=1)
    shaken(learner)
    measured = learner.measure([batch])
    learner.save(tmp_path, "llama", measured["accuracies"])
    heads = load_heads(str(tmp_path), decoder_of(learner.backbone.model))
    assert heads.count == 3 and heads.accuracies == measured["accuracies"]
    for hidden in torch.randn(4, 64):
        logits = heads.logits(hidden)
        for head in range(3):
            assert torch.allclose(logits[head], said(learner, head, hidden), atol=1e-4)


def weights_of(learner: Any) -> list[Tensor]:
    return [w.detach().clone() for group in learner.groups.values() for w in group.weights.values()]


def check_resuming(make: Callable[[], Any], batch: Batch, folder: Path, steps: int, killed_after: int) -> None:
    """Assert that a training that is killed and resumed ends with the weights of an unbroken one."""
    whole, resumed = make(), make()
    train(whole, batch, folder / "whole", steps)
    with pytest.raises(Kill):
        train(make(), batch, folder / "killed", steps, reports=iter([None] * killed_after), checkpoint_seconds=0.0)
    train(resumed, batch, folder / "killed", steps)
    assert all(torch.equal(a, b) for a, b in zip(weights_of(whole), weights_of(resumed), strict=True))


def check_pieces(make: Callable[[], Any], batch: Batch, group: str, count: int, patch: pytest.MonkeyPatch) -> None:
    """Assert that a drafter's gradients are the same whether it learns all at once or in small pieces."""
    gradients = list[list[Tensor]]()
    for at_once, logits in ((len(batch.ids), 2**22), (1, 300 * 3)):
        patch.setattr("lab.training.drafted._LOGITS", logits)
        learner = make()
        shaken(learner)
        for part in batch.parts(at_once):
            learner.learn(part, batch.counts(learner.distances), 0.0)
        gradients.append([w.grad for w in learner.groups[group].weights.values() if w.grad is not None])
    assert len(gradients[0]) == count
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*gradients, strict=True))


@slow  # it trains
@pytest.mark.parametrize("joint", [None, JOINT])
def test_a_killed_training_goes_on_to_the_same_weights(
    backbone: MakeBackbone, batch: Batch, tmp_path: Path, joint: Joint | None
) -> None:
    """Bit by bit, the chance of LoRA's dropout included."""

    def learner() -> MedusaLearner:
        return MedusaLearner(backbone(), HeadSettings(heads=2, joint=joint), seed=1)

    whole, killed, resumed = learner(), learner(), learner()
    losses = train(whole, batch, tmp_path / "whole", steps=8)
    with pytest.raises(Kill):
        train(killed, batch, tmp_path / "killed", steps=8, reports=iter([None] * 4), checkpoint_seconds=0.0)
    assert train(resumed, batch, tmp_path / "killed", steps=8, checkpoint_seconds=0.0)[-1] == losses[-1]
    assert all(torch.equal(a, b) for a, b in zip(weights_of(whole), weights_of(resumed), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(weights_of(whole), weights_of(killed), strict=True))


def logits_of(model: Any, batch: Batch) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(input_ids=batch.ids, position_ids=batch.positions, use_cache=False).logits
    return logits


@slow
def test_a_model_that_learns_with_its_heads_keeps_its_original_inside(
    backbone: MakeBackbone, batch: Batch, tmp_path: Path
) -> None:
    """Adapter off: the original, exactly. Adapter on: another model. Merged: that other model in plain weights."""
    original = logits_of(backbone().model, batch)
    model = backbone()
    learner = MedusaLearner(model, HeadSettings(heads=2, rate=0.01, joint=JOINT), seed=1)
    assert torch.equal(logits_of(model.model, batch), original), "a fresh adapter adds nothing"
    before, choices = measure_model(model, [batch])
    train(learner, batch, tmp_path / "work")
    model.model.eval()
    changed = logits_of(model.model, batch)
    assert not torch.allclose(changed, original, atol=1e-2)
    with model.original():
        assert torch.equal(logits_of(model.model, batch), original)
    assert torch.equal(logits_of(model.model, batch), changed), "and back on"
    model.merge()
    assert torch.allclose(logits_of(model.model, batch), changed, atol=1e-4)
    after, others = measure_model(model, [batch])
    assert after["loss"] < before["loss"] and after["right"] >= before["right"]
    assert agreement(choices, choices) == 1.0 > agreement(choices, others)


def test_the_merged_model_is_an_ordinary_folder(
    backbone: MakeBackbone, batch: Batch, codec: Any, tmp_path: Path
) -> None:
    import transformers

    from decoding.loader import load

    model = backbone("mistral")
    train(MedusaLearner(model, HeadSettings(heads=1, joint=JOINT), seed=1), batch, tmp_path / "work", steps=5)
    model.merge()
    model.save(tmp_path / "model", codec)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert torch.equal(logits_of(again, batch), logits_of(model.model, batch))
    assert not any("lora" in name for name in again.state_dict())
    engine = load(str(tmp_path / "model"), device="cpu", dtype="float32")
    assert len(engine.generate("count 3", max_new_tokens=2).ids) > 0


def test_a_tied_output_layer_is_left_alone(backbone: MakeBackbone) -> None:
    """Merged, an adapter of the output layer would change the embedding that shares its weights."""
    tied, plain = backbone("qwen2"), backbone()
    for model, adapted in ((tied, False), (plain, True)):
        model.adapt(Lora(rank=2), seed=1)
        assert any("lm_head" in name for name in model.adapted) == adapted
        assert any("down_proj" in name for name in model.adapted)


def test_distilled_the_model_learns_what_its_original_says(backbone: MakeBackbone, batch: Batch) -> None:
    """At the start nothing is left to learn; later it is the divergence from the original, written out here."""
    model = backbone()
    joint = Joint(Lora(rank=4, dropout=0.0), weight=0.01, schedule="constant", distilled=True)
    learner = MedusaLearner(model, HeadSettings(heads=1, joint=joint), seed=1)
    assert learner.learn(batch, batch.counts(2), 0.5)["model"] == pytest.approx(0.0, abs=1e-6)
    shaken(learner)
    losses = learner.learn(batch, batch.counts(2), 0.5)
    places, _ = batch.labels(1)
    p = logits_of(backbone().model, batch).flatten(0, 1)[places].log_softmax(-1)
    q = logits_of(model.model.eval(), batch).flatten(0, 1)[places].log_softmax(-1)
    wanted = float(kl_div(q, p, reduction="batchmean", log_target=True))
    assert losses["model"] == pytest.approx(wanted, rel=1e-3) and wanted > 0.01
    assert losses["loss"] == pytest.approx(losses["model"] + 0.01 * 0.8 * losses["head 1"], rel=1e-4)


@pytest.mark.parametrize(
    ("schedule", "weights"),
    [
        ("constant", [(1.0, 0.2), (1.0, 0.2), (1.0, 0.2)]),
        ("sine", [(1.0, 0.0), (1.0, 0.2 * 2**-0.5), (1.0, 0.2)]),
        ("two-stage", [(0.0, 1.0), (1.0, 0.2), (1.0, 0.2)]),
    ],
)
def test_schedules_of_joint_training(
    backbone: MakeBackbone, schedule: str, weights: Sequence[tuple[float, float]]
) -> None:
    learner = MedusaLearner(backbone(), HeadSettings(heads=1, joint=Joint(schedule=schedule, first_stage=0.3)), seed=1)
    for share, wanted in zip((0.0, 0.5, 1.0), weights, strict=True):
        assert learner._stage(share) == pytest.approx(wanted)


def test_in_the_first_of_two_stages_the_model_rests(backbone: MakeBackbone, batch: Batch, tmp_path: Path) -> None:
    """Although its adapter on the output layer would get gradients from heads that share that layer."""
    joint = Joint(Lora(rank=4), rate=0.01, schedule="two-stage", first_stage=0.5)
    learner = MedusaLearner(backbone(), HeadSettings(heads=1, joint=joint), seed=1)
    start = [weight.detach().clone() for weight in learner.groups["model"].weights.values()]
    with pytest.raises(Kill):
        train(learner, batch, tmp_path, steps=8, reports=iter([None] * 3), checkpoint_seconds=0.0)
    now = learner.groups["model"].weights.values()
    assert all(torch.equal(a, b) for a, b in zip(start, now, strict=True))
    train(learner, batch, tmp_path, steps=8)
    assert not all(torch.equal(a, b) for a, b in zip(start, now, strict=True))


def test_ranks_put_the_lowest_id_first() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]])
    ranks = [rank_of(logits, torch.tensor([token, token])).tolist() for token in range(4)]
    assert ranks == [[2, 0], [0, 1], [1, 2], [3, 3]]


def test_without_peft_one_sentence_says_what_to_install(
    backbone: MakeBackbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    with pytest.raises(ExtraError, match=r"\[train\]"):
        backbone().adapt(Lora(), seed=1)
