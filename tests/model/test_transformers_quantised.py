"""Quantised folders, made small and real: they write what transformers writes with the same weights, or are refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from decoding import load
from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ModelError
from decoding.model import memory
from decoding.model.loading import load_model
from decoding.model.quantised import rounded
from decoding.model.transformers_model import TransformersModel

VOCABULARY, HIDDEN, WIDE, LAYERS = 128, 64, 128, 2
MATRICES = LAYERS * (2 * HIDDEN * HIDDEN + 2 * HIDDEN * HIDDEN // 2 + 3 * HIDDEN * WIDE)
OUTPUTS = LAYERS * (2 * HIDDEN + 2 * HIDDEN // 2 + 2 * WIDE + HIDDEN)  # of the matrices: a scale each
OTHERS = 2 * VOCABULARY * HIDDEN + (2 * LAYERS + 1) * HIDDEN  # embeddings and norms, which stay as they are


def plain() -> Any:
    """Return a llama whose sizes suit every kernel."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=WIDE,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.2,
        tie_word_embeddings=False,
    )
    return transformers.LlamaForCausalLM(config).eval()


def compressed(folder: Path, activations: bool = False) -> None:
    """Write compressed-tensors' format: four bits packed, or eight and activations rounded to eight as well."""
    pytest.importorskip("compressed_tensors", reason="pip install -r requirements-dev.txt")
    plain().save_pretrained(folder)
    weights, got = load_file(folder / "model.safetensors"), dict[str, torch.Tensor]()
    for name, weight in weights.items():
        if not name.endswith("_proj.weight"):
            got[name] = weight
        elif activations:
            got[name], scales = rounded(weight)
            got[f"{name}_scale"] = scales[:, None].contiguous()
        else:
            scales = weight.abs().amax(1, keepdim=True) / 7
            codes = ((weight / scales).round().clamp(-8, 7) + 8).to(torch.uint8)  # two a byte, the first one below
            got[f"{name}_packed"] = (codes[:, ::2] | codes[:, 1::2] << 4).contiguous().view(torch.int32)
            got[f"{name}_shape"], got[f"{name}_scale"] = torch.tensor(weight.shape), scales
    save_file(got, folder / "model.safetensors", {"format": "pt"})
    whole = {"type": "int", "symmetric": True}
    group: dict[str, Any] = {"targets": ["Linear"]}
    group["weights"] = {**whole, "num_bits": 8 if activations else 4, "strategy": "channel", "dynamic": False}
    if activations:
        group["input_activations"] = {**whole, "num_bits": 8, "strategy": "token", "dynamic": True}
    spoil(
        folder,
        quant_method="compressed-tensors",
        format="int-quantized" if activations else "pack-quantized",
        quantization_status="compressed",
        config_groups={"group_0": group},
        ignore=["lm_head"],
    )


def torchao(folder: Path) -> None:
    """Write eight bits, each output with a scale."""
    quantization = pytest.importorskip("torchao.quantization", reason="pip install torchao")
    by_transformers(folder, transformers.TorchAoConfig(quantization.Int8WeightOnlyConfig()))


def bitsandbytes(folder: Path) -> None:
    """Write four bits, blocks of 64 with a scale."""
    pytest.importorskip("bitsandbytes", reason="pip install bitsandbytes")
    by_transformers(folder, transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.float32))


def by_transformers(folder: Path, how: Any) -> None:
    """Have transformers quantise the plain folder, and save it."""
    plain().save_pretrained(folder)
    options: dict[str, Any] = {"quantization_config": how, "device_map": {"": "cpu"}, "dtype": torch.float32}
    transformers.AutoModelForCausalLM.from_pretrained(folder, **options).save_pretrained(folder)


