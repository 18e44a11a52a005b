"""Kangaroo's adapter: its arithmetic against a decoder's, its session against whole rows, and its files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from decoding.errors import ModelError, ParamError
from decoding.model.decoder import Decoder
from decoding.model.loading import decoder_of
from decoding.parts.adapter import Adapter, AdapterSession, forward_rows, visible
from decoding.parts.adapter_config import ARCHITECTURES, AdapterConfig
from decoding.parts.adapter_files import load_adapter
from decoding.tree import path_to
from lab.training.part_folder import save_adapter
from tests.families import needs_compiler, tiny
from tests.model.texts import random_tree

TEXT = torch.randint(0, 67, (48,), generator=torch.Generator().manual_seed(3)).tolist()
Weights = dict[str, torch.Tensor]


@cache
def decoder(family: str, layers: int = 3) -> Decoder:
    return decoder_of(tiny(family, num_hidden_layers=layers), torch.float64)


def noise(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random_weights(config: AdapterConfig, model: Decoder) -> Weights:
    """Draw weights that all matter: none is zero or one."""
    sizes = config.tensors(model.shape.hidden, model.shape.vocabulary)
    return {name: 0.4 * noise(*size, seed=i) for i, (name, size) in enumerate(sizes.items())}


def adapter(family: str = "mistral", architecture: str = "kangaroo") -> tuple[Adapter, Weights]:
    model = decoder(family)
    config = AdapterConfig.fit(model.shape, 2, architecture)
    weights = random_weights(config, model)
    return Adapter(config, weights, model), weights


def whole(one: Adapter, weights: Weights, hidden: torch.Tensor) -> torch.Tensor:
    """Read all rows at once."""
    places = torch.arange(len(hidden))
    return forward_rows(one.config, weights, hidden[None], places, visible(places, places, one.config.window))[0]


# The arithmetic


@pytest.mark.parametrize("family", ["llama", "llama-wide-heads", "mistral", "mistral-full"])
@pytest.mark.parametrize("architecture", ["transformer", "kangaroo"])
def test_it_is_a_layer_of_the_decoder(family: str, architecture: str) -> None:
    """A head order, rotation, window or norm of its own would make weights mean something else than they do there."""
    source = tiny(family, num_hidden_layers=1).double()
    state = source.state_dict()
    if architecture == "kangaroo":  # the same layer without its feed-forward part
        state["model.layers.0.mlp.down_proj.weight"].zero_()
    model = decoder_of(source)
    config = AdapterConfig.fit(model.shape, 1, architecture)
    assert config.window == (model.window or 0)
    names = config.tensors(model.shape.hidden, model.shape.vocabulary)
    weights = {name: state[f"model.{'' if name == 'norm.weight' else 'layers.0.'}{name}"] for name in names}
    session = model.open(64, 64)
    wanted = session.read(TEXT, tuple(range(-1, len(TEXT) - 1)))
    rows = state["model.embed_tokens.weight"][TEXT]
    one = Adapter(config, weights, model)
    assert torch.allclose(whole(one, weights, rows), wanted.hidden, atol=1e-9, rtol=0)
    reader = one.open(64, 64)
    read = torch.cat([reader.read(part) for part in rows.split(5)])
    assert torch.allclose(read, wanted.hidden, atol=1e-9, rtol=0)
    assert torch.allclose(reader.logits(read[-1:])[0], wanted.logits[-1], atol=1e-9, rtol=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_a_session_reads_as_whole_rows_are_read(family: str, architecture: str) -> None:
    """Rows that were read and forgotten again, in any portions, far beyond the window, must leave no trace."""
    one, weights = adapter(family, architecture)
    hidden, wrong = noise(90, 64, seed=1), noise(6, 64, seed=2)
    wanted = whole(one, weights, hidden)
    for portion in (1, 3, 8):
        session, fed = one.open(96, 8), 0
        while fed < len(hidden):
            read = session.read(hidden[fed : fed + portion])
            assert torch.allclose(read, wanted[fed : fed + portion], atol=1e-9, rtol=0)
            fed += len(read)
            session.read(wrong)
            session.rewind(fed)
            assert session.length == fed
        session.rewind(0)
        assert torch.allclose(session.read(hidden[:2]), wanted[:2], atol=1e-9, rtol=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("family", ["llama", "mistral"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)  # the second is compiled where it can be
def test_a_tree_is_read_as_its_paths_are(family: str, architecture: str, dtype: torch.dtype) -> None:
    """A row that sees a cousin, or is at its number's place in the text and not at its depth's."""
    exact, weights = adapter(family, architecture)
    one = Adapter(exact.config, weights, decoder_of(tiny(family), dtype))
    text, guesses, parents = noise(30, 64, seed=1).to(dtype), noise(12, 64, seed=2).to(dtype), random_tree(12, 3)
    session, alone = one.open(64, 32), one.open(64, 32)
    for each in (session, alone):
        each.read(text)
    read = session.look(guesses, parents)
    assert session.length == 30 and len(read) == 12
    for node in range(12):
        path = path_to(parents, node)
        wanted = alone.read(guesses[[*path]])[-1]
        alone.rewind(30)
        assert torch.allclose(read[node], wanted, atol=1e-9 if dtype == torch.float64 else 2e-5, rtol=0)


@needs_compiler
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_compiled_code_reads_as_torch_does(family: str, architecture: str) -> None:
    """In float32, on a model's own device; the rows' numbers must not depend on how many are read at once."""
    exact, weights = adapter(family, architecture)
    model = decoder_of(tiny(family))
    one = Adapter(exact.config, weights, model)
    assert (one.native is None) == (architecture == "mlp_only")
    hidden, wrong = noise(90, 64, seed=1), noise(6, 64, seed=2)
    wanted, rows = whole(exact, weights, hidden), hidden.float()
    alone = one.open(96, 8)
    single = torch.cat([alone.read(rows[place : place + 1]) for place in range(len(rows))])
    assert torch.allclose(single.double(), wanted, atol=2e-5, rtol=0)
    session = one.open(96, 8)
    while session.length < len(rows):
        fed = session.length
        read = session.read(rows[fed : fed + 7])
        assert one.native is None or torch.equal(read, single[fed : fed + 7])
        session.read(wrong.float())
        session.rewind(fed + len(read))


def test_a_window_hides_what_is_far_away() -> None:
    """A token sees itself and window - 1 tokens in front of it; one more or fewer is another model."""
    one, weights = adapter("mistral")
    hidden = noise(40, 64, seed=1)
    before = whole(one, weights, hidden)
    hidden[10] += 1.0
    changed = (whole(one, weights, hidden) - before).abs().amax(-1) > 1e-9
    assert changed.nonzero().flatten().tolist() == list(range(10, 26))


def test_rows_of_a_batch_may_hide_more_from_each_other() -> None:
    """Two texts packed into one row, each counted from its own beginning, must be read as if they stood alone."""
    one, weights = adapter("mistral", "transformer")
    hidden = noise(2, 24, 64, seed=1)
    cuts, positions = (9, 17), torch.empty(2, 24, dtype=torch.long)
    mask = torch.zeros(2, 24, 24, dtype=torch.bool)
    for row, cut in enumerate(cuts):
        for part in (slice(0, cut), slice(cut, 24)):
            places = torch.arange(part.stop - part.start)
            positions[row, part] = places
            mask[row, part, part] = visible(places, places, 16)
    outputs = forward_rows(one.config, weights, hidden, positions, mask)
    for row, cut in enumerate(cuts):
        alone = torch.cat([whole(one, weights, hidden[row, :cut]), whole(one, weights, hidden[row, cut:])])
        assert torch.allclose(outputs[row], alone, atol=1e-9, rtol=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_gradients_reach_every_weight(architecture: str) -> None:
    """A weight without a gradient is never trained; a wrong one trains it to the wrong end."""
    one, weights = adapter("llama", architecture)
    weights = {name: weight.requires_grad_() for name, weight in weights.items() if name != "lm_head.weight"}
    hidden, goal = noise(1, 5, 64, seed=1), noise(1, 5, 64, seed=2)
    places = torch.arange(5)

    def loss() -> torch.Tensor:
        return (forward_rows(one.config, weights, hidden, places, visible(places, places, 0)) * goal).sum()

    loss().backward()
    for name, weight in weights.items():
        assert weight.grad is not None and weight.grad.abs().max() > 0, name
        way = noise(*weight.shape, seed=7)
        with torch.no_grad():
            weight.add_(1e-5 * way)
            ahead = float(loss())
            weight.sub_(2e-5 * way)
            behind = float(loss())
            weight.add_(1e-5 * way)
        slope = float((weight.grad * way).sum())
        assert math.isclose((ahead - behind) / 2e-5, slope, rel_tol=1e-4, abs_tol=1e-6), name


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_can_be_trained_in_mixed_precision(architecture: str) -> None:
    """Products in bfloat16 beside norms in float32 leave a chain of types that must fit together."""
    one, weights = adapter("mistral", architecture)
    rows, places = noise(2, 20, 64, seed=1).float(), torch.arange(20)
    single = {name: weight.float().requires_grad_() for name, weight in weights.items()}
    mask = visible(places, places, 16)
    wanted = forward_rows(one.config, single, rows, places, mask)
    with torch.autocast("cpu", torch.bfloat16):
        outputs = forward_rows(one.config, single, rows, places, mask)
    assert float((outputs - wanted).detach().abs().mean()) < 0.02
    outputs.float().square().sum().backward()
    assert single["norm.weight"].grad is not None


@pytest.mark.parametrize(
    ("architecture", "millions"), [("kangaroo", 67), ("kangaroo_head", 198), ("transformer", 202), ("mlp_only", 165)]
)
def test_the_papers_parameter_counts(architecture: str, millions: int) -> None:
    """Table 2, for Vicuna-7B: a part too many or too few shows in millions."""
    config = AdapterConfig(architecture=architecture)
    count = sum(math.prod(size) for size in config.tensors(4096, 32_000).values())
    assert round(count / 1e6) == millions


def test_a_session_refuses_what_does_not_fit() -> None:
    """Rows beyond the cache would overwrite keys that are still seen."""
    session = adapter()[0].open(32, 4)
    with pytest.raises(ModelError, match="a step of 5 tokens is too large"):
        session.read(noise(5, 64))
    for part in noise(36, 64).split(4):
        session.read(part)
    with pytest.raises(ModelError, match="1 tokens do not fit behind the 36 stored ones"):
        session.read(noise(1, 64))


# The files


def spoil(folder: Path, **changes: Any) -> None:
    """Write other values into config.json; None takes one out."""
    config = json.loads((folder / "config.json").read_text()) | changes
    kept = {name: value for name, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(kept))


def reweigh(folder: Path, change: Callable[[Weights], object]) -> None:
    """Write other weights."""
    weights = {name: weight.clone() for name, weight in load_file(folder / "adapter.safetensors").items()}
    change(weights)
    save_file(weights, folder / "adapter.safetensors")


def cut(folder: Path, size: int) -> None:
    """Keep the first bytes only."""
    path = folder / "adapter.safetensors"
    path.write_bytes(path.read_bytes()[:size])


def saved(folder: Path, architecture: str = "kangaroo") -> tuple[str, Weights]:
    """Return an adapter's folder."""
    one, weights = adapter("mistral", architecture)
    save_adapter(folder, one.config, weights)
    return str(folder), weights


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_is_saved_is_loaded(architecture: str, tmp_path: Path) -> None:
    """A name that is written one way and read another, or a switch that is lost on the way."""
    folder, weights = saved(tmp_path / "joey", architecture)
    one = load_adapter(folder, decoder("mistral"))
    assert one.config == AdapterConfig.fit(decoder("mistral").shape, 2, architecture) and one.layer == 2
    hidden = noise(20, 64, seed=5)
    session = one.open(64, 32)
    read = session.read(hidden)
    assert torch.allclose(read, whole(one, weights, hidden), atol=1e-9, rtol=0)
    head = weights.get("lm_head.weight")
    wanted = decoder("mistral").head(read[-1:])[0] if head is None else head @ read[-1]
    assert torch.allclose(session.logits(read[-1:])[0], wanted, atol=1e-9, rtol=0)


