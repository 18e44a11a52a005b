"""Medusa heads: the math, the published layout, and folders that are not what they say."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ModelError
from decoding.methods.medusa import Medusa
from decoding.model.decoder import Decoder
from decoding.model.loading import decoder_of
from decoding.parts import Parts
from decoding.parts.heads import Heads, HeadWeights, features, load_heads
from lab.training.part_folder import save_heads
from tests.families import needs_compiler, tiny

FILE = "medusa_lm_head.safetensors"
SIZE, VOCABULARY = 64, 67


@pytest.fixture(scope="module")
def model() -> Decoder:
    """Make a tiny Llama."""
    return decoder_of(tiny("llama"), torch.float64)


def weights(blocks: int, count: int, own: tuple[int, ...], seed: int = 0) -> HeadWeights:
    """Make random heads."""
    source = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=source, dtype=torch.float64) * 0.3

    square, line = random(blocks, count, SIZE, SIZE), random(blocks, count, SIZE)
    return HeadWeights(square, line, random(len(own), VOCABULARY, SIZE), own)


def one_by_one(model: Decoder, held: HeadWeights, hidden: torch.Tensor) -> torch.Tensor:
    """Compute every head alone, by the formula."""
    rows = []
    for head in range(held.weight.shape[1]):
        x = hidden
        for layer in range(len(held.weight)):
            x = x + functional.silu(functional.linear(x, held.weight[layer, head], held.bias[layer, head]))
        if head in held.with_output:
            rows.append(functional.linear(x, held.output[held.with_output.index(head)]))
        else:
            rows.append(model.head(x[None])[0])
    return torch.stack(rows)


@needs_compiler
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("own", [(), (1,), (0, 1, 2)])
def test_compiled_code_says_what_torch_does(blocks: int, own: tuple[int, ...]) -> None:
    held, model = weights(blocks, 3, own), decoder_of(tiny("llama"))
    small = HeadWeights(held.weight.float(), held.bias.float(), held.output.float(), own)
    hidden = torch.randn(SIZE, generator=torch.Generator().manual_seed(9))
    plain = Heads(small, model.head, "in torch")
    assert plain._blocks is not None
    compiled = plain.logits(hidden)
    plain._blocks = None
    assert torch.allclose(compiled, plain.logits(hidden), atol=1e-4)


@pytest.mark.parametrize("blocks", [0, 1, 2])
@pytest.mark.parametrize("own", [(), (0, 1, 2), (1,), (0, 2)])
def test_all_heads_at_once_are_each_head_alone(model: Decoder, blocks: int, own: tuple[int, ...]) -> None:
    """A stack read along the wrong side, or a shared output layer given to the wrong head."""
    held = weights(blocks, 3, own)
    hidden = torch.randn(SIZE, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    logits = Heads(held, model.head, "random").logits(hidden)
    assert logits.shape == (3, VOCABULARY)
    torch.testing.assert_close(logits, one_by_one(model, held, hidden), rtol=0, atol=1e-12)


class Calls(TorchFunctionMode):
    """Notes the name and the arguments of everything that torch is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, str]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note, then do."""
        shown = ["tensor" if isinstance(part, torch.Tensor) else repr(part) for part in args]
        self.made.append((getattr(func, "__name__", ""), " ".join(shown)))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("own", [(), (0, 1, 2), (0, 2)])
def test_a_step_copies_no_index_to_the_device(model: Decoder, own: tuple[int, ...]) -> None:
    """A list as an index becomes a tensor on the host and is copied at every step, which a GPU waits for."""
    heads = Heads(weights(1, 3, own), model.head, "random")
    with Calls() as calls:
        heads.logits(torch.ones(SIZE, dtype=torch.float64))
    names = [name for name, _ in calls.made]
    assert "baddbmm" in names, "or nothing was noted"
    assert not [call for call in calls.made if "[" in call[1] or call[0] == "tensor"]
    assert ("index_select" in names, "index_copy_" in names) == (own == (0, 2),) * 2


def test_a_head_of_zeros_says_what_the_model_says(model: Decoder) -> None:
    """The start of every training: the block passes its input on, and the output layer is the model's."""
    nothing = HeadWeights(
        torch.zeros(1, 2, 64, 64).double(), torch.zeros(1, 2, 64).double(), torch.empty(0, 67, 64), ()
    )
    hidden = torch.randn(SIZE, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    logits = Heads(nothing, model.head, "nothing").logits(hidden)
    torch.testing.assert_close(logits, model.head(hidden[None]).expand(2, -1), rtol=0, atol=1e-12)


def test_gradients_reach_every_head() -> None:
    """Training uses the same blocks, over many places at once."""
    held = weights(2, 3, ())
    held.weight.requires_grad_(True)
    rows = torch.randn(5, SIZE, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    grouped = features(held, rows)
    assert grouped.shape == (3, 5, SIZE)
    torch.testing.assert_close(grouped[:, 3], features(held, rows[3:4])[:, 0])
    grouped.square().sum().backward()
    assert held.weight.grad is not None and bool((held.weight.grad.abs().sum((2, 3)) > 0).all())


@pytest.mark.parametrize(("blocks", "own"), [(1, ()), (1, (0, 1, 2)), (2, (1,)), (0, (0, 1, 2))])
def test_what_is_saved_is_loaded(model: Decoder, tmp_path: Path, blocks: int, own: tuple[int, ...]) -> None:
    """In the same numbers, with the accuracies, and named by folder and hash."""
    held, table = weights(blocks, 3, own), [[0.5, 0.25], [0.4, 0.0], [1.0, 0]]
    save_heads(tmp_path / "mine", held, "org/base", table)
    loaded = load_heads(str(tmp_path / "mine"), model)
    for name in ("weight", "bias", "output"):
        assert torch.equal(getattr(loaded.weights, name), getattr(held, name))
    assert (loaded.count, loaded.weights.with_output, loaded.accuracies) == (3, own, table)
    assert loaded.about.startswith("mine ") and len(loaded.about) == len("mine ") + 12
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {FILE, "config.json"}
    again = load_heads(str(tmp_path / "mine"), decoder_of(tiny("llama"), torch.float32))
    assert again.about == loaded.about and again.weights.weight.dtype == torch.float32
    save_heads(tmp_path / "mine", weights(blocks, 3, own, seed=1), "org/base")
    other = load_heads(str(tmp_path / "mine"), model)
    assert other.about != loaded.about and other.accuracies is None


def write(folder: Path, tensors: Mapping[str, torch.Tensor], name: str = FILE, **config: Any) -> str:
    """Return a folder of heads from another program."""
    save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, folder / name)
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def published(count: int = 5, own: bool = True) -> dict[str, torch.Tensor]:
    """Return tensors as they are published: half precision, one block, an output layer for every head."""
    held = weights(1, count, tuple(range(count)))
    tensors = {f"{k}.0.linear.weight": held.weight[0, k].half() for k in range(count)}
    tensors |= {f"{k}.0.linear.bias": held.bias[0, k].half() for k in range(count)}
    return tensors | ({f"{k}.1.weight": held.output[k].half() for k in range(count)} if own else {})


def test_the_published_layout(model: Decoder, tmp_path: Path) -> None:
    """Published files hold five heads where their configurations speak of two: the file is right."""
    folder = write(tmp_path, published(), medusa_num_heads=2, medusa_num_layers=1, base_model_name_or_path="org/base")
    heads = load_heads(folder, model)
    assert (heads.count, heads.weights.with_output, heads.accuracies) == (5, (0, 1, 2, 3, 4), None)
    assert torch.equal(heads.weights.output[3], published()["3.1.weight"].double())
    assert torch.equal(heads.weights.weight[0, 4], published()["4.0.linear.weight"].double())
    assert len(heads.top(torch.ones(SIZE, dtype=torch.float64), 7)) == 5


def test_heads_that_were_saved_together_with_their_model(model: Decoder, tmp_path: Path) -> None:
    """Such a file holds the model's own weights too, and the heads' names have a prefix."""
    tensors = {f"medusa_head.{name}": tensor for name, tensor in published(3, own=False).items()}
    folder = write(tmp_path, {**tensors, "model.norm.weight": torch.ones(SIZE)}, "model.safetensors")
    heads = load_heads(folder, model)
    assert (heads.count, heads.weights.with_output) == (3, ())
    plain = write(tmp_path, published(3, own=False))
    assert torch.equal(load_heads(plain, model).weights.weight, heads.weights.weight)


def change(**tensors: torch.Tensor | None) -> Callable[[Path], None]:
    """Replace, add or drop tensors; two underscores stand for a dot."""

    def spoil(folder: Path) -> None:
        held = load_file(folder / FILE) | {name.replace("__", ".").strip("_"): t for name, t in tensors.items()}
        save_file({name: tensor for name, tensor in held.items() if tensor is not None}, folder / FILE)

    return spoil


def configure(**values: Any) -> Callable[[Path], None]:
    """Write another configuration."""
    return lambda folder: (folder / "config.json").write_text(json.dumps(values)) and None


def cut(folder: Path) -> None:
    path = folder / FILE
    path.write_bytes(path.read_bytes()[:-10])


def lie_about_size(folder: Path) -> None:
    header = json.dumps({"0.0.linear.weight": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    (folder / FILE).write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 64)


def pickled(folder: Path) -> None:
    (folder / FILE).rename(folder / "medusa_lm_head.pt")


HALF = torch.zeros(SIZE, SIZE).half()
HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no_config": (lambda folder: (folder / "config.json").unlink(), "have no config.json"),
    "config_no_json": (lambda folder: (folder / "config.json").write_text("{"), "is no JSON"),
    "config_no_object": (lambda folder: (folder / "config.json").write_text("[]"), "no JSON object"),
    "more_heads_told": (configure(medusa_num_heads=6), "medusa_num_heads in config.json is 6, but .* holds 5 heads"),
    "no_heads_told": (configure(medusa_num_heads=0), "medusa_num_heads"),
    "odd_heads_told": (configure(medusa_num_heads=True), "medusa_num_heads"),
    "other_layers_told": (configure(medusa_num_layers=2), "is 2, but .* holds 1 blocks a head"),
    "odd_layers_told": (configure(medusa_num_layers="1"), "medusa_num_layers in config.json is '1'"),
    "accuracies_too_few": (configure(accuracies=[[0.5]] * 4), "must be 5 lists of numbers from 0 to 1"),
    "accuracies_too_large": (configure(accuracies=[[1.5]] * 5), "must be 5 lists"),
    "accuracies_empty": (configure(accuracies=[[]] * 5), "must be 5 lists"),
    "accuracies_nan": (configure(accuracies=[[float("nan")]] * 5), "must be 5 lists"),
    "accuracies_odd": (configure(accuracies=[["0.5"]] * 5), "must be 5 lists"),
    "accuracies_true": (configure(accuracies=[[True]] * 5), "must be 5 lists"),
    "accuracies_flat": (configure(accuracies=[0.5] * 5), "must be 5 lists"),
    "accuracies_object": (configure(accuracies={"0": [0.5]}), "must be 5 lists"),
    "accuracies_endless": (configure(accuracies=[[0.0] * 257] * 5), "must be 5 lists"),
    "pickled": (pickled, r"pickled heads only \(medusa_lm_head.pt\), and those can run code: convert them to"),
    "empty_folder": (lambda folder: (folder / FILE).unlink(), "holds no medusa_lm_head.safetensors"),
    "cut_short": (cut, "damaged or cut short"),
    "no_safetensors": (lambda folder: (folder / FILE).write_bytes(b"\x80\x04K\x01."), "damaged or cut short"),
    "lies_about_size": (lie_about_size, "damaged or cut short"),
    "no_tensors": (lambda folder: save_file({}, folder / FILE), "holds no weights"),
    "other_weights": (change(model__norm=torch.ones(1)), "'model.norm', which is no weight of a Medusa head"),
    "a_second_name": (change(_00__0__linear__weight=HALF), "no weight of a Medusa head"),
    "a_hundred_heads": (change(_100__0__linear__weight=HALF), "no weight of a Medusa head"),
    "a_gap": (change(_9__0__linear__weight=HALF), "lacks the weight 5.0.linear.bias"),
    "a_missing_block": (change(_0__0__linear__weight=None), "lacks the weight 0.0.linear.weight"),
    "a_missing_bias": (change(_2__0__linear__bias=None), "lacks the weight 2.0.linear.bias"),
    "a_block_too_many": (change(_2__1__linear__weight=HALF), "has no place for the weight 2.1.linear.weight"),
    "an_output_too_many": (change(_2__2__weight=HALF), "has no place for the weight 2.2.weight"),
    "another_width": (
        change(_1__0__linear__weight=torch.zeros(64, 16)),
        r"1.0.linear.weight in .* has shape \[64, 16\], but heads for .* have \[64, 64\]",
    ),
    "another_vocabulary": (change(_1__1__weight=torch.zeros(66, 64)), r"has shape \[66, 64\], .* have \[67, 64\]"),
    "a_flat_weight": (change(_1__0__linear__bias=torch.zeros(64, 1)), "has shape"),
    "whole_numbers": (change(_1__0__linear__weight=torch.zeros(64, 64, dtype=torch.int8)), "is stored as I8"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_folder_that_is_not_what_it_says_is_refused_in_a_sentence(case: str, model: Decoder, tmp_path: Path) -> None:
    """A damaged or foreign file must say what to change, and never end in a traceback or in wrong guesses."""
    folder = write(tmp_path, published(), medusa_num_heads=5, medusa_num_layers=1)
    assert load_heads(folder, model).count == 5
    spoil, sentence = HOSTILE[case]
    spoil(tmp_path)
    with pytest.raises(ModelError, match=sentence) as error:
        load_heads(folder, model)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("folder", ["nowhere", "", "\0", "x" * 5000])
def test_what_is_no_folder_is_refused(folder: str, model: Decoder, tmp_path: Path) -> None:
    """Names come from a command line."""
    with pytest.raises(ModelError):
        load_heads(str(tmp_path / folder), model)
    with pytest.raises(ModelError):
        load_heads(str(Path(folder) / "no such folder"), model)


def test_a_save_that_fails_leaves_the_older_heads(
    model: Decoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New weights beside an old configuration are refused, or have another one's accuracies: hours of training lost."""
    save_heads(tmp_path, weights(1, 2, (0,)), "org/base", [[0.5], [0.25]])
    before = load_heads(str(tmp_path), model)

    def fail(self: Path, *arguments: Any, **options: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OSError, match="no space left"):
        save_heads(tmp_path, weights(1, 1, ()), "org/base")
    after = load_heads(str(tmp_path), model)
    assert (after.about, after.accuracies, after.count) == (before.about, before.accuracies, 2)


@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_heads_on_a_real_network_change_no_token(family: str, tmp_path: Path) -> None:
    """Random heads are nearly always wrong; a tree's positions, mask and cache rows must still be right."""
    network = decoder_of(tiny(family), torch.float64)
    save_heads(tmp_path, weights(1, 3, (1,)), "tiny")
    machine = Engine(network, Codec(), parts=Parts({"medusa": lambda progress: load_heads(str(tmp_path), network)}))
    prompt = (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4)
    wanted = machine.generate(prompt, max_new_tokens=24).ids
    # Every token of the vocabulary below the root: one of them is always right.
    for params in ({"tree": "cartesian", "sizes": "67,2"}, {"size": 20}):
        result = machine.generate(prompt, Medusa, params=params, max_new_tokens=24)
        assert result.ids == wanted
        assert result.trace.header.parts["medusa"].startswith(tmp_path.name)
        if "sizes" in params:
            assert all(step.accepted >= 1 for step in result.trace.steps[1:-1])
