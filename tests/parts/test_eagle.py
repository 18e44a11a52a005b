"""EAGLE-3's drafter: its arithmetic against the library speculators, its trees against chains, and its files."""

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
from decoding.parts.drafter_files import same_model
from decoding.parts.eagle import Eagle
from decoding.parts.eagle_config import read_config, usual_taps
from decoding.parts.eagle_files import load_eagle, read_eagle
from decoding.parts.named import find_part
from lab.training.eagle_folder import save_eagle
from tests import GOLDEN
from tests.families import needs_compiler, tiny
from tests.parts.record_eagle import CASES, DRAFTED, HIDDEN, TAPS, VOCABULARY

DRAFTERS = GOLDEN / "eagle"


@cache
def target(dtype: torch.dtype = torch.float64) -> Decoder:
    sizes = {"hidden_size": HIDDEN, "vocab_size": VOCABULARY, "intermediate_size": 16, "head_dim": 16}
    return decoder_of(tiny("llama", **sizes), dtype)


def drafter(case: str, dtype: torch.dtype = torch.float64) -> Eagle:
    return load_eagle(str(DRAFTERS / case), target(dtype))


def copied(case: str, to: Path) -> Path:
    shutil.copytree(DRAFTERS / case, to, dirs_exist_ok=True)
    return to


# The arithmetic


def written_on(one: Eagle, tokens: list[int], states: torch.Tensor, row: int, steps: int) -> list[torch.Tensor]:
    """Return the logits after a row of the text, and after each of the tokens that follow as guesses."""
    session = one.open(64, 32)
    final, feature = session.read(tokens[: row + 1], states[: row + 1])
    logits, feature = [session.logits(final[-1:])[0]], feature[-1:]
    for step in range(1, steps):
        final, feature = session.grow(tokens[row + step : row + step + 1], feature, [step - 2])
        logits.append(session.logits(final)[0])
    return logits


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])  # torch, and compiled code where it is there
@pytest.mark.parametrize("case", CASES)
def test_it_says_what_the_library_says_step_by_step(case: str, dtype: torch.dtype) -> None:
    """Its logits at every row and every step of writing on, with every flag; a wrong residual would still draft."""
    recorded, one = load_file(DRAFTERS / case / "recorded.safetensors"), drafter(case, dtype)
    tokens, states, wanted = recorded["tokens"].tolist(), recorded["states"].to(dtype), recorded["logits"]
    # What the library trains with lets the window of a guess begin where its row's does, not where it stands itself.
    steps = 1 if one.config.window else len(wanted)
    for row in range(len(tokens) - steps + 1):
        for step, said in enumerate(written_on(one, tokens, states, row, steps)):
            assert torch.allclose(said.float(), wanted[step, row], atol=3e-5, rtol=1e-4), (row, step)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("case", ["llama", "llama-window", "qwen3-all"])
def test_a_tree_is_read_as_its_paths_are(case: str, dtype: torch.dtype) -> None:
    """Level by level, in any portions, beyond the window, and with nothing left of trees that were forgotten."""
    recorded, one = load_file(DRAFTERS / case / "recorded.safetensors"), drafter(case, dtype)
    tokens, states = recorded["tokens"].tolist(), recorded["states"].to(dtype)
    parents, guesses = (-1, -1, 0, 0, 1, 2), (5, 9, 11, 3, 5, 8)
    tree, chain = one.open(64, 8), one.open(64, 8)
    for portion in (4, 8, 1, 7):
        length = tree.length
        _, feature = tree.read(tokens[length : length + portion], states[length : length + portion])
        chain.read(tokens[length : length + portion], states[length : length + portion])
        entering = feature[-1:].expand(2, -1)
        grown, features = tree.grow(guesses[:2], entering, parents[:2])
        more, further = tree.grow(guesses[2:5], features[[0, 0, 1]], parents[2:5])
        last, _ = tree.grow(guesses[5:], further[:1], parents[5:])
        path, latest = [0, 2, 5], feature[-1:]
        for depth, node in enumerate(path):
            row, latest = chain.grow([guesses[node]], latest, [depth - 1])
            wanted = torch.cat((grown, more, last))[node]
            assert torch.allclose(row[0], wanted, atol=1e-5 if dtype == torch.float32 else 1e-9, rtol=0)
        chain.forget()


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_compiled_code_runs_every_kind_of_layer(case: str) -> None:
    assert drafter(case, torch.float32).native is not None


