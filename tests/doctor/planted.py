"""Faults that are planted into good drafters, and drafters in which there is none: what the doctor must tell apart."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file, save_file

from analysis.doctor.drafters import open_drafter
from analysis.doctor.examine import ExaminationReport, examine
from analysis.doctor.probes import Examined
from analysis.doctor.texts import Text, write_texts
from analysis.plain_folder import unpack_folder
from analysis.prompts.tasks import ENGLISH, read_tasks, sample, suite
from analysis.reporting import finish
from decoding import Engine, load
from decoding.embedded import FOLDERS, PARTS, drafter_of

from .breaks import (
    Break,
    absolute,
    base,
    blocks,
    both,
    by_heads,
    cast,
    clipped,
    dimension_first,
    empty_rows,
    entry,
    exchanged,
    first_two,
    flushed,
    half_random,
    halves,
    heads_in,
    in_heads,
    interleaved,
    layer,
    mapped,
    more_heads,
    moved_norms,
    noisy,
    on,
    on_exactly,
    only,
    only_heads,
    random,
    rounded,
    same,
    shuffled,
    swapped,
    times,
    transpose,
    turned,
    without,
    without_columns,
)

Size = tuple[int, int]  # prompts, and tokens after each


class Planted(NamedTuple):
    """A drafter that is changed."""

    model: str
    kind: str
    name: str
    change: Break
    flags: tuple[str, ...] = ()  # by any of which a fault is named
    seen: str = ""  # what the verdict tells

    @property
    def id(self) -> str:
        """What a test is called."""
        return f"{self.model}-{self.kind}-{self.name}".replace(" ", "_")


def silent(what: str, share: float) -> None:
    """Report no progress."""


P, S = "pocket", "smollm2"
QK, QKV, NORMS = (
    ("q_proj", "k_proj"),
    ("q_proj", "k_proj", "v_proj"),
    ("input_layernorm", "hidden_norm", "post_attention_layernorm"),
)
ROTATED = by_heads(64, lambda heads: heads.roll(1, 0))
LINEAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}
FAULTS = [
    Planted(P, "eagle", "d2t shuffled", mapped(shuffled(0)), ("vocabulary_map",)),
    Planted(P, "eagle", "d2t reversed", mapped(lambda ids: ids.flip(0)), ("vocabulary_map",)),
    Planted(P, "eagle", "halves of qkv", on(QKV, halves), ("qkv_halves",)),
    Planted(P, "eagle", "q heads rotated", on(["q_proj"], by_heads(64, lambda h: h.roll(1, 0))), ("q_heads",)),
    Planted(P, "eagle", "eps 1", layer(rms_norm_eps=1.0), ("rms_norm_eps",)),
    Planted(P, "eagle", "hidden norm times 3", on(["hidden_norm"], times(3)), ("norm_scale",)),
    Planted(P, "eagle", "input norm times 3", on(["input_layernorm"], times(3)), ("norm_scale",)),
    Planted(P, "eagle", "mlp norm times 3", on(["post_attention_layernorm"], times(3)), ("norm_scale",)),
    Planted(P, "eagle", "two q heads swapped", on(["q_proj"], by_heads(64, first_two)), ("q_heads", "o_heads")),
    Planted(P, "eagle", "3 bits", rounded(3), ("rounding",)),
    Planted(P, "eagle", "fc reversed", on(["fc"], blocks((2, 1, 0))), ("fc_blocks",)),
    Planted(P, "eagle", "q k interleaved", on(QK, interleaved(64)), ("rotary_order",)),
    Planted(P, "eagle", "gate up swapped", swapped("gate_proj", "up_proj"), ("gate_up",)),
    Planted(P, "eagle", "lm_head rolled", on(["lm_head"], lambda w: w.roll(1, 0)), ("vocabulary_map", "output")),
    Planted(P, "eagle", "o transposed", on(["o_proj"], transpose), ("transposed",)),
    Planted(P, "eagle", "down negated", on(["down_proj"], times(-1)), ("sign",)),
    Planted(P, "eagle", "d2t absolute", absolute, ("vocabulary_map",)),
    Planted(
        P, "eagle", "o heads rotated", on(["o_proj"], by_heads(64, lambda h: h.roll(1, 0), 1)), ("o_heads", "q_heads")
    ),
    Planted(P, "eagle", "v heads swapped", on(["v_proj"], by_heads(64, first_two)), ("v_heads", "o_heads")),
    Planted(P, "eagle", "k heads swapped", on(["k_proj"], by_heads(64, first_two)), ("k_heads", "q_heads")),
    Planted(
        P,
        "eagle",
        "embedding shuffled",
        lambda c, w: w.update({"embed_tokens.weight": shuffled(0)(engine_of(P).model.embeddings()[0])}),
        ("embedding",),
    ),
    Planted(P, "eagle", "lm_head shuffled", on(["lm_head"], shuffled(0)), ("vocabulary_map", "output")),
    Planted(P, "eagle", "fc random", on(["fc"], random)),
    Planted(P, "eagle", "down columns shuffled", on(["down_proj"], shuffled(1))),
    Planted(P, "eagle", "2 bits in groups", rounded(2, 32), ("rounding",)),
    Planted(P, "eagle", "attention random", on((*QKV, "o_proj"), random)),
    Planted(P, "eagle", "rotary base 500", layer(rope_parameters=base(500.0)), ("rope_theta",)),
    Planted(P, "eagle", "gate random", on(["gate_proj"], random)),
    Planted(P, "eagle", "fc in order 2 3 1", on(["fc"], blocks((1, 2, 0))), ("fc_blocks",)),
    Planted(P, "eagle", "fc rows rolled", on(["fc"], lambda w: w.roll(1, 0))),
    Planted(P, "eagle", "v rows shuffled", on(["v_proj"], shuffled(0))),
    Planted(P, "eagle", "taps too high", entry(eagle_aux_hidden_state_layer_ids=[2, 4, 6]), ("taps",)),
    Planted(P, "eagle", "residual", entry(norm_before_residual=False), ("norm_before_residual",)),
    Planted(P, "eagle", "final norm times 3", on_exactly("norm.weight", times(3)), ("logit_scale",)),
    Planted(S, "eagle", "gate up swapped", swapped("gate_proj", "up_proj"), ("gate_up",)),
    Planted(S, "eagle", "halves of qkv", on(QKV, halves), ("qkv_halves",)),
    Planted(S, "eagle", "3 bits", rounded(3), ("rounding",)),
    Planted(P, "medusa", "transposed", on(["linear"], transpose), ("transposed",)),
    Planted(P, "medusa", "negated", on(["linear"], times(-1)), ("sign",)),
    Planted(P, "medusa", "heads shuffled", heads_in([2, 0, 3, 1]), ("head_order",)),
    Planted(P, "medusa", "3 bits", rounded(3), ("rounding",)),
    Planted(P, "medusa", "rows rolled", on(["linear"], lambda w: w.roll(1, 0))),
    Planted(P, "medusa", "random", on(["linear"], random)),
    Planted(P, "medusa", "2 bits", rounded(2), ("rounding",)),
    Planted(S, "medusa", "heads moved", heads_in([1, 2, 3, 0]), ("head_order",)),
    Planted(S, "medusa", "transposed", on(["linear"], transpose), ("transposed",)),
    Planted(P, "kangaroo", "exit layer 1", entry(exit_layer=1), ("exit_layer",)),
    Planted(P, "kangaroo", "gate up swapped", swapped("gate_proj", "up_proj"), ("gate_up",)),
    Planted(P, "kangaroo", "o transposed", on(["o_proj"], transpose), ("transposed",)),
    Planted(P, "kangaroo", "q k interleaved", on(QK, interleaved(64)), ("rotary_order",)),
    Planted(P, "kangaroo", "q heads rotated", on(["q_proj"], by_heads(64, lambda h: h.roll(1, 0))), ("q_heads",)),
    Planted(P, "kangaroo", "input norm times 3", on(["input_layernorm"], times(3)), ("norm_scale",)),
    Planted(P, "kangaroo", "3 bits", rounded(3), ("rounding",)),
    Planted(P, "kangaroo", "attention random", on((*QKV, "o_proj"), random)),
    Planted(P, "kangaroo", "eps 1", entry(eps=1.0), ("rms_norm_eps",)),
    Planted(P, "kangaroo", "final norm of ones", on_exactly("norm.weight", torch.ones_like), ("norm.weight",)),
    Planted(S, "kangaroo", "gate up swapped", swapped("gate_proj", "up_proj"), ("gate_up",)),
    Planted(S, "kangaroo", "q k interleaved", on(QK, interleaved(64)), ("rotary_order",)),
    Planted(P, "draft", "gate up swapped", swapped("gate_proj", "up_proj"), ("gate_up",)),
    Planted(P, "draft", "q k interleaved", on(QK, interleaved(32)), ("rotary_order",)),
    Planted(
        P, "draft", "q heads rotated", on(["q_proj"], by_heads(32, lambda h: h.roll(1, 0))), ("q_heads", "o_heads")
    ),
    Planted(P, "draft", "o transposed", on(["o_proj"], transpose), ("transposed",)),
    Planted(P, "draft", "3 bits", only(".layers.", rounded(3)), ("rounding",)),
    Planted(P, "draft", "eps 1", entry(rms_norm_eps=1.0), ("rms_norm_eps",)),
    Planted(P, "draft", "input norm times 3", on(["input_layernorm"], times(3)), ("norm_scale",)),
    Planted(P, "draft", "attention random", on((*QKV, "o_proj"), random)),
    Planted(P, "draft", "ids too large", on(["embed_tokens"], lambda w: w.roll(1, 0)), ("id_offset",)),
    Planted(P, "draft", "embedding shuffled", on(["embed_tokens"], shuffled(0))),
    Planted(S, "draft", "q heads rotated", on(["q_proj"], by_heads(32, lambda h: h.roll(1, 0))), ("q_heads",)),
    Planted(S, "draft", "gate up swapped", swapped("gate_proj", "up_proj"), ("gate_up",)),
    Planted(S, "draft", "q k interleaved", on(QK, interleaved(32)), ("rotary_order",)),
    Planted(P, "eagle", "rotary scaling", layer(rope_parameters=LINEAR), ("rope_scaling",)),
    Planted(P, "draft", "rotary scaling", entry(rope_parameters=LINEAR), ("rope_scaling",)),
    Planted(P, "dflash", "taps too low", entry(aux_hidden_state_layer_ids=[0, 2, 4]), ("taps",)),
    Planted(P, "dflash", "taps too high", entry(aux_hidden_state_layer_ids=[2, 4, 6]), ("taps",)),
    Planted(P, "dflash", "last tap too low", entry(aux_hidden_state_layer_ids=[1, 3, 4]), ("taps",)),
    Planted(P, "dflash", "another mask token", entry(mask_token_id=4095), ("mask_token_id",)),
    Planted(P, "dflash", "anchor guesses", entry(sample_from_anchor=True), ("sample_from_anchor",)),
    Planted(P, "dflash", "causal", entry(sliding_window_non_causal=False), ("causal",)),
    Planted(P, "dflash", "window 4", layer(sliding_window=4), ("window",)),
    Planted(P, "dflash", "rotary base 50", layer(rope_parameters=base(50.0)), ("rope_theta",)),
    Planted(P, "dflash", "rotary scaling", layer(rope_parameters=LINEAR), ("rope_scaling",)),
    Planted(P, "dflash", "eps 1", layer(rms_norm_eps=1.0), ("rms_norm_eps",)),
    Planted(P, "dflash", "hidden norm times 3", on_exactly("hidden_norm.weight", times(3)), ("norm_scale",)),
    Planted(P, "dflash", "final norm times 3", on_exactly("norm.weight", times(3)), seen="logits times 0.333"),
    Planted(P, "dflash", "norms less 1", moved_norms(-1.0), ("norm_offset",)),
    Planted(P, "dflash", "fc reversed", on(["fc"], blocks((2, 1, 0))), ("fc_blocks",)),
    Planted(P, "dflash", "fc negated", on(["fc"], times(-1)), ("sign",)),
    Planted(P, "dflash", "q k interleaved", on(QK, interleaved(64)), ("rotary_order",)),
    Planted(
        P, "dflash", "q heads rotated in layer 0", only("layers.0.", on(["q_proj"], ROTATED)), ("q_heads", "o_heads")
    ),
    Planted(P, "dflash", "gate up swapped", swapped("gate_proj", "up_proj"), ("gate_up",)),
    Planted(
        P, "dflash", "gate up swapped in layer 1", only("layers.1.", swapped("gate_proj", "up_proj")), ("gate_up",)
    ),
    Planted(P, "dflash", "k v swapped", swapped("k_proj", "v_proj"), ("k_v",)),
    Planted(P, "dflash", "o transposed in layer 0", only("layers.0.", on(["o_proj"], transpose)), ("transposed",)),
    Planted(P, "dflash", "down negated in layer 1", only("layers.1.", on(["down_proj"], times(-1))), ("sign",)),
    Planted(P, "dflash", "layers swapped", exchanged("layers.0.", "layers.1."), ("layer_order",)),
    Planted(P, "dflash", "lm_head rolled", on(["lm_head"], lambda w: w.roll(1, 0)), ("vocabulary_map", "output")),
    Planted(P, "dflash", "d2t shuffled", mapped(shuffled(0)), ("vocabulary_map",)),
    Planted(P, "dflash", "3 bits", rounded(3), ("rounding",)),
    Planted(P, "dflash", "fc random", on(["fc"], random)),
    Planted(P, "dflash", "attention random", on((*QKV, "o_proj"), random)),
    Planted(P, "dflash", "states of another revision", on(["fc"], turned)),
    # Those from here on were chosen before the doctor had seen any of them.
    Planted(P, "eagle", "k v swapped", swapped("k_proj", "v_proj"), ("k_v",)),
    Planted(P, "kangaroo", "k v swapped", swapped("k_proj", "v_proj"), ("k_v",)),
    Planted(P, "draft", "k v swapped", swapped("k_proj", "v_proj"), ("k_v",)),
    Planted(P, "eagle", "heads of half the size", more_heads, ("head_dim",)),
    Planted(P, "draft", "final norm of ones", on_exactly("model.norm.weight", torch.ones_like), ("model.norm.weight",)),
    Planted(P, "eagle", "heads split by dimension", on(QKV, dimension_first(64))),
    Planted(P, "eagle", "states of another revision", on(["fc"], turned)),
    Planted(P, "kangaroo", "k interleaved alone", on(["k_proj"], interleaved(64)), ("rotary_order",)),
    Planted(P, "kangaroo", "exit layer 4", entry(exit_layer=4)),
    Planted(P, "medusa", "labels one too far", heads_in([1, 2, 3, 3]), ("hidden_place", "head_order")),
    Planted(P, "medusa", "times 3", on(["linear"], times(3))),
    Planted(P, "draft", "embedding scaled", on(["embed_tokens"], times(16))),
]
HEALTHY = [
    *(Planted(P, kind, "as it is", same) for kind in ("eagle", "dflash", "medusa", "kangaroo", "draft")),
    *(Planted(S, kind, "as it is", same) for kind in ("eagle", "medusa", "kangaroo", "draft")),
    Planted(S, "draft", "all tokens", same),
    Planted(P, "eagle", "float16", cast(torch.float16)),
    Planted(P, "eagle", "float32", cast(torch.float32)),
    Planted(P, "eagle", "8 bits", rounded(8)),
    Planted(P, "eagle", "noise of 10%", noisy(0.1)),
    Planted(P, "eagle", "noise of 20%", noisy(0.2)),
    Planted(P, "eagle", "the target's output layer", without("lm_head.weight")),
    Planted(P, "dflash", "float16", cast(torch.float16)),
    Planted(P, "dflash", "8 bits", rounded(8)),
    Planted(P, "dflash", "noise of 10%", noisy(0.1)),
    Planted(P, "dflash", "the target's output layer", without("lm_head.weight")),
    Planted(P, "kangaroo", "float16", cast(torch.float16)),
    Planted(P, "kangaroo", "noise of 10%", noisy(0.1)),
    Planted(P, "medusa", "float16", cast(torch.float16)),
    Planted(P, "medusa", "noise of 20%", noisy(0.2)),
    Planted(
        P,
        "medusa",
        "one head",
        lambda c, w: (
            [w.pop(n) for n in list(w) if n[0] != "0"] and c.pop("accuracies") and c.update(medusa_num_heads=1)
        ),
    ),
    Planted(P, "draft", "noise of 10%", only(".layers.", noisy(0.1))),
    Planted(P, "draft", "float32", cast(torch.float32)),
    Planted(S, "eagle", "noise of 10%", noisy(0.1)),
    Planted(S, "medusa", "8 bits", rounded(8)),
    Planted(
        P,
        "eagle",
        "embedding scaled before a norm",
        lambda c, w: w.update({"embed_tokens.weight": engine_of(P).model.embeddings()[0] * 16}),
    ),
    Planted(P, "kangaroo", "8 bits", rounded(8)),
    Planted(P, "draft", "noise of 20%", only(".layers.", noisy(0.2))),
    Planted(P, "medusa", "two heads", both(only_heads(2), entry(medusa_num_heads=2))),
    Planted(P, "eagle", "norms that are alike swapped", swapped("input_layernorm", "hidden_norm")),
]


AT = "layers.0."
Q_PROJ = f"{AT}self_attn.q_proj.weight"
# Chosen, as the drafters of TRAINED, after all thresholds, and examined once before these caused any change: 9 were
# named and 4 called poor. Those with columns of zeros were called healthy, and so were two norms that took each other's
# place, which cost no guess.
HELD_OUT = [
    Planted(P, "eagle", "gate negated", on(["gate_proj"], times(-1)), ("sign",)),
    Planted(P, "eagle", "up negated", on(["up_proj"], times(-1)), ("sign",)),
    Planted(P, "eagle", "q without features", on(["q_proj"], without_columns(slice(3, 6))), (Q_PROJ,)),
    Planted(P, "eagle", "fc without its third block", on(["fc"], without_columns(slice(4, 6))), ("fc.weight",)),
    Planted(P, "eagle", "o times 4", on(["o_proj"], times(4))),
    Planted(P, "medusa", "two heads swapped", heads_in([1, 0, 2, 3]), ("head_order",)),
    Planted(P, "medusa", "columns rolled", on(["linear"], lambda w: w.roll(1, 1))),
    Planted(P, "medusa", "half of the columns", on(["linear"], without_columns(slice(0, 3)))),
    Planted(
        P,
        "kangaroo",
        "input norm of ones",
        on(["input_layernorm"], torch.ones_like),
        ("input_layernorm.weight",),
    ),
    Planted(P, "kangaroo", "down negated", on(["down_proj"], times(-1)), ("sign",)),
    Planted(P, "kangaroo", "k heads swapped", on(["k_proj"], by_heads(64, first_two)), ("k_heads", "q_heads")),
    Planted(S, "draft", "layers swapped", exchanged("model.layers.0.", "model.layers.1."), ("layer_order",)),
    Planted(P, "draft", "o negated", on(["o_proj"], times(-1)), ("sign",)),
    Planted(P, "draft", "rotary base 200", entry(rope_parameters=base(200.0)), ("rope_theta",)),
    Planted(P, "draft", "down rows rolled", on(["down_proj"], lambda w: w.roll(1, 0))),
]
# Those that others found to be called healthy, or to be given a wrong remedy.
LATER = [
    Planted(P, "medusa", "head 2 random", in_heads([2], random), seen="head 2: right at"),
    Planted(P, "medusa", "head 4 random", in_heads([4], random), seen="head 4: right at"),
    Planted(P, "medusa", "head 4 of zeros", in_heads([4], torch.zeros_like), ("blocks",), "head 4 are all zeros"),
    Planted(P, "medusa", "three heads random", in_heads([2, 3, 4], random), seen="heads 2, 3 and 4"),
    Planted(P, "medusa", "all heads equal", heads_in([0, 0, 0, 0]), ("blocks",), "heads 1, 2, 3, 4 hold the same"),
    Planted(P, "medusa", "head 3 half random", in_heads([3], half_random), seen="head 3: right at"),
    Planted(P, "eagle", "q features random", on(["q_proj"], half_random), seen="the feature's part of q"),
    Planted(P, "eagle", "v features random", on(["v_proj"], half_random), seen="the feature's part of v"),
    # Trained for another checkpoint, whose states are in another basis.
    Planted(P, "medusa", "another checkpoint", on(["linear"], turned)),
    Planted(P, "kangaroo", "another checkpoint", on((*QKV, "gate_proj", "up_proj"), turned)),
    Planted(P, "draft", "another checkpoint", on(["embed_tokens"], lambda w: turned(w, w.shape[1]))),
    # Those from here on were called healthy, or mended by what only hid them.
    Planted(P, "eagle", "a q head of zeros", on(["q_proj"], empty_rows(0.25)), (f"{Q_PROJ}",)),
    Planted(P, "draft", "a q head of zeros", on(["q_proj"], empty_rows(1 / 6)), (f"model.{Q_PROJ}",)),
    Planted(P, "kangaroo", "a fifth of o of zeros", on(["o_proj"], empty_rows(0.2)), ("self_attn.o_proj.weight",)),
    Planted(P, "eagle", "four of five numbers lost", flushed(0.8), ("range",), "small ones were lost"),
    Planted(P, "medusa", "four of five numbers lost", flushed(0.8), ("range",), "small ones were lost"),
    Planted(P, "eagle", "feed-forward part clipped", on(["gate_proj", "up_proj"], clipped), ("range",), "clipped"),
    Planted(P, "eagle", "norms less 1", moved_norms(-1.0), ("norm_offset",)),
    Planted(P, "draft", "norms more 1", moved_norms(1.0), ("norm_offset",)),
    Planted(P, "kangaroo", "norms less 1", moved_norms(-1.0), ("norm_offset",)),
    Planted(P, "kangaroo", "q o swapped", swapped("q_proj", "o_proj"), ("q_o",)),
]


class Trained(NamedTuple):
    """A drafter of so many steps of training, by this seed."""

    kind: str
    seed: int
    steps: int

    @property
    def id(self) -> str:
        """What a test is called."""
        return f"{self.kind}-seed_{self.seed}-{self.steps}_steps"


TRAINED = [  # the second of them was called poor at first
    Trained("eagle", 7, 50),
    Trained("eagle", 8, 150),
    Trained("medusa", 5, 60),
    Trained("medusa", 10, 200),
    Trained("kangaroo", 2, 40),
    Trained("kangaroo", 6, 100),
    Trained("draft", 3, 150),
]
_FILES = {"eagle": "model", "dflash": "model", "medusa": "medusa_lm_head", "kangaroo": "adapter", "draft": "model"}
FEW: Size = (7, 20)
_SOME, _MANY = (8, 32), (24, 48)


@cache
def engine_of(model: str) -> Engine:
    """The target."""
    return load(model, device="cpu")


def size_of(planted: Planted) -> Size:
    """How many texts an examination takes: as many as the command's for an adapter, which is quick and shows little."""
    return _MANY if planted.kind == "kangaroo" and planted.model == P else _SOME


