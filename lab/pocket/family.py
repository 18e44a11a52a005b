"""Makes the whole family in one call: tokenizer, target, drafter, tasks and text, and measures their quality."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import torch

from decoding.model.layout import find_device
from decoding.model.session import ProgressCallback
from decoding.types import JSON

from ..training.checkpoint import LOG, TrainingLog, damaged, read_log
from ..training.loop import TrainingBudget, TrainingLoop
from ..training.optimizers import MuonWithAdamW
from ..training.plot import Chart, plot
from ..training.saving import save_model
from .card import write_cards
from .encoding import SampleEncoder
from .language.kinds import polishing_sample, training_sample
from .learner import FamilyModel
from .plans import FamilyPlan, Recipe
from .sources import Draw, FamilySource
from .suite import write_store, write_tasks
from .tokenizer import CONTEXT, END, PAD, SIZE, START, train_tokenizer

WINDOW = 256
_ADVICE = "close other programs or find a larger machine, and the training goes on from its last checkpoint"


def train_family(out: Path, plan: FamilyPlan, seed: int, device: str, progress: ProgressCallback) -> dict[str, JSON]:
    """Make the family in `out`, resuming an earlier call that was stopped; return its quality."""
    work = out / "training"
    work.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(work / "tokenizer", plan, seed, progress)
    encoder = SampleEncoder(tokenizer)
    target = new_model(plan.target, seed, device)
    for recipe, draw in ((plan.target, training_sample), (plan.polish, polishing_sample)):
        training(recipe, target, encoder, draw, work / recipe.name, seed).run(progress)
    _save(target, tokenizer, out / "target")
    drafter = new_model(plan.drafter, seed, device)
    training(plan.drafter, drafter, encoder, training_sample, work / "drafter", seed, teacher=target).run(progress)
    _save(drafter, tokenizer, out / "drafter")
    write_tasks(out / "tasks.jsonl", seed, plan.questions)
    write_store(out / "datastore.jsonl", seed)
    first, second, third = (_log(work, recipe) for recipe in (plan.target, plan.polish, plan.drafter))
    logs = {"target": _joined(first, second), "drafter": third}
    (out / "loss.svg").write_text(plot([loss_chart(logs)]), encoding="utf-8")
    return write_cards(out, logs, find_device(device), progress)


def training(
    recipe: Recipe,
    model: Any,
    encoder: SampleEncoder,
    draw: Draw,
    folder: Path,
    seed: int,
    *,
    teacher: Any = None,
    **options: Any,
) -> TrainingLoop:
    """Make the training of a model by its recipe, ready to run; `options` are the loop's."""
    return TrainingLoop(
        TrainingBudget(recipe.steps, recipe.lines, recipe.length),
        FamilyModel(model, recipe, teacher),
        MuonWithAdamW(model, recipe.muon_rate, recipe.adam_rate),
        FamilySource(encoder, draw, recipe, seed),
        folder,
        seed,
        name=recipe.name,
        advice=_ADVICE,
        **options,
    )


def loss_chart(logs: Mapping[str, TrainingLog]) -> Chart:
    """Chart the loss of every model over the tokens that it read."""
    curves = {name: [(entry["tokens"], entry["loss"]) for entry in log] for name, log in logs.items()}
    return Chart("loss, nats per answer token", curves)


def _log(work: Path, recipe: Recipe) -> TrainingLog:
    """Read the log of a training, an entry for every step; a damaged one is refused."""
    path = work / recipe.name / LOG
    log = read_log(path)
    numbers = (entry.get(name) for entry in log for name in ("loss", "seconds", "tokens"))
    if len(log) != recipe.steps or not all(isinstance(number, int | float) for number in numbers):
        raise damaged(path)
    return log


def _joined(first: TrainingLog, second: TrainingLog) -> TrainingLog:
    """Join the logs of two trainings of one model."""
    last = first[-1]
    counted = ("step", "seconds", "tokens")
    return [*first, *(entry | {name: entry[name] + last[name] for name in counted} for entry in second)]


def _tokenizer(folder: Path, plan: FamilyPlan, seed: int, progress: ProgressCallback) -> Any:
    """Load the tokenizer of an earlier call, or train one on samples of all kinds."""
    from transformers import AutoTokenizer

    if (folder / "tokenizer.json").is_file():
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    progress("training the tokenizer", 0.0)
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
    """Make a Mistral with fresh weights."""
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
    """Save an ordinary transformers folder in bfloat16."""
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
