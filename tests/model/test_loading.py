"""Model folders: good ones load as transformers reads them, bad ones are refused in one sentence."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from decoding.errors import ModelError
from decoding.model import precision
from decoding.model.decoder import Decoder
from decoding.model.loading import decoder_of, load_model
from tests.families import FAMILIES, ROPES, tiny
from tests.model.texts import chain, text


def logits(decoder: Decoder) -> torch.Tensor:
    session = decoder.open(64, 64)
    session.reset(40)
    return session.read(text(40), chain(40)).logits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a good folder to be spoilt."""
    tiny("mistral").save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [*FAMILIES, *ROPES])
def test_round_trip(name: str, tmp_path: Path) -> None:
    """What is read from files must be what is taken from memory, in one file and in several."""
    model = tiny(name)
    model.save_pretrained(tmp_path / "one")
    model.save_pretrained(tmp_path / "many", max_shard_size="20KB")
    assert (tmp_path / "one" / "model.safetensors").is_file()
    assert (tmp_path / "many" / "model.safetensors.index.json").is_file()
    memory = decoder_of(model)
    for part in ("one", "many"):
        loaded = load_model(str(tmp_path / part), dtype="float32")
        torch.testing.assert_close(logits(loaded), logits(memory), rtol=0.0, atol=0.0)
        assert loaded.card.parameters == memory.card.parameters == sum(p.numel() for p in model.parameters())
        assert (loaded.card.family, loaded.card.vocabulary) == (model.config.model_type, 67)
        assert loaded.card.context == {"linear": 1024, "dynamic": 128}.get(name, model.config.max_position_embeddings)


def test_a_head_that_is_stored_beside_tied_embeddings_is_used(folder: Path) -> None:
    """Some trainers save an untied head under a configuration that says tied; the file is right."""
    change(folder, tie_word_embeddings=True)
    loaded = load_model(str(folder), dtype="float32")
    torch.testing.assert_close(logits(loaded), logits(decoder_of(tiny("mistral"))))


def test_the_hash_tells_weights_apart(folder: Path) -> None:
    """A trace names its model by the hash: another weight, or another configuration, is another model."""
    first = load_model(str(folder)).card.hash
    assert first == load_model(str(folder), dtype="bfloat16").card.hash
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.2.mlp.down_proj.weight"][0, 0] += 1
    save_file(tensors, folder / "model.safetensors")
    second = load_model(str(folder)).card.hash
    change(folder, rms_norm_eps=1e-3)
    third = load_model(str(folder)).card.hash
    assert len({first, second, third}) == 3
    assert len(first) == 64


def test_progress_is_told(folder: Path) -> None:
    """Loading a large model takes a minute; a screen needs shares that grow to one."""
    got: list[float] = []
    load_model(str(folder), progress=lambda what, share: got.append(share))
    assert got == sorted(got)
    assert got[-1] == 1.0


def test_dtypes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """bfloat16 on a processor without it is slow, float32 on one with it half as fast."""
    for name, dtype in precision.DTYPES.items():
        assert load_model(str(folder), dtype=name).dtype == dtype
    for has, dtype in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(precision, "_processor_has_bfloat16", lambda has=has: has)
        assert load_model(str(folder)).dtype == dtype


def change(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def spoil_tensor(name: str, tensor: torch.Tensor | None) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        tensors.pop(name)
        save_file({**tensors, name: tensor} if tensor is not None else tensors, folder / "model.safetensors")

    return spoil


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def lie_about_size(folder: Path) -> None:
    header = json.dumps({"model.norm.weight": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 64)


def index(*names: object) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        places = {f"weight{i}": name for i, name in enumerate(names)}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))

    return spoil


