"""Training: rows, optimizers, one small model that learns, and going on after a kill."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from analysis.bench.methods import bench
from analysis.prompts.tasks import Task
from decoding import load
from decoding.codec import Codec
from decoding.errors import ParamError
from lab.pocket.card import methods_table
from lab.pocket.encoding import SampleEncoder
from lab.pocket.family import loss_chart, new_model, training
from lab.pocket.language import drills
from lab.pocket.language.kinds import KINDS, held_out, held_out_sample, long_training_sample, training_sample
from lab.pocket.language.sample import Sample, Turn
from lab.pocket.learner import FamilyModel
from lab.pocket.plans import PLANS, SMOKE
from lab.pocket.sources import draw_batch
from lab.pocket.suite import write_store, write_tasks
from lab.pocket.tokenizer import ASSISTANT, END, PAD, START, USER, train_tokenizer
from lab.training.checkpoint import read_checkpoint, read_log, write_checkpoint
from lab.training.conversations import Conversation
from lab.training.encoding import ChatEncoder
from lab.training.machine import machine
from lab.training.plot import plot
from tests import ROOT

TINY = replace(SMOKE.target, hidden=16, layers=1, steps=8, lines=2, length=128)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    rng = Random(0)
    turns = [turn for _ in range(300) for turn in training_sample(rng, 1.0).turns]
    texts = [text for turn in turns for text in (turn.prompt, turn.answer)]
    return train_tokenizer(texts, size=1500)


def sample(*turns: tuple[str, str], system: str = "") -> Sample:
    return Sample("test", tuple(Turn(*turn) for turn in turns), system)


def test_a_row_is_what_the_chat_template_writes_and_only_answers_are_learnt(tokenizer: Any) -> None:
    (row,) = SampleEncoder(tokenizer).rows([sample(("one", "two"), ("three", "four 5"), system="be kind")])
    messages = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
        {"role": "assistant", "content": "four 5"},
    ]
    assert row.ids == tokenizer.apply_chat_template(messages, return_dict=False)
    learnt = [token for token, wanted in zip(row.ids, row.learnt, strict=True) if wanted]
    assert tokenizer.decode(learnt) == f"two{END}four 5{END}"


def test_the_fast_encoder_gives_the_rows_of_the_one_for_every_model(tokenizer: Any) -> None:
    rng = Random(6)
    samples = [training_sample(rng, 1.0) for _ in range(60)] + [long_training_sample(rng) for _ in range(10)]
    slow = ChatEncoder(Codec(tokenizer, [tokenizer.eos_token_id]), 5000)
    for one, row in zip(samples, SampleEncoder(tokenizer).rows(samples), strict=True):
        turns = one.turns
        chat = Conversation(tuple(turn.prompt for turn in turns), tuple(turn.answer for turn in turns), one.system)
        assert slow.rows(chat) == [row]


def test_a_plain_text_is_a_question(tokenizer: Any) -> None:
    assert tokenizer.decode(tokenizer.encode("one 23")) == f"{START}{USER}one 23{ASSISTANT}"
    asked = [{"role": "user", "content": "one 23"}]
    chat = tokenizer.apply_chat_template(asked, add_generation_prompt=True, return_dict=False)
    assert chat == tokenizer.encode("one 23")


@pytest.mark.parametrize(
    "text", ["", " ", "a  b\n\n\tc ", "naïve Ωμέγα 日本語 👩‍🚀 \u0000\u200b", "def f(x):\n        return 10\n", "\r\n"]
)
def test_the_tokenizer_gives_every_text_back(tokenizer: Any, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(ids) == text


def test_every_digit_is_a_token(tokenizer: Any) -> None:
    ids = tokenizer.encode("x = 1874", add_special_tokens=False)
    assert [tokenizer.decode([token]) for token in ids[-4:]] == [*"1874"]


def test_a_batch_holds_whole_conversations_that_do_not_see_each_other(tokenizer: Any) -> None:
    encoder, rng = SampleEncoder(tokenizer), Random(3)
    batch = draw_batch(encoder, lambda: training_sample(rng, 1.0), 8, 256)
    assert batch.ids.shape == batch.positions.shape == (8, 256)
    begins = (batch.positions == 0).nonzero().tolist()
    assert len(begins) > 8
    text = [tokenizer.decode(line) for line in batch.ids]
    assert sum(line.count(START) for line in text) + sum(line.endswith(PAD) for line in text) == len(begins)
    assert sum(line.count(PAD) for line in text) < 0.25 * batch.ids.numel()
    for line, begin in begins:
        assert tokenizer.decode(batch.ids[line, begin]) in (START, PAD)


def test_every_answer_token_is_asked_for_at_the_place_before_it(tokenizer: Any) -> None:
    encoder = SampleEncoder(tokenizer)
    one = sample(("one", "two three"))
    (row,) = encoder.rows([one])
    batch = draw_batch(encoder, lambda: one, 2, len(row.ids) + 3)
    places, labels = batch.labels(1)
    assert torch.equal(batch.ids.flatten()[places + 1], labels[:, 0])
    assert labels[:, 0].tolist() == 2 * [token for token, wanted in zip(row.ids, row.learnt, strict=True) if wanted]


def test_a_conversation_that_is_too_long_is_passed_over(tokenizer: Any) -> None:
    encoder, rng = SampleEncoder(tokenizer), Random(3)
    batch = draw_batch(encoder, lambda: drills.make(rng), 4, 120)
    whole = [text for line in batch.ids for text in tokenizer.decode(line).split(START)[1:]]
    assert whole
    assert all(END in text for text in whole)
    with pytest.raises(ValueError, match="no conversation fits"):
        draw_batch(encoder, lambda: drills.make(rng), 4, 5)


def test_a_packed_conversation_is_read_as_if_it_stood_alone(tokenizer: Any) -> None:
    """The proof that packing changes nothing but the speed: the same logits, alone and packed."""
    encoder, rng = SampleEncoder(tokenizer), Random(7)
    model = new_model(TINY, 3, "cpu", 1500).eval()
    batch = draw_batch(encoder, lambda: drills.make(rng), 1, 200)
    begins = [*(batch.positions[0] == 0).nonzero().flatten().tolist(), 200]
    with torch.inference_mode():
        packed = model(input_ids=batch.ids, position_ids=batch.positions, use_cache=False).logits[0]
        for begin, end in pairwise(begins):
            alone = model(input_ids=batch.ids[:, begin:end], use_cache=False).logits[0]
            assert torch.allclose(packed[begin:end], alone, atol=1e-5)
    assert len(begins) > 2


def test_no_conversation_of_the_suite_is_ever_trained_on() -> None:
    rng = Random(5)
    drawn = [training_sample(rng, 1.0) for _ in range(2000)]
    assert not any(held_out(sample) for sample in drawn if sample.kind != "drill")
    assert all(held_out(held_out_sample(kind, rng)) for kind in KINDS)


def test_drills_come_first_and_all_kinds_come_later() -> None:
    rng = Random(5)
    assert sum(training_sample(rng, 0.0).kind == "drill" for _ in range(400)) == 400
    assert {training_sample(rng, 1.0).kind for _ in range(400)} == {"drill", *KINDS}


@pytest.mark.parametrize("seed", range(20))
def test_a_drill_can_be_answered_from_its_prompt(seed: int) -> None:
    (turn,) = drills.make(Random(seed)).turns
    if turn.prompt.startswith("Copy: "):
        assert turn.answer == turn.prompt.removeprefix("Copy: ")
    else:
        pairs, _, asked = turn.prompt.removeprefix("Pairs: ").partition(". Look up: ")
        table = {pair.split()[0]: pair for pair in pairs.split(", ")}
        assert turn.answer == ", ".join(table[key] for key in asked.split(", "))


def test_the_suite_and_the_store_are_made_by_their_seed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_tasks(tmp_path / name, 4, questions=2)
        write_store(tmp_path / f"{name}.txt", 4, size=5000)
    lines = [json.loads(line) for line in (tmp_path / "a").read_text().splitlines()]
    assert [line["category"] for line in lines] == [kind for kind in KINDS for _ in range(2)]
    for line in lines:
        for prompt, reference in zip(line["turns"], line["reference"], strict=True):
            assert KINDS[line["category"]].right(prompt, reference, reference)
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    assert (tmp_path / "a.txt").read_text() == (tmp_path / "b.txt").read_text()
    assert 5000 <= (tmp_path / "a.txt").stat().st_size < 8000


class Kill(Exception):  # noqa: N818  # it is no error
    """Stands for the end of the process."""


def trained(
    folder: Path, tokenizer: Any, reports: Iterator[None] | None = None, seed: int = 2, seconds: float = 1e9
) -> Any:
    """Train a tiny model, or as far as `reports` lets it pass; `seconds` between checkpoints."""
    model, encoder = new_model(TINY, seed, "cpu", 1500), SampleEncoder(tokenizer)

    def progress(what: str, share: float) -> None:
        if reports is not None and next(reports, Kill) is Kill:
            raise Kill

    loop = training(TINY, model, encoder, lambda rng, share: drills.make(rng), folder, seed, checkpoint_seconds=seconds)
    loop.run(progress)
    return model


def test_a_killed_training_goes_on_to_the_same_weights(tokenizer: Any, tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", tokenizer)
    with pytest.raises(Kill):
        trained(tmp_path / "killed", tokenizer, iter([None] * 4), seconds=0.0)
    resumed = trained(tmp_path / "killed", tokenizer, seconds=0.0)
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, resumed.state_dict()[name]), name
    logs = [[entry["loss"] for entry in read_log(tmp_path / name / "log.jsonl")] for name in ("whole", "killed")]
    assert len(logs[0]) == TINY.steps
    assert logs[0] == logs[1]


def test_a_training_killed_before_its_first_checkpoint_starts_its_log_anew(tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(Kill):
        trained(tmp_path, tokenizer, iter([None] * 4))
    trained(tmp_path, tokenizer)
    assert [entry["step"] for entry in read_log(tmp_path / "log.jsonl")] == list(range(1, TINY.steps + 1))


def test_a_checkpoint_of_another_training_or_a_damaged_one_is_refused(tokenizer: Any, tmp_path: Path) -> None:
    trained(tmp_path, tokenizer)
    with pytest.raises(ParamError, match="is of another seed: delete it"):
        trained(tmp_path, tokenizer, seed=3)
    path = tmp_path / "checkpoint.safetensors"
    about, tensors = read_checkpoint(path)
    write_checkpoint(path, tensors, {"recipe": {}, "seed": 2, "count": {}})  # of an earlier version
    with pytest.raises(ParamError, match="is of another recipe: delete it"):
        trained(tmp_path, tokenizer)
    for spoilt in ({"training": about["training"]}, about | {"count": {}}):
        write_checkpoint(path, tensors, spoilt)
        with pytest.raises(ParamError, match="is damaged: delete it to train anew"):
            trained(tmp_path, tokenizer)
    write_checkpoint(path, {}, about)
    with pytest.raises(ParamError, match="is damaged"):
        trained(tmp_path, tokenizer)
    path.write_bytes(b"no checkpoint")
    with pytest.raises(ParamError, match="is damaged"):
        trained(tmp_path, tokenizer)


def test_a_student_learns_its_teachers_distributions(tokenizer: Any) -> None:
    """With its own twin as the teacher nothing is left to learn: no gradient. With another teacher there is one."""
    encoder, gradients = SampleEncoder(tokenizer), []
    for teacher_seed in (1, 2):
        model, teacher = (new_model(TINY, seed, "cpu", 1500) for seed in (1, teacher_seed))
        batch = draw_batch(encoder, lambda: drills.make(Random(1)), 2, 128)
        FamilyModel(model, TINY, teacher).learn(batch, batch.counts(1), 0.0)
        gradients.append(
            max(float(weight.grad.abs().max()) for weight in model.parameters() if weight.grad is not None)
        )
    assert gradients[0] < 0.02 * gradients[1]


def test_the_plot_draws_every_log() -> None:
    log = [{"tokens": 1000.0 * step, "loss": 5.0 / step} for step in range(1, 700)]
    picture = plot([loss_chart({"target": log, "<b>": log[:50]})])
    assert picture.startswith("<svg") and picture.count("<polyline") == 2
    assert "<b>" not in picture
    assert plot([loss_chart({})]).endswith("</svg>\n")


def test_a_methods_table_is_made_of_any_report_and_hides_no_difference() -> None:
    """A saved bench.json of a day with a good clock is worth as much as a measurement now."""
    report = bench(load("toy"), [Task(1, "talk", ("Thursday",))], ["jacobi", "prompt_lookup"], max_new_tokens=4)
    saved = json.loads(json.dumps(report))
    table = " ".join(methods_table(saved).split())
    assert "Greedy, float64 on cpu" in table and "; every method wrote the same text as autoregressive" in table
    saved["rows"][1] |= {"identical_to_autoregressive": False, "speedup_vs_autoregressive": None}
    table = " ".join(methods_table(saved).split())
    assert "; all but jacobi wrote the same text" in table and "| - | | prompt_lookup |" in table


def test_the_card_names_the_machine_that_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training on the processor owes nothing to the graphics card beside it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Abacus {device.index}")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert re.fullmatch(r"1 thread of \S+", machine(torch.device("cpu")))
    assert machine(torch.device("cuda:1")) == "Abacus 1"


def test_every_shipped_card_names_the_projects_licence() -> None:
    cards = list((ROOT / "assets" / "pocket").glob("*/README.md"))
    assert len(cards) == 7
    assert all("\nlicense: apache-2.0\n" in card.read_text(encoding="utf-8").split("---")[1] for card in cards)


def test_the_plans_keep_their_promises() -> None:
    for name, largest in (("target", 12e6), ("drafter", 1.5e6)):
        recipe = getattr(PLANS["full"], name)
        parameters = sum(weight.numel() for weight in new_model(recipe, 0, "cpu").parameters())
        assert parameters <= largest
    assert recipe.tied