def spoil(folder: Path, **quantisation: Any) -> None:
    """Give a folder another quantisation."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": quantisation}))


Maker = Callable[[Path], None]
MAKERS: tuple[Maker, ...] = (compressed, torchao, bitsandbytes)
PROMPTS = tuple(
    torch.randint(3, 120, (9,), generator=torch.Generator().manual_seed(seed)).repeat(2).tolist() for seed in range(3)
)


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Maker], Path]:
    """Make a folder by its maker, made once."""

    @cache
    def made(maker: Maker) -> Path:
        folder = tmp_path_factory.mktemp(maker.__name__)
        maker(folder)
        return folder

    return made


def loaded(folder: Path, dtype: str = "float32") -> TransformersModel:
    model = load_model(str(folder), dtype=dtype)
    assert isinstance(model, TransformersModel), "packed numbers are no weights of our decoder"
    return model


@pytest.mark.parametrize("maker", MAKERS)
def test_every_method_writes_what_transformers_writes(maker: Maker, folder_of: Callable[[Maker], Path]) -> None:
    """A mask, a place or a scale that is lost on the way to their modules changes the text."""
    folder = folder_of(maker)
    engine = load(str(folder), device="cpu", dtype="float32")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, device_map={"": "cpu"})
    theirs.generation_config.eos_token_id = None
    for prompt in PROMPTS:
        ids = torch.tensor([prompt])
        wanted = theirs.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=20)
        for method in ("autoregressive", "lookahead", "prompt_lookup"):
            result = engine.generate(prompt, method, max_new_tokens=20, end_tokens=(), record="off")
            assert list(result.ids) == wanted[0, len(prompt) :].tolist(), method


def test_they_are_the_quantised_weights(folder_of: Callable[[Maker], Path]) -> None:
    """Four bits are another model than the one that was rounded, and not by much."""
    prompt = PROMPTS[0]
    got = loaded(folder_of(compressed)).open(32, 32).read(prompt, tuple(range(-1, len(prompt) - 1))).logits
    with torch.no_grad():
        before = plain()(torch.tensor([prompt])).logits[0]
    assert 0.01 < float((got - before).norm() / before.norm()) < 0.8


@pytest.mark.parametrize(
    ("maker", "held", "dtype"),
    [
        # Widened at the first pass: the codes are gone, the scales stay.
        (compressed, 4 * (MATRICES + OUTPUTS + OTHERS), "compressed-tensors+float32"),
        (torchao, MATRICES + 4 * (OUTPUTS + OTHERS), "torchao+float32"),
        # A scale of four bytes for 64 weights; a table of 16 numbers for each matrix.
        (bitsandbytes, MATRICES // 2 + 4 * (MATRICES // 64 + 7 * LAYERS * 16 + OTHERS), "bitsandbytes+float32"),
    ],
)
def test_the_card_says_what_is_held(maker: Maker, held: int, dtype: str, folder_of: Callable[[Maker], Path]) -> None:
    """The share of the bandwidth and the memory are computed from it; a tensor of codes calls itself float32."""
    model = loaded(folder_of(maker))
    assert model.card.parameters == MATRICES + OTHERS
    assert model.card.weight_bytes == pytest.approx(held, rel=0.03)  # how scales are held differs by version
    assert model.card.pass_bytes == model.card.weight_bytes - 4 * VOCABULARY * HIDDEN  # type: ignore[operator]
    assert model.precision == dtype
    again = loaded(folder_of(maker), "bfloat16")
    kept = maker is bitsandbytes  # it keeps what was saved, and says so
    assert again.precision == (dtype if kept else dtype.replace("float32", "bfloat16"))
    assert again.card.hash == model.card.hash


def test_memory_is_asked_for_what_a_pass_widens(
    folder_of: Callable[[Maker], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has four bits a weight, and the first pass makes 32 of them: the system would end the process there."""
    folder = folder_of(compressed)
    room = 4 * (MATRICES + OTHERS) - 1
    assert (folder / "model.safetensors").stat().st_size < room
    monkeypatch.setattr(memory, "free_memory", lambda device: room)
    with pytest.raises(ModelError, match=r"take 0\.4 MB in compressed-tensors\+float32, but cpu has"):
        load_model(str(folder), dtype="float32")
    loaded(folder, "bfloat16")


def test_rounded_activations_are_near_ties_and_no_faults(tmp_path: Path) -> None:
    """Attention's last bit moves them by a whole step, however the text is read: no reason to refuse the model."""
    compressed(tmp_path, activations=True)
    engine = Engine(loaded(tmp_path), Codec())
    for prompt in PROMPTS:
        result = engine.generate(prompt, "lookahead", max_new_tokens=20, end_tokens=())
        assert engine.rescore(result.trace).violations == 0


def test_a_missing_package_is_named_with_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own sentence says that a module is missing, which is no advice."""
    plain().save_pretrained(tmp_path)
    for module in [name for name in sys.modules if name.partition(".")[0] == "torchao"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "torchao", None)
    how = {"default": {"_type": "Int8WeightOnlyConfig", "_version": 2, "_data": {}}}
    spoil(tmp_path, quant_method="torchao", quant_type=how)
    with pytest.raises(ModelError, match="by torchao cannot be run here: .*pip install torchao"):
        load_model(str(tmp_path))


def test_a_configuration_beside_plain_weights_is_refused(tmp_path: Path) -> None:
    """The record would name a model as quantised that is not."""
    plain().save_pretrained(tmp_path)
    spoil(tmp_path, quant_method="gguf")
    with pytest.raises(ModelError, match=r"quantised by gguf, but all of them are plain numbers"):
        load_model(str(tmp_path))
