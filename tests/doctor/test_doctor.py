"""The doctor names what is broken in a drafter, and calls a good one healthy."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from analysis.doctor.evidence import SCALES, best_scale, check_certainty
from analysis.doctor.examine import examine
from analysis.doctor.fit import TargetFit
from analysis.doctor.measure import accepted
from analysis.doctor.probes import Examined
from cli.main import main
from decoding.errors import UnfitError
from decoding.types import JSON

from ..tiers import choose, nightly, slow
from .breaks import (
    Break,
    base,
    both,
    entry,
    flushed,
    heads_in,
    layer,
    on,
    random,
    without_biases,
)
from .planted import (
    FEW,
    LINEAR,
    P,
    Planted,
    Size,
    engine_of,
    folder_of,
    opened,
    plant,
    report_on,
    texts_for,
)


def broken(kind: str, change: Break, to: Path) -> Path:
    """A copy of pocket's drafter with a change."""
    return plant(Planted(P, kind, "", change), to)


def moved_map(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    """Every id of the draft vocabulary one too large, in both forms of the map."""
    ids = weights["d2t"] + torch.arange(len(weights["d2t"])) + 1
    mask = torch.zeros_like(weights["t2d"])
    mask[ids] = True
    weights["t2d"] = mask
    weights["d2t"] = ids - torch.arange(len(ids))


def foreign_embedding(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    weights["embed_tokens.weight"] = engine_of(P).model.embeddings()[0].flip(0).clone()  # type: ignore[attr-defined]


def moved_embedding(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    weights["embed_tokens.weight"] = engine_of(P).model.embeddings()[0].roll(1, 0).clone()  # type: ignore[attr-defined]


def per_state_norms(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    config["fc_norm"] = True
    weights |= {f"fc_norm.{tap}.weight": torch.tensor([1.0, -1.0]).repeat(128) for tap in range(3)}


def norm_before_fc(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    config["norm_before_fc"] = True
    weights["input_norm.weight"] = torch.tensor([1.0, -1.0]).repeat(384)


def unspoken_norm(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    weights["input_norm.weight"] = torch.ones(768)


def mute_norm(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    weights["layers.0.hidden_norm.weight"].zero_()


def huge_norm(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    weights["norm.weight"] *= 1e5


def other_target(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    config["speculators_config"]["verifier"]["name_or_path"] = "org/other"


def missing_flag(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    del config["norm_before_residual"]


def mute_adapter(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    weights["norm.weight"].zero_()


def rolled(by: int) -> Break:
    """Ids moved: the rows of the embedding, which is the output layer too."""

    def change(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        weights["model.embed_tokens.weight"] = weights["model.embed_tokens.weight"].roll(by, 0)

    return change


SEEN: list[tuple[str, str, Break, str, JSON]] = [
    ("eagle", "residual", entry(norm_before_residual=False), "norm_before_residual", True),
    ("eagle", "residual not told", missing_flag, "norm_before_residual", True),
    ("eagle", "fc_norm", per_state_norms, "fc_norm", False),
    ("eagle", "norm_before_fc", norm_before_fc, "norm_before_fc", False),
    ("eagle", "norm one too many", unspoken_norm, "norm_before_fc", True),
    ("eagle", "norm of zeros", mute_norm, "layers.0.hidden_norm.weight", "trained"),
    ("eagle", "huge norm", huge_norm, "norm.weight", "about 1"),
    ("eagle", "all taps too high", entry(eagle_aux_hidden_state_layer_ids=[2, 4, 6]), "taps", [1, 3, 5]),
    ("eagle", "one tap too high", entry(eagle_aux_hidden_state_layer_ids=[1, 3, 6]), "taps", [1, 3, 5]),
    ("eagle", "rotary base", layer(rope_parameters=base(50.0)), "rope_theta", 1e4),
    ("eagle", "window", layer(sliding_window=4), "window", None),
    ("eagle", "vocabulary map", moved_map, "vocabulary_map", "by rows"),
    ("eagle", "embedding", foreign_embedding, "embedding", "target"),
    ("eagle", "embedding by one", moved_embedding, "embedding", "target"),
    ("medusa", "moved up", heads_in([1, 2, 3, 0]), "head_order", [3, 0, 1, 2]),
    ("medusa", "moved down", heads_in([3, 0, 1, 2]), "head_order", [1, 2, 3, 0]),
    ("kangaroo", "exit layer", entry(exit_layer=1), "exit_layer", 2),
    ("kangaroo", "norm of zeros", mute_adapter, "norm.weight", "trained"),
    ("draft", "rotary base", entry(rope_parameters=base(50.0)), "rope_theta", 1e4),
    ("draft", "window", entry(sliding_window=4), "window", None),
    ("draft", "ids too large", rolled(1), "id_offset", 1),
    ("draft", "ids too small", rolled(-1), "id_offset", -1),
]
MANY: Size = (24, 48)
# These take so little that only many prompts tell them from chance.
SUBTLE: list[tuple[str, str, Break, str, JSON]] = [
    ("eagle", "all taps too low", entry(eagle_aux_hidden_state_layer_ids=[0, 2, 4]), "taps", [1, 3, 5]),
    ("eagle", "large rotary base", layer(rope_parameters=base(1e6)), "rope_theta", 1e4),
    ("kangaroo", "exit layer", entry(exit_layer=3), "exit_layer", 2),
    ("kangaroo", "rotary base", entry(rope_theta=50.0), "rope_theta", 1e4),
    ("kangaroo", "window", entry(window=4), "window", 0),
]


def check(size: Size, kind: str, change: Break, flag: str, better: JSON, folder: Path) -> None:
    examination = report_on(opened(broken(kind, change, folder), kind), size)
    assert not examination.healthy
    assert [fault.flag for fault in examination.faults] == [flag], examination.verdict
    [fault] = examination.faults
    assert better is None or fault.better == better
    if fault.interval is not None:
        assert fault.interval[0] > 0 and fault.tokens_per_step_better is not None
        assert examination.verdict.count(" instead of ") == 1, examination.verdict  # it said the gain twice
        assert fault.tokens_per_step_better > 1.02 * (fault.tokens_per_step_given or 0)
        assert f"{fault.tokens_per_step_better:.2f} tokens per step" in fault.sentence


# The command's test examines an EAGLE drafter too.
QUICK = {"kangaroo-exit layer"}


@slow
@pytest.mark.parametrize(
    ("kind", "name", "change", "flag", "better"),
    [
        pytest.param(*c, id=each, marks=() if each in QUICK else slow if at % 3 == 1 else nightly)
        for at, c in enumerate(SEEN)
        for each in [f"{c[0]}-{c[1]}"]
    ],
)
def test_the_break_is_named_and_nothing_else(
    kind: str, name: str, change: Break, flag: str, better: JSON, tmp_path: Path
) -> None:
    check(FEW, kind, change, flag, better, tmp_path / "drafter")


NAMES: list[tuple[str, Break, JSON, Break]] = [
    ("eagle", other_target, "pocket", on(["fc"], random)),
    ("medusa", entry(base_model_name_or_path="org/other"), "pocket", on(["linear"], random)),
    ("kangaroo", entry(base_hash="another"), None, on(["q_proj", "k_proj", "v_proj", "o_proj"], random)),
]


@pytest.mark.parametrize(("kind", "change", "better"), [each[:3] for each in NAMES])
def test_a_drafter_of_another_target_is_named(kind: str, change: Break, better: JSON, tmp_path: Path) -> None:
    """By its files alone, which change nothing of what is measured."""
    [check] = [each for each in opened(broken(kind, change, tmp_path / "drafter"), kind).checks() if not each.fine]
    assert check.flag == "verifier" and (better is None or check.better == better)


@pytest.mark.parametrize(
    ("kind", "change", "spoil"),
    [pytest.param(*c[:2], c[3], id=c[0], marks=() if c[0] == "medusa" else slow) for c in NAMES],
)
def test_another_target_is_a_cause_only_of_poor_guesses(kind: str, change: Break, spoil: Break, tmp_path: Path) -> None:
    """Where the guesses fit this model, its name or hash is a remark."""
    examined = opened(broken(kind, change, tmp_path / "renamed"), kind)
    [check] = [each for each in examined.checks() if not each.fine]
    report = report_on(examined)
    assert report.healthy and check.sentence in report.verdict and check.sentence in report.remark, report.verdict
    report = report_on(opened(broken(kind, both(change, spoil), tmp_path / "spoilt"), kind))
    assert [fault.flag for fault in report.faults] == ["verifier"], report.verdict
    poor = [each.sentence for each in report.evidence if not each.fine]
    assert poor and all(sentence in report.verdict for sentence in (check.sentence, *poor))


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "name", "change", "flag", "better"),
    [pytest.param(*c, id=f"{c[0]}-{c[1]}", marks=slow if at == 3 else nightly) for at, c in enumerate(SUBTLE)],
)
def test_a_small_break_is_named_too(
    kind: str, name: str, change: Break, flag: str, better: JSON, tmp_path: Path
) -> None:
    check((60, 48), kind, change, flag, better, tmp_path / "drafter")


@pytest.mark.parametrize(
    ("kind", "wrong", "flag", "better"),
    [
        ("eagle", {"draft_shift": 1}, "draft_shift", 0),
        ("eagle", {"feature_shift": -1}, "feature_shift", 0),
        ("medusa", {"normed": False}, "normed", True),
        ("medusa", {"place": -1}, "hidden_place", 0),
        ("kangaroo", {"normed": True}, "normed", False),
        ("kangaroo", {"rope": LINEAR}, "rope_scaling", "default"),
        ("draft", {"marks": "none"}, "bos", "the target's"),
    ],
)
def test_what_only_a_program_can_have_wrong_is_named(kind: str, wrong: dict[str, Any], flag: str, better: JSON) -> None:
    """No file says at which place a guess stands: the drafter is run wrongly, as another program may run it."""
    examined = opened(folder_of(P, kind), kind)
    examined.given = replace(examined.given, **wrong)
    flags = {probe.flag: probe.other for probe in examined.probes(examined.given) if probe.other == better}
    assert flags[flag] == better


@pytest.mark.long
@slow
def test_an_adapter_whose_rows_are_rotated_as_no_file_says_is_named() -> None:
    examined = opened(folder_of(P, "kangaroo"), "kangaroo")
    examined.given = replace(examined.given, rope=LINEAR)
    examination = report_on(examined, MANY)
    assert [fault.flag for fault in examination.faults] == ["rope_scaling"], examination.verdict


@slow
def test_a_later_exit_is_no_remedy(tmp_path: Path) -> None:
    """An adapter of layer 2 that reads layer 3 writes most behind layer 5, where the target alone guesses nearly as
    well: that is not the layer it was trained on.
    """
    check(MANY, "kangaroo", entry(exit_layer=3), "exit_layer", 2, tmp_path / "drafter")


@slow
def test_a_change_that_more_texts_may_show_to_be_better_is_told(tmp_path: Path) -> None:
    change = entry(eagle_aux_hidden_state_layer_ids=[0, 2, 4])
    examination = report_on(opened(broken("eagle", change, tmp_path / "drafter"), "eagle"), MANY)
    assert examination.healthy, "this test needs texts that do not suffice"
    assert "no change surely improves it" in examination.verdict
    assert "tapped layers 1, 3, 5" in examination.verdict


@pytest.mark.parametrize("kind", choose(["eagle", "dflash", "medusa", "kangaroo", "draft"], ["kangaroo"]))
def test_a_good_drafter_is_healthy(kind: str) -> None:
    examination = report_on(opened(folder_of(P, kind), kind))
    assert examination.healthy, examination.verdict
    assert "no change improves it" in examination.verdict and examination.given is examination.best


@pytest.mark.long
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=nightly if seed else slow) for seed in range(8)])
def test_no_choice_of_prompts_makes_a_good_drafter_ill(seed: int) -> None:
    """In all 40 examinations a false alarm in every tenth would be seen with 98%; in eight, one in every third."""
    for kind in ("eagle", "dflash", "medusa", "kangaroo", "draft"):
        examination = report_on(opened(folder_of(P, kind), kind), MANY, seed)
        assert examination.healthy, examination.verdict


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(k, marks=slow if k == "draft" else nightly)
        for k in ("eagle", "dflash", "medusa", "kangaroo", "draft")
    ],
)
def test_no_choice_of_few_prompts_makes_a_good_drafter_too_sure(kind: str) -> None:
    """In 400 choices of 12 prompts; without a least difference, 3 of the draft model's were."""
    examined = opened(folder_of(P, kind), kind)
    texts = [text for text in texts_for(P, (70, 32)) if len(text.places(examined.depth))]
    fits = [TargetFit(examined, [text]) for text in texts]
    by_text = [(fit.divergences(examined.given, SCALES), fit.numbers()) for fit in fits]
    for seed in range(400):
        chosen = Random(seed).sample(by_text, 12)
        numbers = torch.cat([of_text for _, of_text in chosen])
        scaled = [torch.cat(of_scale) for of_scale in zip(*(of_text for of_text, _ in chosen), strict=True)]
        for number in range(int(numbers.max()) + 1):  # heads are judged one by one
            best, change = best_scale([each[numbers == number] for each in scaled])
            assert check_certainty(examined.apart, best, change, True, False).fine, (seed, number, change)


@pytest.mark.long
@slow
def test_two_faults_are_found_one_behind_the_other(tmp_path: Path) -> None:
    """The second round starts from the best change of the first."""

    def change(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        config["norm_before_residual"] = False
        config["eagle_aux_hidden_state_layer_ids"] = [2, 4, 6]

    examination = report_on(opened(broken("eagle", change, tmp_path / "drafter"), "eagle"))
    assert sorted(fault.flag for fault in examination.faults) == ["norm_before_residual", "taps"], examination.verdict
    assert examination.best is not None and examination.given is not None
    assert examination.best.tokens_per_step > 3 * examination.given.tokens_per_step
    assert " With all faults mended: " in examination.verdict


# Measuring


@slow
@pytest.mark.parametrize(
    ("kind", "method", "params"),
    [
        ("eagle", "eagle3", {"form": "chain", "gamma": 5}),
        ("dflash", "dflash", {"gamma": 7}),
        ("medusa", "medusa", {"tree": "given", "paths": "0;0,0;0,0,0;0,0,0,0"}),
        ("kangaroo", "kangaroo", {"gamma": 5, "eta": 0.0}),
        ("draft", "draft_model", {"gamma": 5}),
    ],
)
def test_what_is_measured_is_what_runs_accept(kind: str, method: str, params: dict[str, JSON]) -> None:
    """The same numbers at every place where a run happens to take a step."""
    from decoding import load

    examined, engine, met = opened(folder_of(P, kind), kind), load("pocket", device="cpu"), 0
    for text in texts_for(P, FEW)[:4]:
        places = text.places(examined.depth)
        lengths = dict(zip(places, accepted(examined, examined.given, text, examined.depth), strict=True))
        run = engine.generate(text.prompt, method, params, max_new_tokens=len(text.ids) - text.prompt_length)
        steps = run.trace.steps[1:]
        most = max(step.drafted for step in steps)
        for step in steps:
            if step.start - 1 in lengths and step.drafted == most:  # the last step may draft fewer
                assert min(step.accepted, examined.depth) == lengths[step.start - 1]
                met += 1
    assert met >= 4


# The files


def test_lost_biases_are_a_note(tmp_path: Path) -> None:
    """Heads that were trained without biases are stored with zeros as well."""
    report = report_on(opened(broken("medusa", without_biases, tmp_path), "medusa"))
    assert report.healthy and "all biases are zeros" in report.remark and report.remark in report.verdict


def test_pruned_weights_of_a_drafter_that_works_are_a_remark(tmp_path: Path) -> None:
    report = report_on(opened(broken("medusa", flushed(0.35), tmp_path), "medusa"))
    assert report.healthy and "are zeros" in report.remark, report.verdict


def test_a_poor_verdict_begins_with_what_to_do_in_short_sentences(tmp_path: Path) -> None:
    """It was one sentence of 60 words."""
    verdict = report_on(opened(broken("medusa", on(["linear"], random), tmp_path), "medusa")).verdict
    first, *others = re.split(r"(?<=[a-z%)])\. ", verdict)
    assert first == "Works poorly, cause unknown: check that it was trained for this model, and fetch its files again"
    assert all(len(sentence.split()) <= 32 for sentence in others), verdict


# The command


@pytest.mark.long
@pytest.mark.slow
def test_the_command_prints_what_scripts_rely_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The keys of a fault, and exit codes: 0 healthy, 1 a fault, 2 a mistake, 3 poor without a cause."""
    folder = broken("eagle", entry(norm_before_residual=False), tmp_path / "drafter")
    few = ["--prompts", "4", "--max-new-tokens", "16", "--device", "cpu", "--json"]
    assert main(["doctor", "--model", "pocket", "--eagle", str(folder), *few]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["healthy"] is False
    [fault] = printed["faults"]
    wanted = {"name", "flag", "given", "better", "tokens_per_step_given", "tokens_per_step_better", "interval"}
    assert wanted <= fault.keys()
    assert (fault["flag"], fault["given"], fault["better"]) == ("norm_before_residual", False, True)
    assert main(["doctor", "--model", "pocket", "--medusa", str(folder_of(P, "medusa")), *few]) == 0
    assert json.loads(capsys.readouterr().out)["faults"] == []
    random_heads = broken("medusa", on(["linear"], random), tmp_path / "random")
    assert main(["doctor", "--model", "pocket", "--medusa", str(random_heads), *few]) == 3
    printed = json.loads(capsys.readouterr().out)
    assert (printed["condition"], printed["healthy"], printed["faults"]) == ("poor", False, [])
    assert printed["verdict"].startswith("Works poorly, cause unknown")
    assert main(["doctor", "--model", "pocket", *few]) == 2
    assert "name one drafter" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["eagle", "dflash", "medusa", "kangaroo", "draft"])
def test_a_drafter_that_is_not_there_has_no_fault(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipeline must not take a slip in a path for a drafter that is wired wrongly."""
    assert main(["doctor", "--model", "pocket", f"--{kind}", str(tmp_path / "nope"), "--device", "cpu"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and "nope" in shown.err and "folder" in shown.err


@pytest.mark.parametrize(("kind", "name"), [("medusa", "0.0.linear.weight"), ("draft", "model.embed_tokens.weight")])
def test_heads_and_draft_models_with_nan_are_refused(kind: str, name: str, tmp_path: Path) -> None:
    """Of NaN nothing can be measured: a draft model with it was called poor for an unknown reason."""
    folder = broken(kind, lambda config, weights: weights[name].view(-1)[3].fill_(torch.nan), tmp_path / "drafter")
    with pytest.raises(UnfitError, match="NaN or infinity"):
        opened(folder, kind)


@pytest.mark.parametrize(
    ("change", "written"),
    [
        ({}, "write [0, 2, 4] into eagle_config.eagle_aux_hidden_state_layer_ids in config.json"),
        ({"eagle_aux_hidden_state_layer_ids": [2, 4, 6]}, "write [1, 3, 5] into eagle_aux_hidden_state_layer_ids in"),
    ],
)
def test_taps_are_advised_as_the_configuration_numbers_them(
    change: dict[str, JSON], written: str, tmp_path: Path
) -> None:
    """The authors' form counts from one less: told [1, 3, 5], its owner would find just that in the file."""

    def flat(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        layer = config.pop("transformer_layer_config")
        config.clear()
        nested = {"eagle_aux_hidden_state_layer_ids": [1, 3, 5]}
        config |= layer | {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 1536} | change
        config |= {"eagle_config": nested}

    examined = opened(broken("eagle", flat, tmp_path / "drafter"), "eagle")
    [advised] = [each.remedy for each in examined.probes(examined.given) if each.other == [1, 3, 5]]
    assert advised.startswith(written)


def test_weights_that_are_no_numbers_are_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def change(config: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        weights["norm.weight"][0] = torch.nan

    folder = broken("eagle", change, tmp_path / "drafter")
    assert main(["doctor", "--model", "pocket", "--eagle", str(folder), "--device", "cpu", "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["faults"][0]["flag"] == "weights" and printed["tokens_per_step_given"] is None


def test_a_tokenizer_and_a_template_that_differ_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "drafter"
    shutil.copytree(folder_of(P, "draft"), folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    added = tokenizer["added_tokens"][-1]
    old, added["content"] = added["content"], "<|other|>"
    vocabulary = tokenizer["model"]["vocab"]
    if old in vocabulary:
        vocabulary["<|other|>"] = vocabulary.pop(old)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    template = folder / "chat_template.jinja"
    template.write_text("Hello! " + template.read_text(encoding="utf-8"), encoding="utf-8")
    checks = {check.flag: check for check in opened(folder, "draft").checks()}
    assert not checks["tokenizer"].fine and "<|other|>" in checks["tokenizer"].sentence
    assert not checks["chat_template"].fine


def test_an_examination_can_be_ended_between_two_probes() -> None:
    """The page closes it where its visitor has left."""
    examined: Examined = opened(folder_of(P, "medusa"), "medusa")
    progress = examine(examined, texts_for(P, FEW), "pocket")
    assert 0.0 == next(progress)[1] < next(progress)[1] < 1.0
    progress.close()
    assert list(progress) == []