@pytest.mark.parametrize("case", ["llama", "llama-window"])
def test_what_was_rejected_leaves_no_trace(case: str) -> None:
    recorded, one = load_file(DRAFTERS / case / "recorded.safetensors"), drafter(case)
    tokens, states = recorded["tokens"].tolist(), recorded["states"].double()
    whole, parts = one.open(64, 8), one.open(64, 8)
    wanted = torch.cat([whole.read(tokens[i : i + 5], states[i : i + 5])[0] for i in range(0, 20, 5)])
    for start in range(0, 20, 2):
        logits, feature = parts.read(tokens[start : start + 2], states[start : start + 2])
        assert torch.allclose(logits, wanted[start : start + 2], atol=1e-9, rtol=0)
        parts.grow([1, 2, 3], feature[-1:].expand(3, -1), [-1, -1, 0])
        parts.read([7, 7], states[:2])
        parts.rewind(start + 2)
    parts.rewind(0)
    assert parts.length == 0
    assert torch.allclose(parts.read(tokens[:2], states[:2])[0], wanted[:2], atol=1e-9, rtol=0)


# Files


def test_the_authors_form_is_read_as_well(tmp_path: Path) -> None:
    """Flat configuration, `midlayer`, layers numbered by the one that a state leaves, no own embedding."""
    raw = json.loads((DRAFTERS / "llama" / "config.json").read_text())
    flat = raw["transformer_layer_config"] | {
        "architectures": ["LlamaForCausalLMEagle3"],
        "draft_vocab_size": DRAFTED,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [tap - 1 for tap in TAPS[1:]]},
    }
    (tmp_path / "config.json").write_text(json.dumps(flat))
    tensors = load_file(DRAFTERS / "llama" / "model.safetensors")
    renamed = {name.replace("layers.0.", "midlayer."): tensor for name, tensor in tensors.items()}
    renamed["fc.weight"] = renamed["fc.weight"][:, HIDDEN:].contiguous()
    del renamed["embed_tokens.weight"]
    save_file(renamed, tmp_path / "model.safetensors")
    one, other = load_eagle(str(tmp_path), target()), drafter("llama")
    assert one.layers == (2, 3) and other.layers == tuple(TAPS)
    assert one.vocabulary is not None and other.vocabulary is not None
    assert torch.equal(one.vocabulary.ids, other.vocabulary.ids)
    assert torch.equal(one.embed(torch.tensor([3])), target().embed(torch.tensor([3])))


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_is_read_again(case: str, tmp_path: Path) -> None:
    raw, tensors = (
        json.loads((DRAFTERS / case / "config.json").read_text()),
        load_file(DRAFTERS / case / "model.safetensors"),
    )
    config, one = read_config(raw), drafter(case)
    ids = None if one.vocabulary is None else one.vocabulary.ids
    weights = {name: tensor for name, tensor in tensors.items() if name not in ("d2t", "t2d")}
    save_eagle(tmp_path, config, weights, ids, 4)
    saved = load_file(tmp_path / "model.safetensors")
    assert saved.keys() == tensors.keys() and all(torch.equal(saved[name], tensors[name]) for name in tensors)
    assert load_eagle(str(tmp_path), target()).config == config


def test_without_an_output_layer_the_targets_rows_serve(tmp_path: Path) -> None:
    place = copied("llama", tmp_path)
    tensors = load_file(place / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, place / "model.safetensors")
    one, row = load_eagle(str(place), target()), torch.ones(1, HIDDEN, dtype=torch.float64)
    assert one.vocabulary is not None
    assert torch.allclose(one.logits(row), target().head(row)[:, one.vocabulary.ids])


def test_usual_taps_are_those_of_other_programs() -> None:
    assert usual_taps(32) == (2, 16, 29) and usual_taps(30) == (2, 15, 27)
    for layers in range(1, 8):
        taps = usual_taps(layers)
        assert all(one < other for one, other in zip(taps, taps[1:], strict=False)) and 0 < taps[-1] <= layers