def twice(folder: Path) -> None:
    (folder / "second.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    index("model.safetensors", "second.safetensors")(folder)


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def write(name: str, content: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(content) and None


NORM = "model.norm.weight"
BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "no config.json"),
    "broken config": (write("config.json", '{"model_type": "llama",\n}'), "is no JSON from line 2, column 1 on"),
    "config is a list": (write("config.json", "[]"), "no JSON object"),
    "deep config": (write("config.json", "[" * 100_000), "is no JSON"),
    "binary config": (lambda folder: (folder / "config.json").write_bytes(b"\xff\xfe\x00"), "is no JSON"),
    "no family": (lambda folder: change(folder, model_type=None), "knows no models of type 'None'"),
    "text for a size": (lambda folder: change(folder, num_attention_heads="4"), "must be a whole number, not '4'$"),
    "activation": (lambda folder: change(folder, hidden_act="gelu"), "supported is silu"),
    "quantised": (lambda folder: change(folder, quantization_config={"quant_method": "gptq"}), "quantised"),
    "rope": (lambda folder: change(folder, rope_parameters={"rope_type": "spiral", "rope_theta": 1e4}), "supported"),
    "rope theta": (
        lambda folder: change(folder, rope_parameters={"rope_type": "default", "rope_theta": 0.0}),
        "rope_theta.*above 0",
    ),
    "a billion layers": (lambda folder: change(folder, num_hidden_layers=10**9), "no model has"),
    "absurd width": (lambda folder: change(folder, intermediate_size=10**12), "no model has"),
    "more layers than stored": (lambda folder: change(folder, num_hidden_layers=4000), "layers.3.* is missing"),
    "no heads": (lambda folder: change(folder, num_attention_heads=0), "config.json"),
    "heads that do not divide": (lambda folder: change(folder, num_key_value_heads=3), "cannot share"),
    "other width": (lambda folder: change(folder, hidden_size=32), "has shape"),
    "missing tensor": (spoil_tensor(NORM, None), "model.norm.weight is missing"),
    "mis-shaped tensor": (spoil_tensor(NORM, torch.ones(31)), r"shape \[31\].*\[64\]"),
    "integer tensor": (spoil_tensor(NORM, torch.ones(64, dtype=torch.int8)), "quantised"),
    "cut short": (cut, "damaged or cut short"),
    "empty weights": (lambda folder: (folder / "model.safetensors").write_bytes(b""), "damaged or cut short"),
    "lying header": (lie_about_size, "damaged or cut short"),
    "pickles only": (pickled, "convert them to safetensors"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "no model.safetensors"),
    "twice": (twice, "two files"),
    "index upwards": (index("../model.safetensors"), "outside"),
    "index absolute": (index("/etc/passwd.safetensors"), "outside"),
    "index backslash": (index("..\\x.safetensors"), "outside"),
    "index to pickle": (index("model.bin"), "outside|not safetensors"),
    "index of nonsense": (index(3), "weight_map"),
    "index to nothing": (index("gone.safetensors"), "is missing"),
    "index broken": (write("model.safetensors.index.json", "{"), "is no JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_folders_are_refused_in_one_sentence(name: str, folder: Path) -> None:
    """A stranger's folder may hold anything; the user must be shown what is wrong, and no traceback of a library."""
    spoil, sentence = BAD[name]
    spoil(folder)
    with pytest.raises(ModelError, match=sentence) as caught:
        load_model(str(folder), dtype="float32")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


HOSTILE = (None, -1, 0, 1.5, True, "x", [], {}, 10**30, float("nan"))


@pytest.mark.parametrize("field", ["hidden_size", "head_dim", "rms_norm_eps", "vocab_size", "sliding_window"])
@pytest.mark.parametrize(
    "more", ["num_hidden_layers", "rope_parameters", "max_position_embeddings", "num_attention_heads"]
)
def test_hostile_values_load_or_are_refused(field: str, more: str, folder: Path) -> None:
    """Whatever is in config.json, nothing but ModelError comes out."""
    good = json.loads((folder / "config.json").read_text())
    for number, value in enumerate(HOSTILE):
        other = HOSTILE[(number * 3 + len(field)) % len(HOSTILE)]
        (folder / "config.json").write_text(
            json.dumps({**good, field: value, more: other if number % 2 else good[more]})
        )
        try:
            load_model(str(folder), dtype="float32")
        except ModelError as error:
            assert "\n" not in str(error)


STRANGE = (*HOSTILE, [1], 1e308, -1e308, 1e-320, 10**400, float("inf"))
ROPE_FIELDS = (
    *("partial_rotary_factor", "rope_theta", "factor", "original_max_position_embeddings", "attention_factor"),
    *("beta_fast", "mscale", "low_freq_factor", "short_factor", "long_factor", "rope_type"),
)


@pytest.mark.parametrize("name", [*ROPES, "phi3-partial"])
def test_hostile_rotary_settings_work_or_are_refused(name: str, tmp_path: Path, everything: bool) -> None:
    """A factor of NaN or 1e308 must be named, not turn up as a library's error or as logits that are no numbers.

    By default a field meets a third of the values, another one in each kind: in all six it meets every value twice.
    """
    turn = [*ROPES, "phi3-partial"].index(name)
    tiny(name).save_pretrained(tmp_path)
    good = json.loads((tmp_path / "config.json").read_text())
    for at, field in enumerate(ROPE_FIELDS):
        for value in STRANGE if everything else STRANGE[(turn + at) % 3 :: 3]:
            change(tmp_path, rope_parameters={**good["rope_parameters"], field: value})
            try:
                decoder = load_model(str(tmp_path), dtype="float32")
                assert decoder.card.context < 10**9
                assert logits(decoder).isfinite().all(), (field, value)
            except ModelError as error:
                assert "\n" not in str(error) and len(str(error)) < 500


@pytest.mark.parametrize("value", [1e308, float("nan"), float("inf"), "x", -1e-6, 0, 1.5, True, None, [1e-6]])
def test_the_norm_is_given_a_sane_epsilon(value: object, folder: Path) -> None:
    """An epsilon that is no small number makes every logit zero or no number at all."""
    change(folder, rms_norm_eps=value)
    with pytest.raises(ModelError, match="rms_norm_eps"):
        load_model(str(folder), dtype="float32")


@pytest.mark.parametrize("field", ["max_position_embeddings", "rope_parameters", "layer_types", "eos_token_id"])
def test_other_hostile_fields_load_or_are_refused(field: str, tmp_path: Path) -> None:
    """A length of a million digits overflows where it is multiplied by the rotary embedding's factor."""
    for name in ("linear", "yarn", "qwen2-mixed"):
        tiny(name).save_pretrained(tmp_path)
        for value in (*STRANGE, [[1]], [[]] * 3, ["full_attention"] * 3, {"full_attention": {"rope_theta": 1e4}}):
            good = (tmp_path / "config.json").read_text()
            change(tmp_path, **{field: value})
            try:
                load_model(str(tmp_path), dtype="float32")
            except ModelError as error:
                assert "\n" not in str(error) and len(str(error)) < 500
            (tmp_path / "config.json").write_text(good)


@pytest.mark.parametrize("name", ["no/such/folder/here", "/etc/passwd", "", "a" * 5000, "a\0b", "http://x.y/z"])
def test_what_is_neither_folder_nor_id(name: str) -> None:
    """A slip in a path must not be asked of the network, nor raise what the file system raises."""
    with pytest.raises(ModelError, match="is not a folder"):
        load_model(name)


def test_the_hub_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline is normal; the sentence must name both ways out."""
    import huggingface_hub

    def offline(*args: object, **options: object) -> str:
        raise ConnectionError("a long story")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(ModelError, match="check the name and the network"):
        load_model("nobody/nothing")


def test_the_hub_gives_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only weights that cannot run code may be fetched, and those once: some makers add them in a second form."""
    import huggingface_hub

    used = ["config.json", "model-00001-of-00002.safetensors", "model.safetensors.index.json", "tokenizer.model"]
    twice = ["consolidated.safetensors", "original/consolidated.00.pth", "original/params.json", "onnx/config.json"]
    code = ["model.bin", "model.pt", "modeling.py", "model-q4.gguf", "old/model.safetensors"]

    def fetch(name: str, tqdm_class: type, revision: None, **patterns: list[str]) -> str:
        assert name == "org/model"
        assert list(huggingface_hub.utils.filter_repo_objects(used + twice + code, **patterns)) == used
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert load_model("org/model").card.name == "org/model"


@pytest.mark.parametrize("device", ["warp", "meta", "cuda:99"])
def test_devices_that_are_not_there(device: str, folder: Path) -> None:
    """A missing GPU must be named before minutes of loading, and not by torch's own traceback."""
    with pytest.raises(ModelError, match="use cpu"):
        load_model(str(folder), device=device)


@pytest.mark.parametrize("dtype", ["float8", "int8+int4", "int4", "", torch.int8])
def test_dtypes_that_cannot_be_used(dtype: str | torch.dtype, folder: Path) -> None:
    """Integer weights would load and compute nonsense."""
    with pytest.raises(ModelError, match="choose one of float32"):
        load_model(str(folder), dtype=dtype)
