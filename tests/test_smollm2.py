"""SmolLM2 135M: found on this machine, the same model as transformers', and spoken to through its template."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
import torch

from app.conversation import conversation_of
from cli.main import main
from decoding import METHODS, load, smollm2
from decoding.embedded import PARTS
from decoding.engine import Engine
from decoding.errors import ModelError, ModelMissingError
from decoding.model.decoder import Decoder
from decoding.model.files import find_folder
from decoding.native.build import library
from decoding.parts import CAPABILITIES
from decoding.trace.file import write_trace
from tests.optional import PARTS_OUT, left_out
from tests.space import front_matter

# Methods that have all that they need here.
READY = [name for name in METHODS if METHODS[name].needs - CAPABILITIES <= {"draft_model", *PARTS["smollm2"]}]
QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module")
def engine() -> Engine:
    """Return the model from the package that `make test` installs, in float32."""
    return load("smollm2", device="cpu", dtype="float32", download=False)


@pytest.mark.long
@pytest.mark.slow  # tests/model/test_gguf.py compares the two readers on small files of every kind
def test_it_is_the_model_that_transformers_reads_from_the_same_file(engine: Engine) -> None:
    """Logits of the quantised file by two readers."""
    import transformers

    path = smollm2.packaged()
    assert path is not None
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent,
        gguf_file=path.name,
        dtype=torch.float32,
        quantization_config=transformers.GgufConfig(dequantize=True),
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    ids = engine.encode(engine.as_turn(QUESTION))
    assert tokenizer.decode(ids) == engine.codec.tokenizer.decode(ids)
    for text in (QUESTION, "In 1984 we'll  see\n\n  def f(x):\n    return x + 10", "Ça va? \N{GRINNING FACE}"):
        assert tokenizer.encode(text) == engine.encode(text)
    session = engine.model.open(64, 64)
    session.reset(len(ids))
    with torch.no_grad():
        wanted = theirs(torch.tensor([ids])).logits[0]
    logits = session.read(ids, tuple(range(-1, len(ids) - 1))).logits
    torch.testing.assert_close(logits, wanted, rtol=1e-4, atol=1e-3)
    new = theirs.generate(torch.tensor([ids]), max_new_tokens=24, do_sample=False)[0, len(ids) :].tolist()
    assert list(engine.generate(ids, max_new_tokens=24).ids) == new


@pytest.fixture(scope="module")
def coarse() -> Engine:
    """Return the same model in bfloat16, as it runs by default where the processor computes with it."""
    return load("smollm2", device="cpu", dtype="bfloat16", download=False)


@pytest.fixture(scope="module")
def days(request: pytest.FixtureRequest) -> Callable[[str, str], tuple[int, ...]]:
    """Return what a method writes in a dtype."""

    @cache
    def written(method: str, dtype: str) -> tuple[int, ...]:
        machine: Engine = request.getfixturevalue("engine" if dtype == "float32" else "coarse")
        assert machine.lacks(method) is None
        prompt = machine.as_turn("List the days of the week, then write the list again.")
        return machine.generate(prompt, method, max_new_tokens=24).ids

    return written


# What is trained for it, or copies; the others write their text on the toys and on pocket, and here with --all.
TRIED = {
    "float32": ["draft_model", "suffix", "kangaroo"],
    "bfloat16": ["prompt_lookup", "medusa", "eagle3"],
}
OTHERS = [name for name in READY if name not in {"autoregressive", *TRIED["float32"], *TRIED["bfloat16"]}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "methods"),
    [
        ("bfloat16", TRIED["bfloat16"]),
        pytest.param("float32", TRIED["float32"], marks=pytest.mark.slow),
        pytest.param("bfloat16", OTHERS, marks=pytest.mark.slow),
    ],
)
def test_methods_write_its_own_text(
    dtype: str, methods: Sequence[str], days: Callable[[str, str], tuple[int, ...]]
) -> None:
    """Greedy decoding is lossless on a real model as on the toys, with the parts that it has.

    Without compiled code texts in bfloat16 part at near-ties. Methods are in one test, since a process that loads the
    model takes longer than they do.
    """
    if left_out():
        methods = [name for name in methods if not METHODS[name].needs - CAPABILITIES - {"tables"}]
    dtype = dtype if library() is not None else "float32"
    for method in methods:
        assert days(method, dtype) == days("autoregressive", dtype), method


@pytest.mark.skipif(left_out(), reason=PARTS_OUT)
def test_its_parts_are_small() -> None:
    """Every clone carries them."""
    folder = PARTS["smollm2"]["tables"].parent
    files = [path for path in folder.rglob("*") if path.is_file() and "training" not in path.relative_to(folder).parts]
    assert all(path.exists() for path in PARTS["smollm2"].values())
    assert sum(path.stat().st_size for path in files) <= 26_000_000
    assert max(path.stat().st_size for path in files) < 10_000_000  # hosts of git repositories refuse larger ones


@pytest.mark.slow  # it loads the model
def test_it_answers_as_an_assistant_and_its_record_is_checked_without_naming_it(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plain text, which the model was not trained on, would end at once.

    A trace that names the model may come from anybody: nothing is fetched for it.
    """
    result = engine.generate(engine.as_turn(QUESTION), "prompt_lookup", max_new_tokens=24)
    assert "Paris" in result.text and result.summary.finish == "end_of_text"
    assert conversation_of(engine.codec, engine.encode(engine.as_turn(QUESTION))) == [
        {"role": "user", "content": QUESTION}
    ]
    assert conversation_of(engine.codec, engine.encode(QUESTION)) is None
    assert engine.model.card.name == "smollm2" and isinstance(engine.model, Decoder)
    shape = engine.model.shape  # nine query heads share three key/value heads
    assert (shape.family, shape.heads, shape.kv_heads) == ("llama", 9, 3)
    write_trace(result.trace, tmp_path / "run.jsonl")
    assert main(["rescore", str(tmp_path / "run.jsonl"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["model"] == "smollm2" and report["checked"] == len(result.ids) and report["violations"] == 0


def test_without_the_package_and_the_hub_the_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of the network that was not allowed."""

    def refuse(*arguments: object, **options: object) -> Path:
        raise ModelError("the hub was asked")

    monkeypatch.setattr(smollm2, "packaged", lambda: None)
    monkeypatch.setattr(smollm2, "fetched", lambda *arguments, **options: None)
    monkeypatch.setattr(smollm2, "fetch", refuse)
    with pytest.raises(ModelMissingError, match="is not on this machine: get it with `make real`"):
        load("smollm2", download=False)
    with pytest.raises(ModelMissingError, match="and the hub did not send it: get it with `make real`"):
        load("smollm2")


def test_a_folder_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has fetched the weights by other means puts them there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smollm2").mkdir()
    assert find_folder("smollm2", lambda what, share: None) == Path("smollm2")


def test_a_space_is_built_with_the_very_weights_that_are_loaded() -> None:
    """Fetched at build, it is ready when the first visitor comes."""
    [wanted] = front_matter()["preload_from_hub"]
    hub_id, files, revision = wanted.split()
    assert (hub_id, revision) == (smollm2.HUB_ID, smollm2.REVISION)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(files.split(","))
