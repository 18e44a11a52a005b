"""The whole family in one call: tokenizer, target, drafter, tasks and text, and how good they turned out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import torch

from decoding.model.loading import find_device
from decoding.types import JSON

from ..training.checkpoint import LOG, damaged, read_log
from ..training.plot import loss_plot
from ..training.saving import save_model
from .batches import Rows
from .card import write_cards
from .language.kinds import polishing_sample, training_sample
from .suite import QUESTIONS, write_store, write_tasks
from .tokenizer import CONTEXT, END, PAD, SIZE, START, train_tokenizer
from .trainer import Recipe, Trainer

Tell = Callable[[str, float], None]
Log = list[dict[str, float]]
WINDOW = 256


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that decides what a family becomes, beside its seed."""

    target: Recipe
    polish: Recipe  # the target's second training, at lower rates, on what is still hard
    drafter: Recipe
    tokenizer_samples: int
    questions: int


FULL = Plan(
    target=Recipe(
        "target", 256, 6, 4, 2, 704, False, steps=13000, lines=16, length=256, muon_rate=0.004, adam_rate=0.003
    ),
    polish=Recipe(
        "polish", 256, 6, 4, 2, 704, False, steps=2500, lines=16, length=256, muon_rate=0.0015, adam_rate=0.001
    ),
    drafter=Recipe(
        "drafter", 192, 1, 6, 1, 512, True, steps=2000, lines=16, length=256, muon_rate=0.004, adam_rate=0.003
    ),
    tokenizer_samples=30_000,
    questions=QUESTIONS,
)
# A few seconds' worth: shows that everything fits together, learns next to nothing.
SMOKE = Plan(
    target=Recipe("target", 32, 2, 4, 2, 64, False, 30, 4, 256, 0.01, 0.01, compiled=False),
    polish=Recipe("polish", 32, 2, 4, 2, 64, False, 5, 4, 256, 0.001, 0.001, compiled=False),
    drafter=Recipe("drafter", 16, 1, 2, 1, 32, True, 10, 4, 256, 0.01, 0.01, compiled=False),
    tokenizer_samples=400,
    questions=1,
)
PLANS = {"full": FULL, "smoke": SMOKE}


def train_family(out: Path, plan: Plan, seed: int, device: str, tell: Tell) -> dict[str, JSON]:
    """Make the family in `out`, going on from where an earlier call has stopped; how good it turned out."""
    work = out / "training"
    work.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(work / "tokenizer", plan, seed, tell)
    rows = Rows(tokenizer)
    target = new_model(plan.target, seed, device)
    Trainer(plan.target, target, rows, training_sample, work / "target", seed).run(tell)
    Trainer(plan.polish, target, rows, polishing_sample, work / "polish", seed).run(tell)
    _save(target, tokenizer, out / "target")
    drafter = new_model(plan.drafter, seed, device)
    Trainer(plan.drafter, drafter, rows, training_sample, work / "drafter", seed, teacher=target).run(tell)
    _save(drafter, tokenizer, out / "drafter")
    write_tasks(out / "tasks.jsonl", seed, plan.questions)
    write_store(out / "datastore.jsonl", seed)
    first, second, third = (_log(work, recipe) for recipe in (plan.target, plan.polish, plan.drafter))
    logs = {"target": _joined(first, second), "drafter": third}
    (out / "loss.svg").write_text(loss_plot(logs), encoding="utf-8")
    return write_cards(out, logs, find_device(device), tell)


def _log(work: Path, recipe: Recipe) -> Log:
    """What a training wrote down of all its steps."""
    path = work / recipe.name / LOG
    log = read_log(path)
    told = (entry.get(name) for entry in log for name in ("loss", "seconds", "tokens"))
    if len(log) != recipe.steps or not all(isinstance(number, int | float) for number in told):
        raise damaged(path)
    return log


def _joined(first: Log, second: Log) -> Log:
    """Two trainings of one model as one."""
    last = first[-1]
    counted = ("step", "seconds", "tokens")
    return [*first, *(entry | {name: entry[name] + last[name] for name in counted} for entry in second)]


def _tokenizer(folder: Path, plan: Plan, seed: int, tell: Tell) -> Any:
    """The tokenizer of an earlier call, else one trained on samples of all kinds."""
    from transformers import AutoTokenizer

    if (folder / "tokenizer.json").is_file():
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    tell("training the tokenizer", 0.0)
    rng = Random(f"{seed}/tokenizer")
    samples = (training_sample(rng, 1.0) for _ in iter(int, 1))
    tokenizer = train_tokenizer(
        text
        for sample in islice(samples, plan.tokenizer_samples)
        for turn in sample.turns
        for text in (turn.prompt, turn.answer)
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def new_model(recipe: Recipe, seed: int, device: str, vocabulary: int = SIZE) -> Any:
    """A Mistral with fresh weights."""
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(
        vocab_size=vocabulary,
        hidden_size=recipe.hidden,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.kv_heads,
        head_dim=recipe.hidden // recipe.heads,
        intermediate_size=recipe.intermediate,
        max_position_embeddings=CONTEXT,
        sliding_window=WINDOW,
        tie_word_embeddings=recipe.tied,
        attn_implementation="eager",  # plain products: the fastest backward pass for short rows on a CPU
    )
    torch.manual_seed(seed)
    return MistralForCausalLM(config).to(find_device(device))


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    """An ordinary transformers folder in bfloat16."""
    import copy

    from transformers import GenerationConfig

    ids = tokenizer.convert_tokens_to_ids
    model.generation_config = GenerationConfig(
        bos_token_id=ids(START), eos_token_id=ids(END), pad_token_id=ids(PAD), do_sample=False
    )
    for name in ("bos", "eos", "pad"):
        setattr(model.config, f"{name}_token_id", getattr(model.generation_config, f"{name}_token_id"))
    save_model(copy.deepcopy(model).to(torch.bfloat16), folder)
    tokenizer.save_pretrained(folder)
