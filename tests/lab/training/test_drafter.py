"""A drafter in training: distilled from what the model holds likely, and an ordinary model when it is done."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from cli.arguments import Parser
from cli.train_flags import add_drafter_flags
from cli.train_parts import train_drafter
from decoding.codec import Codec
from decoding.errors import ParamError
from decoding.loader import load
from lab.training import teacher
from lab.training.batches import Batch
from lab.training.conversations import write_line
from lab.training.drafter import DrafterLearner, DrafterSettings, parameters
from lab.training.teacher import TOP, Teacher

from .conftest import CHATS
from .test_medusa import MakeBackbone, check_resuming, train

SMALL = DrafterSettings(hidden=32, layers=2, heads=2, intermediate=64, rate=0.01)


def alone(batch: Batch) -> list[tuple[Tensor, list[bool]]]:
    """The rows of a batch, each on its own."""
    texts = []
    for ids, positions, learnt in zip(batch.ids, batch.positions, batch.learnt, strict=True):
        begins = [*(positions == 0).nonzero().flatten().tolist(), len(ids)]
        texts += [(ids[None, begin:end], learnt[begin:end].tolist()) for begin, end in pairwise(begins)]
    return texts


def by_hand(learner: DrafterLearner, batch: Batch, shift: int = 0) -> tuple[float, float, float]:
    """The loss over the likeliest tokens, the agreement and the acceptance, row by row; `shift` is for the control."""
    losses, right, accepted = list[float](), list[bool](), list[float]()
    for ids, learnt in alone(batch):
        with torch.no_grad():
            drafts, targets = (model(input_ids=ids).logits[0] for model in (learner.model, learner.backbone.model))
        for t in range(len(learnt) - 1 - shift):
            if learnt[t + 1]:
                best = targets[t + shift].topk(TOP)
                shares = torch.zeros(len(targets[t])).scatter(0, best.indices, best.values.softmax(0))
                losses.append(float(cross_entropy(drafts[t], shares)))
                right.append(bool(drafts[t].argmax() == targets[t].argmax()))
                accepted.append(float(torch.minimum(drafts[t].softmax(0), targets[t].softmax(0)).sum()))
    return sum(losses) / len(losses), sum(right) / len(right), sum(accepted) / len(accepted)


def test_losses_and_measures_are_those_counted_by_hand(backbone: MakeBackbone, batch: Batch) -> None:
    """On packed rows, and on each alone. The control is off by one."""
    learner = DrafterLearner(backbone(), SMALL, seed=1)
    few = next(batch.parts(2))
    loss, right, accepted = by_hand(learner, few)
    for _ in range(2):  # the second time from memory, in half precision
        assert learner.learn(few, few.counts(1), 0.0)["loss"] == pytest.approx(loss, rel=1e-3)
    (head,) = learner.measure([few])["heads"]
    assert head["top"][0] == pytest.approx(right, abs=1e-6)
    assert head["acceptance"] == pytest.approx(accepted, rel=1e-3)
    assert abs(by_hand(learner, few, shift=1)[0] - loss) > 1e-3 * loss


def test_gradients_are_those_of_the_loss(backbone: MakeBackbone, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient through the pieces is the one that autograd finds through the whole."""
    monkeypatch.setattr("lab.training.drafter._LOGITS", 300 * 3)
    learner = DrafterLearner(backbone(), SMALL, seed=1)
    few = next(batch.parts(2))
    learner.learn(few, few.counts(1), 0.0)
    pieces = {name: weight.grad.clone() for name, weight in learner.model.named_parameters()}
    learner.model.zero_grad()
    likeliest, (places, _) = learner._teacher.predict(few), few.labels(1)
    output = learner.model(input_ids=few.ids, position_ids=few.positions, use_cache=False)
    logits = output.logits.flatten(0, 1)[places]
    (-(likeliest.shares * logits.log_softmax(-1).gather(1, likeliest.tokens)).sum() / len(places)).backward()
    for name, weight in learner.model.named_parameters():
        assert weight.grad is not None and torch.allclose(pieces[name], weight.grad, atol=1e-5), name