def test_models_are_told_by_the_last_part_of_their_names() -> None:
    assert same_model("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B-Instruct")
    assert same_model("HuggingFaceTB/SmolLM2-135M-Instruct", "smollm2") and same_model("/data/pocket/", "pocket")
    assert same_model("assets/pocket/target", "pocket") and not same_model("assets/pocket/target", "other")
    assert not same_model("Qwen/Qwen3-8B", "Qwen/Qwen3-4B")
    assert same_model("Qwen/Qwen3-8B", f"Qwen/Qwen3-8B@{'0' * 40}")


Change = Callable[[dict[str, Any], dict[str, torch.Tensor]], object]


def config(**values: Any) -> Change:
    return lambda raw, tensors: raw.update(values)


def layer(**values: Any) -> Change:
    return lambda raw, tensors: raw["transformer_layer_config"].update(values)


def tensor(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    return lambda raw, tensors: tensors.update({name: change(tensors[name]).contiguous()})


def without(name: str) -> Change:
    return lambda raw, tensors: tensors.__delitem__(name)


def verifier(name: str) -> Change:
    return config(speculators_config={"verifier": {"name_or_path": name}})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (config(speculators_model_type="peagle"), "P-EAGLE"),
        (config(speculators_model_type="dflash"), "DFlash"),
        (config(speculators_model_type="dspark"), "DSpark"),
        (config(speculators_model_type="mtp"), "multi-token"),
        (config(speculators_model_type="eagle"), "EAGLE-2"),
        (config(speculators_model_type=None, architectures=["LlamaForCausalLM"]), "no kind of drafter"),
        (config(speculators_model_type="eagel3"), "names 'eagel3', which is no kind of drafter"),
        (lambda raw, tensors: raw.clear(), "neither speculators_model_type nor architectures"),
        (config(transformer_layer_config=[]), "transformer_layer_config"),
        (layer(model_type="gemma3"), "llama and qwen3"),
        (layer(num_hidden_layers=2), "2 layers"),
        (layer(hidden_size=10**9), "hidden_size"),
        (layer(hidden_size="16"), "hidden_size"),
        (layer(num_attention_heads=3), "heads"),
        (layer(head_dim=7), "head_dim"),
        (layer(hidden_act="gelu"), "silu"),
        (layer(rms_norm_eps=-1.0), "rms_norm_eps"),
        (layer(rms_norm_eps="1e-6"), "rms_norm_eps must be a number, not '1e-6'"),
        (layer(vocab_size=41), "41 tokens"),
        (config(target_hidden_size=32), "size 32"),
        (config(norm_before_fc=True, fc_norm=True), "exclude"),
        (config(norm_output="yes"), "norm_output"),
        (lambda raw, tensors: raw.pop("norm_before_residual"), "speculators takes false and vLLM true"),
        (config(norm_before_residual=None), "lacks norm_before_residual"),
        (config(use_input_layernorm_in_first_layer=False), "use_input_layernorm_in_first_layer"),
        (config(eagle_config={"use_input_layernorm_in_first_layer": False}), "use_input_layernorm_in_first_layer"),
        (config(eagle_config={"use_mtp_layernorm": True}), "use_mtp_layernorm"),
        (config(draft_vocab_size=-3), "draft_vocab_size"),
        (config(draft_vocab_size=41), "drafts 41"),
        (config(eagle_aux_hidden_state_layer_ids=[0, 2, 4]), "layer 4"),
        (config(eagle_aux_hidden_state_layer_ids=[2, 0, 3]), "rising"),
        (config(eagle_aux_hidden_state_layer_ids="all"), "list of layers"),
        (config(eagle_aux_hidden_state_layer_ids=[0, 2]), "but the 2 tapped layers ask for"),
        (config(norm_before_fc=True), "input_norm.weight is missing"),
        (layer(model_type="qwen3"), "_norm.weight is missing"),
        (verifier("Qwen/Qwen3-8B"), "Qwen3-8B"),
        (without("fc.weight"), "fc.weight is missing"),
        (
            lambda raw, tensors: tensors.update({"module.fc.weight": tensors.pop("fc.weight")}),
            "fc.weight is missing, but module.fc.weight is there",
        ),
        (lambda raw, tensors: tensors.update(extra=torch.zeros(2)), "extra is one too many"),
        (tensor("lm_head.weight", lambda x: x[:5]), "lm_head.weight has shape"),
        (tensor("layers.0.self_attn.q_proj.weight", lambda x: x[:, :HIDDEN]), "q_proj"),
        (tensor("norm.weight", lambda x: x / 0.0), "NaN or infinity"),
        (tensor("fc.weight", lambda x: x.to(torch.int8)), "int8"),
        (lambda raw, tensors: [tensors.pop(name) for name in ("d2t", "t2d")][:0], "no d2t"),
        (tensor("d2t", lambda x: x + VOCABULARY), "d2t and t2d"),
        (tensor("d2t", lambda x: x + torch.arange(DRAFTED)), "d2t holds ids instead"),
        (tensor("d2t", lambda x: x.float()), "whole numbers"),
        (tensor("t2d", torch.logical_not), "d2t and t2d"),
        (tensor("t2d", lambda x: x.long()), "true and false"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused_in_one_sentence(tmp_path: Path, change: Change, words: str) -> None:
    place = copied("llama", tmp_path)
    raw, tensors = json.loads((place / "config.json").read_text()), load_file(place / "model.safetensors")
    change(raw, tensors)
    (place / "config.json").write_text(json.dumps(raw))
    save_file(tensors, place / "model.safetensors")
    with pytest.raises(ModelError) as caught:
        load_eagle(str(place), target())
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("first", "window"), [(0, 4), (28, 0), (None, None)])
def test_a_qwen3_layer_slides_as_its_own_rule_says(first: int | None, window: int | None) -> None:
    """Without layer_types, use_sliding_window was passed over, and the drafter saw the whole text."""
    raw = json.loads((DRAFTERS / "qwen3" / "config.json").read_text())
    one = raw["transformer_layer_config"] | {"use_sliding_window": True, "sliding_window": 4}
    del one["layer_types"], one["max_window_layers"]
    raw["transformer_layer_config"] = one | ({} if first is None else {"max_window_layers": first})
    if window is None:
        with pytest.raises(ModelError, match="whether its one layer slides: write layer_types"):
            read_config(raw)
    else:
        assert read_config(raw).window == window


def test_an_empty_list_of_layers_leaves_them_open_as_in_vllm() -> None:
    raw = json.loads((DRAFTERS / "llama" / "config.json").read_text())
    assert read_config(raw | {"eagle_aux_hidden_state_layer_ids": []}).taps is None
    nested = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2]}}
    assert read_config(raw | {"eagle_aux_hidden_state_layer_ids": []} | nested).taps == (2, 3)