def test_an_adapter_is_known_by_its_content(tmp_path: Path) -> None:
    """Two adapters under one name could not be told apart in a record."""
    folder, _ = saved(tmp_path / "joey")
    first, again = (load_adapter(folder, decoder("mistral")).about for _ in range(2))
    assert first == again and first.startswith("joey ") and len(first) == len("joey ") + 12
    reweigh(tmp_path / "joey", lambda weights: weights["norm.weight"][3].add_(1e-3))
    assert load_adapter(folder, decoder("mistral")).about != first


def test_other_keys_in_the_configuration_are_no_harm(tmp_path: Path) -> None:
    """Training notes beside the sizes what it did."""
    folder, _ = saved(tmp_path)
    spoil(tmp_path, trained_on={"tokens": 5})
    assert load_adapter(folder, decoder("mistral")).layer == 2


DAMAGES: Sequence[tuple[str, Callable[[Path], object], str]] = [
    ("no config", lambda f: (f / "config.json").unlink(), "is no adapter's folder: it has no config.json"),
    ("no JSON", lambda f: (f / "config.json").write_text("{"), "config.json in .* is no JSON"),
    ("a list", lambda f: (f / "config.json").write_text("[]"), "holds no JSON object"),
    ("deep", lambda f: (f / "config.json").write_text("[" * 10**5), "is no JSON"),
    ("not UTF-8", lambda f: (f / "config.json").write_bytes(b"\xff\xfe{}"), "is no JSON"),
    (
        "a model's folder",
        lambda f: spoil(f, exit_layer=None),
        "has no exit_layer: name the folder of a Kangaroo adapter",
    ),
    ("layer 0", lambda f: spoil(f, exit_layer=0), "cannot be used: exit_layer must be between 1 and 4096, not 0"),
    ("layer 4", lambda f: spoil(f, exit_layer=4), "reads layer 4 of a model of 3: name one made for it"),
    ("true", lambda f: spoil(f, exit_layer=True), "exit_layer must be a whole number"),
    ("huge", lambda f: spoil(f, heads=10**400), "heads must be between 1 and 4096"),
    ("heads", lambda f: spoil(f, heads=3), "heads must be a multiple of kv_heads, and head_dim even, not 3, 2 and 16"),
    ("odd", lambda f: spoil(f, head_dim=7), "head_dim even, not 4, 2 and 7"),
    ("not finite", lambda f: spoil(f, rope_theta=math.inf), "rope_theta must be a finite number"),
    ("nan", lambda f: spoil(f, eps=math.nan), "eps must be a finite number"),
    ("a hash of another kind", lambda f: spoil(f, base_hash=5), "cannot be used: base_hash must be a text"),
    ("architecture", lambda f: spoil(f, architecture="joey"), "architecture must be one of kangaroo, "),
    (
        "sizes",
        lambda f: spoil(f, head_dim=32),
        r"self_attn.q_proj.weight is \[64, 64\], not \[128, 64\]: name an adapter",
    ),
    ("other parts", lambda f: spoil(f, architecture="transformer"), "weight mlp.down_proj.weight is missing"),
    ("more parts", lambda f: reweigh(f, lambda w: w.update(x=torch.ones(1))), "adapter's weight x is one too many"),
    ("no weights", lambda f: (f / "adapter.safetensors").unlink(), "has no adapter.safetensors: fetch it"),
    ("cut", lambda f: cut(f, 5000), "adapter.safetensors in .* is damaged or cut short"),
    ("cut in the header", lambda f: cut(f, 30), "is damaged or cut short"),
    ("empty", lambda f: cut(f, 0), "is damaged or cut short"),
    (
        "whole numbers",
        lambda f: reweigh(f, lambda w: w.update({"norm.weight": torch.ones(64, dtype=torch.int32)})),
        "norm.weight is stored as I32; save it as float32",
    ),
    (
        "infinite",
        lambda f: reweigh(f, lambda w: w["norm.weight"][0].fill_(math.inf)),
        "weight norm.weight holds NaN or infinity",
    ),
]


