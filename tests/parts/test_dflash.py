"""DFlash's drafter: its arithmetic against the library speculators, and its files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from decoding.errors import ModelError
from decoding.model.decoder import Decoder
from decoding.model.loading import decoder_of
from decoding.parts.dflash import DFlash
from decoding.parts.dflash_config import read_dflash_config
from decoding.parts.dflash_files import load_dflash, read_dflash
from tests import GOLDEN
from tests.families import needs_compiler, tiny
from tests.parts.record_dflash import BLOCK, CASES, HIDDEN, MASK, TAPS, VOCABULARY

DRAFTERS = GOLDEN / "dflash"


@cache
def target(dtype: torch.dtype = torch.float64) -> Decoder:
    sizes = {"hidden_size": HIDDEN, "vocab_size": VOCABULARY, "intermediate_size": 16, "head_dim": 16}
    return decoder_of(tiny("llama", **sizes), dtype)


def recorded(case: str) -> dict[str, torch.Tensor]:
    return load_file(DRAFTERS / case / "recorded.safetensors")


def drafter(case: str, dtype: torch.dtype = torch.float64) -> DFlash:
    """Return the library's drafter, with the embeddings and output layer that it took from its own target."""
    stored, tensors = read_dflash(str(DRAFTERS / case), target(dtype)), recorded(case)
    taken = {"embed_tokens.weight": tensors["embed"], "lm_head.weight": tensors["head"]}
    return DFlash(stored.config, {**stored.weights, **taken}, target(dtype))


# The arithmetic


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("case", CASES)
def test_it_says_what_the_library_says_of_every_block(case: str, dtype: torch.dtype) -> None:
    """After texts read in portions; beyond the window, whose edge follows the root and not the guess."""
    tensors, one = recorded(case), drafter(case, dtype)
    states, guesses = tensors["states"].to(dtype), one.config.guesses
    assert guesses == BLOCK - (case != "anchor")
    session = one.open(64, 8)
    for root, wanted in enumerate(tensors["logits"], start=1):
        session.read(states[session.length : root])
        made = session.logits(session.fill(int(tensors["tokens"][root]), guesses))
        assert torch.allclose(made.float(), wanted[BLOCK - guesses :], atol=3e-5, rtol=1e-4), root
        if root % 3 == 0:  # rejected tokens
            session.read(states[:2])
            session.rewind(root)


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_compiled_code_fills_blocks_that_see_both_ways(case: str) -> None:
    one = drafter(case, torch.float32)
    assert (one.native is None) == any(one.config.causal)


@pytest.mark.parametrize("case", ["plain", "anchor", "window"])
def test_a_shorter_block_is_filled_where_less_may_be_written(case: str) -> None:
    """Where rows see only those before them, its guesses are those of the whole block."""
    tensors, one = recorded(case), drafter(case)
    session = one.open(64, 16)
    session.read(tensors["states"][:9].double())
    for guesses in range(1, one.config.guesses + 1):
        made = session.logits(session.fill(3, guesses))
        assert made.shape == (guesses, len(tensors["head"])) and made.isfinite().all()
        whole = session.logits(session.fill(3, one.config.guesses))
        assert torch.allclose(made, whole[:guesses], atol=1e-9) == (all(one.config.causal) or guesses == len(whole))


@pytest.mark.parametrize("case", ["plain", "anchor", "window", "window-mixed"])
def test_a_block_after_a_length_that_only_the_device_knows(case: str) -> None:
    """The work that is recorded as a graph, as long as no window hides anything."""
    one, states = drafter(case), recorded(case)["states"].double()
    guesses, session = one.config.guesses, one.open(64, 8)
    session.read(states[:2])
    rows = guesses + (not one.config.from_anchor)
    width = session.width(rows)
    ids = torch.tensor([7] + [MASK] * (rows - 1))
    with torch.inference_mode():
        made = session.fill_behind(ids, guesses, torch.tensor([2]), width)
    assert width >= 2 + rows and torch.allclose(made, session.fill(7, guesses), atol=1e-12, rtol=0)
    session.read(states[2:9])
    assert (session.width(rows) == 0) == case.startswith("window")


# Files


def authors_form(**nested: Any) -> dict[str, Any]:
    raw = json.loads((DRAFTERS / "plain" / "config.json").read_text())
    flat = raw["transformer_layer_config"] | {"architectures": ["DFlashDraftModel"], "num_target_layers": 3}
    settings = {"mask_token_id": MASK, "target_layer_ids": [tap - 1 for tap in TAPS], "block_size": BLOCK}
    return {**flat, "dflash_config": {**settings, **nested}}


def test_the_authors_form_is_read_as_well(tmp_path: Path) -> None:
    """Flat configuration, layers numbered by the one that a state leaves, the target's own embedding and output."""
    (tmp_path / "config.json").write_text(json.dumps(authors_form()))
    tensors = load_file(DRAFTERS / "whole" / "model.safetensors")
    save_file(
        {name: each for name, each in tensors.items() if not name.endswith(".bias")}, tmp_path / "model.safetensors"
    )
    one = load_dflash(str(tmp_path), target())
    assert one.layers == tuple(TAPS) and one.config.guesses == BLOCK - 1 and one.vocabulary is None
    rows = torch.ones(1, HIDDEN, dtype=torch.float64)
    assert torch.equal(one.embed(torch.tensor([3])), target().embed(torch.tensor([3])))
    assert torch.equal(one.logits(rows), target().head(rows))