def test_an_examination_opens_a_drafter_whose_residual_nobody_names(tmp_path: Path) -> None:
    place = copied("llama", tmp_path)
    raw = json.loads((place / "config.json").read_text())
    del raw["norm_before_residual"]
    (place / "config.json").write_text(json.dumps(raw))
    assert not read_eagle(str(place), target(), lenient=True).config.norm_before_residual


def test_pickles_are_named_and_not_opened(tmp_path: Path) -> None:
    place = copied("llama", tmp_path)
    (place / "model.safetensors").unlink()
    (place / "recorded.safetensors").unlink()
    (place / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'exit'\ntR.")
    with pytest.raises(ModelError, match="pickled.*pytorch_model.bin"):
        load_eagle(str(place), target())


def test_damaged_files_and_wrong_places_are_refused(tmp_path: Path) -> None:
    place = copied("llama", tmp_path / "cut")
    (place / "model.safetensors").write_bytes((place / "model.safetensors").read_bytes()[:900])
    with pytest.raises(ModelError, match="damaged"):
        load_eagle(str(place), target())
    with pytest.raises(ModelError, match="no config.json"):
        load_eagle(str(tmp_path), target())
    for name in (str(place / "config.json"), "no-such", "x" * 5000):
        with pytest.raises(ModelError):
            find_part("eagle", name, lambda what, share: None, download=False)
    with pytest.raises(ModelError, match="not on this machine"):
        find_part("eagle", "org/no-such-drafter", lambda what, share: None, download=False)
    assert find_part("eagle", str(place), lambda what, share: None) == str(place)
