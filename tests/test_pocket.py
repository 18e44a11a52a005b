"""The embedded family as it ships: its files, what others can do with them, and how good it is.

The default tier asks some methods a question of every kind, and `--all` the others. `--all` also asks for all of the
suite whether its answers are right.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
import transformers

from analysis.prompts.tasks import Task, read_tasks
from decoding import METHODS, Engine, Result, load
from decoding.embedded import DRAFTER, FOLDERS, MEDUSA_2, PROMPT, STORE, TARGET, TASKS
from lab.pocket.language.kinds import KINDS, held_out
from lab.pocket.language.sample import Sample, Turn
from lab.pocket.plans import FULL
from lab.pocket.quality import measure, total
from lab.pocket.suite import write_store, write_tasks
from tests.tiers import choose, nightly, sampled, slow

# The share of right answers that the family promises, by kind.
PROMISED = {
    "chat": 0.95,
    "translation": 0.90,
    "summary": 0.80,
    "qa": 0.85,
    "arithmetic": 0.80,
    "rag": 0.85,
    "code": 0.80,
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return load(TARGET, device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def tasks() -> tuple[Task, ...]:
    return read_tasks(TASKS)


def some(tasks: tuple[Task, ...], each: int) -> list[Task]:
    """Choose a few of every kind."""
    seen = Counter[str]()
    return [task for task in tasks if (seen.update([task.category]) or seen[task.category]) <= each]


# Bounds on tokens per step, greedy in float32, that real pairs of models show: neither guessing nor failing always.
FASTER = {
    "jacobi": (1.0, 1.4),
    "lookahead": (1.5, 4.0),
    "draft_model": (2.2, 5.0),
    "prompt_lookup": (1.2, 3.0),
    "suffix": (1.2, 3.0),
    "ngrammys": (1.7, 4.0),
    "token_recycling": (1.4, 4.0),
    "medusa": (1.9, 5.0),
    "kangaroo": (1.8, 5.0),
    "eagle3": (4.0, 6.9),
    "dflash": (2.0, 6.0),
    "ouroboros": (2.8, 9.0),
    "rest": (1.4, 4.0),
}


def test_the_files_keep_their_sizes() -> None:
    home = TASKS.parent
    assert sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) <= 27e6
    files = {"tasks.jsonl", "datastore.jsonl", "datastore.safetensors.packed", "loss.svg"}
    assert {path.name for path in home.iterdir()} == {
        "target",
        "drafter",
        "medusa",
        "medusa-2",
        "kangaroo",
        "eagle",
        "dflash",
        *files,
    }
    assert STORE.stat().st_size < 2e6


@pytest.mark.parametrize(("name", "least", "most"), [(TARGET, 6e6, 12e6), (DRAFTER, 0.0, 1.5e6)])
def test_transformers_opens_and_runs_it_without_our_code(name: str, least: float, most: float) -> None:
    """Same ids as ours from `generate`, in a folder with nothing of ours in it."""
    folder = FOLDERS[name]
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert least <= sum(weight.numel() for weight in model.parameters()) <= most
    chat = [{"role": "user", "content": PROMPT}]
    inputs: Any = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    theirs = model.generate(**inputs, max_new_tokens=80, do_sample=False)[0, inputs["input_ids"].shape[1] :].tolist()
    ours = load(str(folder), device="cpu", dtype="float32").generate(chat, max_new_tokens=80)
    assert list(ours.ids) == theirs
    assert ours.trace.header.prompt == tuple(inputs["input_ids"][0].tolist())


def test_it_is_what_the_recipe_says() -> None:
    for name, recipe in ((TARGET, FULL.target), (DRAFTER, FULL.drafter)):
        config = json.loads((FOLDERS[name] / "config.json").read_text())
        assert config["model_type"] == "mistral"
        assert config["sliding_window"] == 256 < 1024 <= config["max_position_embeddings"]
        assert config["num_key_value_heads"] < config["num_attention_heads"]
        assert (config["hidden_size"], config["num_hidden_layers"]) == (recipe.hidden, recipe.layers)


def test_the_tokenizer_gives_any_text_back(engine: Engine) -> None:
    tokenizer, rng = engine.codec.tokenizer, Random(8)
    assert len(tokenizer) == 4096
    for _ in range(300):
        points = [rng.choice((rng.randrange(32, 127), rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)))]
        text = "".join(map(chr, points * rng.randrange(1, 4))) + rng.choice((" ", "\n", "a  b", "12"))
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def test_the_suite_is_the_seeds_and_held_out(tasks: tuple[Task, ...], tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks.jsonl", seed=1)
    assert (tmp_path / "tasks.jsonl").read_bytes() == TASKS.read_bytes()
    write_store(tmp_path / "datastore.jsonl", seed=1)
    assert (tmp_path / "datastore.jsonl").read_bytes() == STORE.read_bytes()
    assert min(Counter(task.category for task in tasks).values()) >= 20
    assert {task.category for task in tasks} == set(KINDS)
    for task in tasks:
        turns = tuple(Turn(*turn) for turn in zip(task.turns, task.reference, strict=True))
        assert held_out(Sample(task.category, turns))


@slow
def test_some_answers_of_every_kind_are_right(engine: Engine, tasks: tuple[Task, ...]) -> None:
    """Wrong weights, a wrong template or a broken model show in a few answers: four in five are promised."""
    qualities = measure(engine, some(tasks, 2), lambda what, share: None)
    assert qualities.keys() == PROMISED.keys()
    assert total(qualities).share >= min(PROMISED.values()), qualities
    assert 0.4 <= total(qualities).entropy <= 2.0


@pytest.mark.long
@pytest.mark.parametrize("each", [pytest.param(10, marks=slow), pytest.param(1_000, marks=nightly)])
def test_the_answers_are_right_and_honestly_uncertain(engine: Engine, tasks: tuple[Task, ...], each: int) -> None:
    """What the card says, measured again: a checker tells of every answer whether it is right."""
    qualities = measure(engine, some(tasks, each), lambda what, share: None)
    shares = {kind: quality.share for kind, quality in qualities.items()}
    assert all(shares[kind] >= least for kind, least in PROMISED.items()), shares
    assert qualities["code"].parseable >= 0.95 * qualities["code"].turns
    assert 0.4 <= total(qualities).entropy <= 2.0


@pytest.fixture(scope="module")
def answer(engine: Engine) -> Callable[[str, str], Result]:
    """Return what a method answers to a question, once for all tests that look at it."""

    @cache
    def answered(question: str, method: str) -> Result:
        return engine.generate([{"role": "user", "content": question}], method, max_new_tokens=160)

    return answered


# Those that were trained, and one that copies; toys have all methods, SmolLM2 others.
QUICK = {"draft_model", "medusa", "kangaroo", "eagle3", "suffix"}


@sampled
@pytest.mark.parametrize("method", choose(FASTER, QUICK))
def test_every_method_writes_its_text_in_fewer_steps(
    engine: Engine, tasks: tuple[Task, ...], answer: Callable[[str, str], Result], method: str
) -> None:
    """On trained weights, whose near-ties and repetitions random ones lack.

    A few questions of every kind; the bounds hold over the suite, and leave some room for fewer questions.
    """
    asked = [task.turns[0] for task in some(tasks, 1)]
    for question in asked:
        assert answer(question, method).ids == answer(question, "autoregressive").ids
        assert engine.rescore(answer(question, method).trace).violations == 0
    low, high = FASTER[method]
    assert low <= tokens_per_step([answer(question, method) for question in asked]) <= high


def test_every_method_has_bounds() -> None:
    assert FASTER.keys() == METHODS.keys() - {"autoregressive"}


@pytest.mark.slow  # a result of training; its model and heads are loaded above
def test_medusa_2_guesses_better_and_answers_as_well(
    engine: Engine, tasks: tuple[Task, ...], answer: Callable[[str, str], Result]
) -> None:
    """Its model learnt with its heads: the heads must win, and hardly an answer may be lost (the card has them all)."""
    joint = load(MEDUSA_2, device="cpu", dtype="float32")
    asked = [task.turns[0] for task in some(tasks, 1)]
    before = [answer(question, "medusa") for question in asked]
    chats = [[{"role": "user", "content": question}] for question in asked]
    after = [joint.generate(chat, "medusa", max_new_tokens=160, record="off") for chat in chats]
    assert tokens_per_step(after) > max(2.2, tokens_per_step(before))
    judged = some(tasks, 2)
    right = [total(measure(model, judged, lambda what, share: None)).right for model in (engine, joint)]
    assert right[1] >= right[0] - 1


def tokens_per_step(runs: Sequence[Result]) -> float:
    return sum(run.summary.new_tokens for run in runs) / sum(run.summary.steps for run in runs)


def test_long_conversations_past_the_window(engine: Engine, tasks: tuple[Task, ...]) -> None:
    """Behind several windows of other talk the model still answers rightly: the rolling buffer holds what counts."""
    chat = [
        {"role": role, "content": text}
        for task in some(tasks, 1)
        for turn in zip(task.turns, task.reference, strict=True)
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
    task = next(task for task in reversed(tasks) if task.category == "rag")
    chat.append({"role": "user", "content": task.turns[0]})
    ids = engine.encode(chat)
    assert len(ids) > 3 * 256
    result = engine.generate(ids, max_new_tokens=120)
    assert KINDS["rag"].right(task.turns[0], result.text, task.reference[0]), result.text
    assert engine.generate(ids, "lookahead", max_new_tokens=120).ids == result.ids