@pytest.mark.parametrize(
    ("nested", "layers", "causal", "window"),
    [
        ({}, {}, False, None),
        ({}, {"layer_types": ["sliding_attention"] * 2, "sliding_window": 5}, True, 5),
        ({"causal": False}, {"layer_types": ["sliding_attention"] * 2, "sliding_window": 5}, False, 5),
        ({"causal": True}, {}, True, None),
        ({"use_swa": True, "swa_window_size": 7}, {}, False, 7),
        ({}, {"sliding_window": 5}, False, None),
    ],
)
def test_which_rows_see_which_is_read_as_in_vllm(
    nested: dict[str, Any], layers: dict[str, Any], causal: bool, window: int | None
) -> None:
    config = read_dflash_config({**authors_form(**nested), "layer_types": ["full_attention"] * 2, **layers})
    assert config.causal == (causal,) * 2 and config.shape.windows == (window,) * 2


def test_a_file_without_the_switch_sees_both_ways_as_in_vllm() -> None:
    raw = json.loads((DRAFTERS / "window" / "config.json").read_text())
    assert read_dflash_config(raw).causal == (True, True)
    del raw["sliding_window_non_causal"]
    assert read_dflash_config(raw).causal == (False, False)


Change = Callable[[dict[str, Any], dict[str, torch.Tensor]], object]


def config(**values: Any) -> Change:
    return lambda raw, tensors: raw.update(values)


def layer(**values: Any) -> Change:
    return lambda raw, tensors: raw["transformer_layer_config"].update(values)


def tensor(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    return lambda raw, tensors: tensors.update({name: change(tensors[name]).contiguous()})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (config(speculators_model_type="dflash2"), "this is a DFlash 2 drafter"),
        (config(speculators_model_type="dspark"), "this is a DSpark drafter"),
        (config(speculators_model_type="eagle3"), "this is an EAGLE-3 drafter: name it with eagle= (--eagle)"),
        (config(dflash_config={"projector_type": "domino"}), "this is a Domino drafter"),
        (config(dflash_config={"projector_type": "dspark"}), "this is a DSpark drafter"),
        (config(transformer_layer_config=None), "no transformer_layer_config"),
        (layer(model_type="llama"), "layers of type 'llama' cannot be run; supported is qwen3"),
        (layer(num_hidden_layers=1000), "1000 layers"),
        (layer(num_hidden_layers=3, layer_types=None), "layers.2.input_layernorm.weight is missing"),
        (layer(hidden_size="16"), "hidden_size"),
        (layer(vocab_size=41), "41 tokens"),
        (config(block_size=1), "block_size in the drafter's config.json must be from 2 to 256, not 1"),
        (config(block_size=10**6), "must be from 2 to 256"),
        (config(block_size=None), "block_size"),
        (config(mask_token_id=None), "mask_token_id in the drafter's config.json is nothing, which is no token of 40"),
        (config(mask_token_id=40), "is 40, which is no token"),
        (config(aux_hidden_state_layer_ids=None), "lacks aux_hidden_state_layer_ids"),
        (config(aux_hidden_state_layer_ids=[2, 0]), "rising"),
        (config(aux_hidden_state_layer_ids=[0, 3]), "before or after the final norm"),
        (config(aux_hidden_state_layer_ids=[0, 9]), "layer 9"),
        (config(aux_hidden_state_layer_ids=[0, 1, 2]), "but the 3 tapped layers ask for"),
        (config(sample_from_anchor="yes"), "sample_from_anchor"),
        (config(sliding_window_non_causal=1), "sliding_window_non_causal"),
        (lambda raw, tensors: tensors.pop("hidden_norm.weight"), "hidden_norm.weight is missing"),
        (lambda raw, tensors: tensors.update({"mask_embedding": torch.zeros(16)}), "mask_embedding is one too many"),
        (tensor("norm.weight", lambda x: x / 0.0), "NaN or infinity"),
        (lambda raw, tensors: [tensors.pop(name) for name in ("d2t", "t2d")][:0], "no d2t"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused_in_one_sentence(tmp_path: Path, change: Change, words: str) -> None:
    place = tmp_path / "plain"
    shutil.copytree(DRAFTERS / "plain", place)
    raw, tensors = json.loads((place / "config.json").read_text()), load_file(place / "model.safetensors")
    (place / "recorded.safetensors").unlink()
    change(raw, tensors)
    (place / "config.json").write_text(json.dumps(raw))
    save_file(tensors, place / "model.safetensors")
    with pytest.raises(ModelError) as caught:
        load_dflash(str(place), target())
    assert words in str(caught.value) and "\n" not in str(caught.value)
