"""Every claim is measured on a table model with every part: what it asks of the engine, it gets."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import pytest

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.parts import Parts
from decoding.parts.adapter_config import AdapterConfig
from decoding.parts.heads import HeadWeights
from decoding.toy import toy
from lab.papers import PAPERS
from lab.papers.claims import CheckedClaim, ClaimOutcome, check_claims
from lab.papers.experiment import Experiment, Variant
from lab.papers.ouroboros import _orders
from lab.papers.page import conditions, document, page
from lab.papers.variants import build_stores, load_adapters, load_medusa_2
from lab.training.part_folder import save_adapter, save_heads
from tests import toy_adapter, toy_heads
from tests.families import machine, tiny
from tests.toys import counted_text, engine

from .conftest import make_experiment

# What needs trained adapters, a second model, or a text.
_NEED_MORE = {
    "training heads and model together guesses better",
    "a shallow exit is the best bargain",
    "attention alone, with the target's own head, is enough",
    "a larger datastore gives more",
    "several tapped layers guess better than one",
    "training-time test makes later guesses right",
}


@pytest.fixture(scope="module")
def findings() -> tuple[Experiment, list[CheckedClaim]]:
    experiment = make_experiment(engine(counted_text()), 9)
    return experiment, check_claims(experiment, PAPERS.values(), lambda what, share: None)


@pytest.mark.slow
def test_every_claim_is_measured(findings: tuple[Experiment, list[CheckedClaim]]) -> None:
    experiment, checked = findings
    got = {finding.claim.title: finding.judgement for finding in checked if finding.table is None}
    assert got.keys() == _NEED_MORE | {"much of a rejected draft is right"}
    assert all(judgement.verdict is ClaimOutcome.UNMEASURED for judgement in got.values())
    assert "No answer was long enough" in got["much of a rejected draft is right"].says
    assert len(checked) == sum(len(paper.claims) for paper in PAPERS.values())
    same, answers, _ = experiment.identical
    assert same == answers > 200


def test_the_page_tells_every_claim(findings: tuple[Experiment, list[CheckedClaim]]) -> None:
    experiment, checked = findings
    text, data = page(checked, conditions(experiment)), document(checked, conditions(experiment))
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert len(data["claims"]) == len(checked)
    for finding in checked:
        assert text.count(f"\n### {finding.claim.place}: {finding.claim.title}\n") == 1
    assert text.count("**Not measured.**") == 7 and "3 prompts" in text
    assert not [line for line in text.splitlines() if line.startswith(("- ", "+ ", "* ", "1. "))], "prose became a list"


def test_long_drafts_are_compared_place_by_place() -> None:
    claim = next(claim for claim in PAPERS["ouroboros"].claims if claim.place == "Table 1")
    table = claim.take(make_experiment(engine(counted_text()), 40))
    assert table.column("matching tokens")[0] >= table.column("common prefix")[0] > 0.0


@pytest.mark.slow  # it measures
def test_trees_and_windows_end_with_the_heads() -> None:
    """A deeper product would be cut to a small one, and of more guesses than heads none can be accepted."""
    for count in (2, 4):
        experiment = make_experiment(with_heads(count), 12)
        dense = claim_of("medusa", "a sparse tree beats a much larger dense one", experiment).table
        names = ["sparse, 63", "dense, 16,15", "dense, 6,5,7", "dense, 4,3,4,4"]
        assert dense is not None and dense.names == names[:count]
        for name in dense.names[1:]:
            sizes = [int(size) for size in name.removeprefix("dense, ").split(",")]
            assert 201 <= sum(prod(sizes[:depth]) for depth in range(1, len(sizes) + 1)) <= 256
        windows = claim_of("kangaroo", "guesses that know each other stay right for longer", experiment).table
        assert windows is not None and windows.names == [str(w) for w in range(1, count + 1)]
    alone = claim_of("medusa", "a sparse tree beats a much larger dense one", make_experiment(with_heads(1), 4))
    assert alone.judgement.says == "This needs two Medusa heads at least."


def with_heads(count: int) -> Engine:
    """An engine of the toys with so many heads, which are always right."""
    model = counted_text()
    makers = {
        "medusa": lambda progress: toy_heads.make(model, count, 1.0),
        "kangaroo": lambda progress: toy_adapter.make(model),
    }
    return Engine(model, Codec(), parts=Parts(makers))


def test_orders_of_questions() -> None:
    kinds = ["a", "a", "b", "a", "b"]
    orders = _orders(kinds)
    assert list(orders.values())[:2] == [[0, 1, 3, 2, 4], [0, 2, 1, 4, 3]]
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders.values())


def claim_of(paper: str, title: str, experiment: Experiment) -> CheckedClaim:
    """One claim alone."""
    findings = check_claims(experiment, [PAPERS[paper]], lambda *_: None)
    [checked] = [finding for finding in findings if finding.claim.title == title]
    return checked


@pytest.mark.slow
def test_trained_variants_are_compared(tmp_path: Path) -> None:
    """Adapters after two layers and of two architectures; and a model with heads of its own."""
    main = machine("llama")
    shape = main.model.shape  # type: ignore[attr-defined]
    for name, layer, architecture in (("a", 1, "kangaroo"), ("b", 2, "kangaroo"), ("c", 2, "mlp_only")):
        config = AdapterConfig.fit(shape, layer, architecture)
        sizes = config.tensors(shape.hidden, shape.vocabulary)
        weights = {key: tiny("llama").lm_head.weight.new_full(size, 0.1) for key, size in sizes.items()}
        save_adapter(tmp_path / "adapters" / name, config, weights)
    trained: dict[str, Variant] = load_adapters(main, tmp_path / "adapters")
    assert [variant.facts["exit_layer"] for variant in trained.values()] == [1, 2, 2]
    tiny("llama", seed=1).save_pretrained(tmp_path / "both" / "backbone")
    weight = tiny("llama").lm_head.weight.new_zeros
    heads = HeadWeights(weight(1, 2, 64, 64), weight(1, 2, 64), weight(0, 67, 64), ())
    save_heads(tmp_path / "both", heads, "backbone")
    trained |= load_medusa_2(main, tmp_path / "both", lambda what, share: None)
    experiment = make_experiment(main, 6, variants=trained)
    depths = claim_of("kangaroo", "a shallow exit is the best bargain", experiment).table
    assert depths is not None and depths.names == ["1", "2"]
    shapes = claim_of("kangaroo", "attention alone, with the target's own head, is enough", experiment).table
    assert shapes is not None and shapes.names == ["kangaroo", "mlp_only"]
    both = claim_of("medusa", "training heads and model together guesses better", experiment).table
    assert both is not None and both.names == ["Medusa-1", "Medusa-2"]
    same, answers, _ = experiment.identical
    assert same == answers, "the other model's answers must not count"


def test_stores_of_several_sizes_are_made_of_a_text(tmp_path: Path) -> None:
    text = tmp_path / "store.jsonl"
    lines = ({"text": "Every evening the keeper lights the lamps."}, {"text": "High tide is at six."})
    text.write_text("".join(json.dumps(line) + "\n" for line in lines) * 40)
    main = toy()
    stores = build_stores(main, text, lambda what, share: None)
    assert list(stores) == ["a sixteenth", "a quarter", "all"]
    hits = [
        variant.engine.parts.take(frozenset({"datastore"}), lambda *_: None)["datastore"]  # type: ignore[attr-defined]
        .continuations(main.codec.encode("keeper lights"), 4, 1, 2, 100)
        .hits
        for variant in stores.values()
    ]
    assert hits[0] < hits[1] < hits[2]


def test_nonsense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParamError, match="is a table, which has no place for adapters"):
        load_adapters(toy(), tmp_path)
    real = machine("llama")
    with pytest.raises(ParamError, match="folder of folders"):
        load_adapters(real, tmp_path / "none")
    with pytest.raises(ParamError, match="holds 0 adapters"):
        load_adapters(real, tmp_path)
    with pytest.raises(ParamError, match="must name what `train medusa` made"):
        load_medusa_2(real, tmp_path, lambda what, share: None)