def test_the_model_reads_every_line_once(backbone: MakeBackbone, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever batch it comes in; a line of other words is another."""
    model, read = backbone(), list[int]()
    one = Teacher(model)
    whole = model.read

    def watched(line: Batch, **options: Any) -> Any:
        read.append(len(line.ids))
        return whole(line, **options)

    monkeypatch.setattr(model, "read", watched)
    first = one.predict(batch)
    assert read == [1] * len(batch.ids)
    again = [one.predict(part) for part in batch.parts(2)]
    assert len(read) == len(batch.ids)
    assert torch.equal(torch.cat([part.tokens for part in again]), first.tokens)
    assert torch.equal(torch.cat([part.shares for part in again]), first.shares)
    one.predict(Batch(batch.ids[:1].flip(1), batch.positions[:1], batch.learnt[:1]))
    assert len(read) == len(batch.ids) + 1
    assert first.tokens.shape == (int(batch.counts(1)[0]), teacher.TOP)


def test_a_drafter_learns_and_its_model_stays_as_it_is(backbone: MakeBackbone, batch: Batch, tmp_path: Path) -> None:
    model = backbone()
    before = {name: weight.clone() for name, weight in model.model.state_dict().items()}
    learner = DrafterLearner(model, SMALL, seed=1)
    (old,) = learner.measure([batch])["heads"]
    losses = train(learner, batch, tmp_path)
    (new,) = learner.measure([batch])["heads"]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])  # most of it is the model's own doubt
    assert new["acceptance"] > 1.15 * old["acceptance"] and new["top"][0] > old["top"][0]
    assert all(torch.equal(weight, before[name]) for name, weight in model.model.state_dict().items())


@pytest.mark.slow  # it trains
def test_a_killed_training_ends_as_an_unbroken_one(backbone: MakeBackbone, batch: Batch, tmp_path: Path) -> None:
    """What the model says is not saved: it is read again, to the last bit the same."""
    check_resuming(lambda: DrafterLearner(backbone(), SMALL, seed=1), batch, tmp_path, steps=30, killed_after=6)


def test_its_embedding_starts_as_the_models_own(backbone: MakeBackbone) -> None:
    """As large as the model's, it is that one turned round: products of tokens with each other are the same."""
    model = backbone()
    learner = DrafterLearner(model, DrafterSettings(hidden=64, layers=1, heads=2, intermediate=64), seed=1)
    theirs = model.model.get_output_embeddings().weight.detach()
    theirs = theirs - theirs.mean(0)
    ours = learner.model.get_input_embeddings().weight.detach()
    scale = float((ours.square().sum() / theirs.square().sum()).sqrt())
    assert torch.allclose(ours @ ours.T, scale**2 * theirs @ theirs.T, atol=1e-4)


def test_the_command_makes_a_drafter_that_changes_no_token(
    backbone: MakeBackbone, codec: Codec, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backbone().save(tmp_path / "model", codec)
    (tmp_path / "chats.jsonl").write_text("".join(write_line(chat, n) for n, chat in enumerate(CHATS)))
    model, out = str(tmp_path / "model"), str(tmp_path / "drafter")
    given = ["--model", model, "--data", str(tmp_path / "chats.jsonl"), "--out", out, "--length", "48", "--lines", "2"]
    sizes = ["--hidden", "32", "--layers", "1", "--heads", "2", "--intermediate", "64", "--steps", "4"]
    parser = Parser()
    add_drafter_flags(parser)
    machine = ["--device", "cpu", "--dtype", "float32", "--threads", "1"]
    assert train_drafter(parser.parse_args([*given, *sizes, *machine])) == 0
    assert "expected acceptance" in capsys.readouterr().out
    card = (tmp_path / "drafter" / "README.md").read_text()
    assert "# A drafter for" in card and "--draft THIS_FOLDER" in card and "| parameters | " in card
    engine = load(model, draft=out, device="cpu", dtype="float32")
    assert engine.draft is not None and engine.draft.card.vocabulary == 300
    options: dict[str, Any] = {"max_new_tokens": 30, "end_tokens": ()}
    plain = engine.generate((5, 6, 7), **options)
    assert engine.generate((5, 6, 7), "draft_model", **options).ids == plain.ids


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--hidden", "33", "--heads", "2"], "even multiple of --heads"),
        (["--hidden", "0"], "--hidden must be from 2"),
        (["--layers", "many"], "--layers must be"),
    ],
)
def test_nonsense_ends_in_one_sentence(argv: list[str], reason: str, tmp_path: Path) -> None:
    parser = Parser()
    add_drafter_flags(parser)
    with pytest.raises(ParamError) as caught:
        train_drafter(parser.parse_args(["--out", str(tmp_path), *argv]))
    assert reason in str(caught.value) and "\n" not in str(caught.value)


def test_smollm2s_is_small_enough() -> None:
    """Six million parameters, of which the embedding is nearly all."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = DrafterSettings()
    with torch.device("meta"):
        config = LlamaConfig(
            vocab_size=49_152,
            hidden_size=sizes.hidden,
            num_hidden_layers=sizes.layers,
            num_attention_heads=sizes.heads,
            intermediate_size=sizes.intermediate,
            tie_word_embeddings=True,
        )
        assert parameters(LlamaForCausalLM(config)) <= 6_000_000