@pytest.mark.parametrize(("damage", "sentence"), [case[1:] for case in DAMAGES], ids=[case[0] for case in DAMAGES])
def test_a_damaged_folder_is_refused_in_one_sentence(
    damage: Callable[[Path], object], sentence: str, tmp_path: Path
) -> None:
    """A file from a stranger must end in words, never in a traceback."""
    folder, _ = saved(tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelError, match=sentence) as caught:
        load_adapter(folder, decoder("mistral"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("folder", ["", "nowhere", "\0", "x" * 5000, __file__])
def test_a_folder_that_is_none_is_refused(folder: str) -> None:
    """Some names make the file system itself raise."""
    with pytest.raises(ModelError, match="is no adapter's folder"):
        load_adapter(folder, decoder("mistral"))


def test_an_adapter_for_a_wider_model_is_refused(tmp_path: Path) -> None:
    """The likeliest mistake: the adapter of one model on another."""
    folder, _ = saved(tmp_path)
    with pytest.raises(ModelError, match="name an adapter for this model"):
        load_adapter(folder, decoder_of(tiny("mistral", hidden_size=128)))


def test_an_adapter_of_another_model_of_equal_sizes_is_refused(tmp_path: Path) -> None:
    """Nothing but the hash of its model tells; one that was saved without it fits both."""
    one, weights = adapter("mistral")
    target, other = decoder("mistral"), decoder_of(tiny("mistral", seed=1), torch.float64)
    save_adapter(tmp_path, replace(one.config, base_model="org/\nbase", base_hash=target.card.hash), weights)
    assert load_adapter(str(tmp_path), target).config.base_model == "org/\nbase"
    with pytest.raises(ModelError, match=r"is for 'org/\\nbase', not for .*: name one made for this model") as caught:
        load_adapter(str(tmp_path), other)
    assert "\n" not in str(caught.value)
    spoil(tmp_path, base_model=None, base_hash=None)
    assert load_adapter(str(tmp_path), target).layer == load_adapter(str(tmp_path), other).layer == 2


def test_a_kill_while_saving_leaves_the_older_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a file of weights would be all that hours of training leave."""
    folder, weights = saved(tmp_path)
    before = load_adapter(folder, decoder("mistral")).about

    def killed(tensors: Weights, path: Path, metadata: Any) -> None:
        Path(path).write_bytes(b"half of it")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("safetensors.torch.save_file", killed)
        with pytest.raises(KeyboardInterrupt):
            save_adapter(folder, AdapterConfig.fit(decoder("mistral").shape, 1), weights)
    assert load_adapter(folder, decoder("mistral")).about == before
    save_adapter(folder, AdapterConfig.fit(decoder("mistral").shape, 1), weights)
    assert load_adapter(folder, decoder("mistral")).layer == 1
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "adapter.safetensors"}


def test_a_configuration_is_checked_where_it_is_made() -> None:
    """Training must not be able to write what loading refuses."""
    with pytest.raises(ParamError):
        AdapterConfig(heads=4, kv_heads=3)
    assert isinstance(adapter()[0].open(8, 4), AdapterSession)