@cache
def texts_for(model: str, size: Size, seed: int = 0) -> list[Text]:
    """The target's texts after some prompts, with what enters all layers that a drafter of its own may read."""
    engine = engine_of(model)
    prompts, tokens = size
    count = engine.model.shape.layers  # type: ignore[attr-defined]
    layers = range(count + 1) if model == P else sorted({*range(4), *range(14, 17), *range(26, 29), count})
    tasks = sample(read_tasks(suite(P if model == P else ENGLISH)), prompts, seed)
    return finish(write_texts(engine, tasks, tokens, [*layers]), silent)


def folder_of(model: str, kind: str) -> Path:
    """The folder of the drafter that is shipped."""
    return FOLDERS[drafter_of(model) or ""] if kind == "draft" else PARTS[model][kind]


def plant(planted: Planted, to: Path) -> Path:
    """Write the changed copy. The card stays behind: a stranger's drafter has none."""
    to.mkdir(parents=True, exist_ok=True)
    unpack_folder(folder_of(planted.model, planted.kind), to)
    files = [path for path in to.glob("*.safetensors") if path.name != "vocabulary.safetensors"]
    weights = {name: weight for path in files for name, weight in load_file(path).items()}
    config = json.loads((to / "config.json").read_text())
    for path in (*files, *to.glob("*.index.json"), to / "README.md"):
        path.unlink(missing_ok=True)
    if planted.name == "all tokens":
        (to / "vocabulary.safetensors").unlink()
    planted.change(config, weights)
    (to / "config.json").write_text(json.dumps(config))
    held = {name: weight.contiguous().clone() for name, weight in weights.items()}
    save_file(held, to / f"{_FILES[planted.kind]}.safetensors", {"format": "pt"})
    return to


def opened(folder: Path, kind: str, model: str = P) -> Examined:
    """A drafter under examination."""
    return open_drafter(engine_of(model), kind, str(folder), silent)


def report_on(examined: Examined, size: Size = FEW, seed: int = 0, model: str = P) -> ExaminationReport:
    """What the doctor finds."""
    return finish(examine(examined, texts_for(model, size, seed), model, seed), silent)
