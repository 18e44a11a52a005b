"""`train medusa`, `kangaroo` and `eagle3` from files to files, and the answers that a model writes for itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from analysis.doctor.references import promise
from cli.arguments import Parser
from cli.train_flags import add_dflash_flags, add_eagle3_flags, add_kangaroo_flags, add_medusa_flags
from cli.train_parts import train_dflash, train_eagle3, train_kangaroo, train_medusa
from decoding.codec import Codec
from decoding.errors import ModelError, ParamError, SpecscopeError
from decoding.model.loading import load_model
from decoding.parts.adapter_files import load_adapter
from decoding.parts.dflash_files import load_dflash
from decoding.parts.eagle_files import load_eagle
from decoding.parts.heads import load_heads
from lab.pocket.quality import Quality
from lab.pocket.suite import write_tasks
from lab.training import backbone as backbones
from lab.training import distill, runs
from lab.training.backbone import Backbone, load_backbone
from lab.training.batches import Batch
from lab.training.conversations import Conversation, read_conversations, write_line
from lab.training.distill import Answering, write_answers
from tests.families import needs_compiler

from .conftest import CHATS

SMALL = ["--steps", "4", "--lines", "2", "--length", "48", "--device", "cpu", "--dtype", "float32", "--threads", "1"]


def quiet(what: str, share: float) -> None:
    """Ignore all progress."""


@pytest.fixture
def home(backbone: Callable[..., Backbone], codec: Codec, tmp_path: Path) -> Path:
    """Make a model's folder, and a file of conversations."""
    backbone().save(tmp_path / "model", codec)
    lines = "".join(write_line(replace(chat, system=str(n)), n) for n, chat in enumerate(CHATS * 2))
    (tmp_path / "chats.jsonl").write_text(lines)
    return tmp_path


def medusa(*argv: str) -> int:
    parser = Parser()
    add_medusa_flags(parser)
    return train_medusa(parser.parse_args([*SMALL, *argv]))


def kangaroo(*argv: str) -> int:
    parser = Parser()
    add_kangaroo_flags(parser)
    return train_kangaroo(parser.parse_args([*SMALL, *argv]))


def eagle3(*argv: str) -> int:
    parser = Parser()
    add_eagle3_flags(parser)
    return train_eagle3(parser.parse_args([*SMALL, *argv]))


def dflash(*argv: str) -> int:
    parser = Parser()
    add_dflash_flags(parser)
    return train_dflash(parser.parse_args([*SMALL, *argv]))


def given(home: Path, out: str = "out") -> list[str]:
    return ["--model", str(home / "model"), "--data", str(home / "chats.jsonl"), "--out", str(home / out)]


def test_heads_from_files_to_files(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert medusa(*given(home), "--heads", "2") == 0
    assert "guess 2: top-1" in capsys.readouterr().out
    heads = load_heads(str(home / "out"), load_model(str(home / "model"), "cpu", "float32"))
    assert heads.count == 2 and heads.accuracies is not None
    card = (home / "out" / "README.md").read_text()
    assert "| head 2 |" in card and "tokens per step" in card and "before and after" in card
    assert "100.00% of the positions" in card
    assert (home / "out" / "curves.svg").read_text().count("<polyline") == 16
    weights = (home / "out" / "medusa_lm_head.safetensors").read_bytes()
    assert medusa(*given(home), "--heads", "2", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["heads"]) == 2 and report["backbone"]["before"] == report["backbone"]["after"]
    assert (home / "out" / "medusa_lm_head.safetensors").read_bytes() == weights, "a finished one is not trained again"
    with pytest.raises(ParamError, match="another model or settings"):
        medusa(*given(home), "--heads", "3")
    with pytest.raises(ParamError, match="another seed"):
        medusa(*given(home), "--heads", "2", "--seed", "9")
    (home / "chats.jsonl").write_text("".join(write_line(chat, 0) for chat in CHATS))
    with pytest.raises(ParamError, match="other data"):
        medusa(*given(home), "--heads", "2")


def test_heads_and_model_from_files_to_files(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--joint", "--heads", "2", "--own-output", "--rank", "2", "--first-stage", "0.5", "--rate", "0.01"]
    assert medusa(*given(home), *flags, "--model-loss", "distilled", "--json") == 0
    report = json.loads(capsys.readouterr().out)["backbone"]
    assert report["before"] != report["after"] and 0.0 < report["agreement"] <= 1.0
    learnt = load_model(str(home / "out" / "backbone"), "cpu", "float32")
    assert load_heads(str(home / "out"), learnt).count == 2
    assert learnt.card.hash != load_model(str(home / "model"), "cpu", "float32").card.hash
    card = (home / "out" / "README.md").read_text()
    assert "the folder `backbone` beside this card" in card and "| joint.distilled | True |" in card


def test_an_adapter_from_files_to_files(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kangaroo(*given(home), "--exit-layer", "2", "--architecture", "transformer") == 0
    assert "guess 1: top-1" in capsys.readouterr().out
    adapter = load_adapter(str(home / "out"), load_model(str(home / "model"), "cpu", "float32"))
    assert adapter.layer == 2 and adapter.config.architecture == "transformer"
    card = (home / "out" / "README.md").read_text()
    assert "| adapter |" in card and "--kangaroo" in card
    (home / "out" / "training" / "log.jsonl").unlink()
    with pytest.raises(ParamError, match=r"is damaged: delete checkpoint\.safetensors beside it to train anew"):
        kangaroo(*given(home), "--exit-layer", "2", "--architecture", "transformer")


def test_a_drafter_of_features_from_files_to_files(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--taps", "0,2,3", "--test-time-steps", "2", "--norms", "residual,states", "--intermediate", "32")
    assert eagle3(*given(home), *flags, "--draft-vocabulary", "40") == 0
    assert "guess 2: top-1" in capsys.readouterr().out
    drafter = load_eagle(str(home / "out"), load_model(str(home / "model"), "cpu", "float32"))
    config = drafter.config
    assert (drafter.layers, config.draft_vocabulary, config.shape.intermediate) == ((0, 2, 3), 40, 32)
    assert config.fc_norm and config.norm_before_residual and not config.norm_output
    card = (home / "out" / "README.md").read_text()
    assert "| guess 2 |" in card and "--eagle" in card and "held-out tokens in its vocabulary" in card
    weights = (home / "out" / "model.safetensors").read_bytes()
    assert eagle3(*given(home), *flags, "--draft-vocabulary", "40") == 0  # it goes on from where it ended
    assert (home / "out" / "model.safetensors").read_bytes() == weights
    told = promise(home / "out")
    (home / "out" / "README.md").unlink()
    logged = promise(home / "out")
    assert told is not None and logged is not None and told.shares.keys() == logged.shares.keys() == {1, 2}


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--taps", "0,9"], "from 0 to the model's 3"),
        (["--taps", "low"], "--taps must be a whole number"),
        (["--norms", "fc,states"], "not both"),
        (["--norms", "all"], "--norms must be one of"),
        (["--test-time-steps", "0"], "--test-time-steps must be from 1"),
        (["--draft-vocabulary", "100000"], "--draft-vocabulary must be at most"),
    ],
)
def test_settings_of_a_drafter_that_cannot_be_are_refused(home: Path, flags: list[str], says: str) -> None:
    with pytest.raises(ParamError, match=says):
        eagle3(*given(home), *flags)


def test_a_drafter_of_blocks_from_files_to_files(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--taps", "0,2", "--layers", "1", "--block", "3", "--mask-token", "5", "--intermediate", "32"]
    assert dflash(*given(home), *flags, "--draft-vocabulary", "40") == 0
    assert "guess 2: top-1" in capsys.readouterr().out
    drafter = load_dflash(str(home / "out"), load_model(str(home / "model"), "cpu", "float32"))
    config = drafter.config
    assert (drafter.layers, config.draft_vocabulary, config.shape.intermediate) == ((0, 2), 40, 32)
    assert (config.guesses, config.mask, config.shape.layers, config.from_anchor) == (2, 5, 1, False)
    card = (home / "out" / "README.md").read_text()
    assert "| guess 2 |" in card and "--dflash" in card and "held-out tokens in its vocabulary" in card
    told = promise(home / "out")
    assert told is not None and told.shares.keys() == {1, 2}
    with pytest.raises(ParamError, match="another model or settings"):
        dflash(*given(home), *flags, "--draft-vocabulary", "40", "--decay", "2")


def test_an_adapter_knows_its_model(backbone: Callable[..., Backbone], codec: Codec, home: Path) -> None:
    """Trained from weights in one form and run in another, it fits; another model of equal sizes it does not."""
    assert kangaroo(*given(home)) == 0
    model = load_model(str(home / "model"), "cpu", "bfloat16")
    config = load_adapter(str(home / "out"), model).config
    assert (config.base_model, config.base_hash) == (str(home / "model"), model.card.hash)
    backbone(seed=1).save(home / "other", codec)
    with pytest.raises(ModelError, match="name one made for this model"):
        load_adapter(str(home / "out"), load_model(str(home / "other"), "cpu", "float32"))


@pytest.mark.slow  # it trains
@pytest.mark.parametrize("train", [medusa, kangaroo, eagle3])
def test_no_more_lines_are_read_at_once_than_allowed(
    home: Path, monkeypatch: pytest.MonkeyPatch, train: Callable[..., int]
) -> None:
    """Measuring, too, must fit into the memory that the lines at once leave. EAGLE-3 reads and keeps single lines."""
    sizes, read = set[int](), Backbone.read

    def counted(self: Backbone, batch: Batch, **options: Any) -> Any:
        sizes.add(len(batch.ids))
        return read(self, batch, **options)

    monkeypatch.setattr(Backbone, "read", counted)
    assert train(*given(home, "whole")) == 0 and max(sizes) == (1 if train is eagle3 else 2)
    sizes.clear()
    assert train(*given(home), "--at-once", "1") == 0
    assert sizes == {1}


def test_a_model_that_teaches_itself(
    backbone: Callable[..., Backbone], codec: Codec, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own answers as data, its own distributions as the lesson, and questions answered before and after."""
    talker = backbone(max_position_embeddings=4096)
    talker.model.generation_config.eos_token_id = list(range(2, 70))  # a random model's answers do end then
    talker.save(home / "model", codec)
    write_tasks(home / "tasks.jsonl", 1, questions=1)
    flags = ["--joint", "--heads", "1", "--rank", "2", "--schedule", "sine", "--tasks", str(home / "tasks.jsonl")]
    assert medusa(*given(home), *flags, "--self-distill", "--temperature", "1", "--length", "120", "--json") == 0
    model = json.loads(capsys.readouterr().out)["backbone"]
    assert model["before"]["questions"].keys() == model["after"]["questions"].keys() >= {"all", "code"}
    answered = read_conversations(home / "out" / "training" / "answers.jsonl", quiet)
    assert len(answered) > 8 and not {one.answers for one in answered} & {one.answers for one in CHATS}
    card = (home / "out" / "README.md").read_text()
    assert "| joint.distilled | True |" in card and "| joint.weight | 0.01 |" in card
    assert "| right answers, all | 0.0% | 0.0% |" in card


def test_right_answers_before_and_after_are_counted_in_one_dtype(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name and a folder are given different ones where none is named: the difference would pass for learning."""
    write_tasks(home / "tasks.jsonl", 1, questions=1)
    monkeypatch.setattr(backbones, "find_dtype", lambda dtype, device: torch.float32 if dtype else torch.bfloat16)
    loaded = list[tuple[str, str | None]]()
    monkeypatch.setattr(runs, "load", lambda name, **options: loaded.append((name, options["dtype"])))
    monkeypatch.setattr(runs, "measure", lambda engine, tasks, progress: {"code": Quality(turns=1)})
    parser = Parser()
    add_medusa_flags(parser)
    flags = [flag for flag in SMALL if flag not in ("--dtype", "float32")]
    flags += ["--joint", "--heads", "1", "--rank", "2", "--tasks", str(home / "tasks.jsonl")]
    assert train_medusa(parser.parse_args([*flags, *given(home)])) == 0
    assert loaded == [(str(home / "model"), "bfloat16"), (str(home / "out" / "backbone"), "bfloat16")]


def test_what_a_quantised_model_was_before_is_measured_on_its_unquantised_weights(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it learnt is merged into these: beside four bits, the end of rounding would pass for learning."""
    opened = runs.load_backbone

    def rounded(*arguments: Any, quantised: bool, **options: Any) -> tuple[Backbone, Codec]:
        backbone, codec = opened(*arguments, quantised=False, **options)
        with torch.no_grad():
            for weight in backbone.model.parameters():
                weight.copy_((weight * 8).round() / 8)
        backbone.quantised = quantised
        return backbone, codec

    monkeypatch.setattr(runs, "load_backbone", rounded)
    flags = ["--joint", "--heads", "1", "--rank", "2", "--json", "--dtype", "bfloat16"]
    frozen = ["--rate", "0", "--model-rate", "0", "--quantise"]
    assert medusa(*given(home), *flags, *frozen) == 0
    model = json.loads(capsys.readouterr().out)["backbone"]
    assert model["before"] == model["after"] and model["agreement"] == 1.0


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--model", "toy"], "the toy is a table"),
        (["--out", __file__], "--out must name a folder"),
        (["--data", "/no/such/file"], "cannot read"),
        (["--steps", "0"], "--steps must be from 1"),
        (["--rate", "fast"], "--rate must be a number"),
        (["--rate", "nan"], "--rate must be a number"),
        (["--at-once", "3"], "--at-once must be from 1 to 2"),
        (["--length", "4096"], "--length 4096 exceeds the model's context"),
        (["--dtype", "float16"], "float32 or bfloat16"),
        (["--dtype", "int8"], "the dtype 'int8' cannot be used"),
        (["--device", "abacus"], "there is no device 'abacus'"),
        (["--quantise"], "needs a CUDA device and bitsandbytes"),
        (["--heads", "17"], "--heads must be from 1 to 16"),
        (["--joint", "--schedule", "cosine"], "--schedule must be one of two-stage, sine, constant"),
        (["--joint", "--model-loss", "none"], "--model-loss must be one of"),
        (["--data", "language"], "fit into lines of 48 tokens: raise --length"),
        (["--model", "/no/such/model"], "is not a folder"),
    ],
)
def test_nonsense_ends_in_one_sentence(home: Path, argv: list[str], reason: str) -> None:
    with pytest.raises(SpecscopeError) as caught:
        medusa(*given(home), *argv)
    assert reason in str(caught.value) and "\n" not in str(caught.value)


def test_a_model_without_data_or_tokenizer_or_weights_says_so(home: Path) -> None:
    model = ["--model", str(home / "model"), "--out", str(home / "out")]
    with pytest.raises(ParamError, match="--data FILE"):
        kangaroo(*model)
    (home / "model" / "tokenizer.json").rename(home / "tokenizer.json")
    (home / "model" / "tokenizer_config.json").unlink()
    with pytest.raises(ModelError, match="has no tokenizer"):
        kangaroo(*given(home))
    (home / "model" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"no model\.safetensors"):
        kangaroo(*given(home))
    with pytest.raises(ParamError, match="--architecture must be one of"):
        kangaroo(*given(home), "--architecture", "cathedral")


def test_a_model_whose_weights_are_not_all_there_is_not_trained_behind(home: Path) -> None:
    """transformers would fill the gap with chance and only warn."""
    from safetensors.torch import load_file, save_file

    path = home / "model" / "model.safetensors"
    weights = load_file(path)
    del weights["model.norm.weight"]
    save_file(weights, path, {"format": "pt"})
    with pytest.raises(ModelError, match=r"model\.norm\.weight is missing"):
        load_backbone(str(home / "model"), device="cpu", dtype="float32", length=8, quantised=False, progress=quiet)


def chatty(codec: Codec) -> Codec:
    """Return so many tokens end an answer that a random model's answers do end."""
    return Codec(codec.tokenizer, range(2, 70))


@pytest.fixture(params=[pytest.param("compiled", marks=needs_compiler), "transformers"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose what writes the answers."""
    monkeypatch.setattr(distill, "_BLOCKS", 1)
    if request.param == "transformers":
        monkeypatch.setattr(distill.TextBatch, "suit", lambda model, length: False)


@pytest.mark.usefixtures("way")
def test_a_model_answers_prompts_in_its_own_words(
    backbone: Callable[..., Backbone], codec: Codec, tmp_path: Path
) -> None:
    """Every answer is what plain greedy decoding writes after the prompt and the model's earlier answers."""
    model, ends = backbone("mistral"), chatty(codec)
    path = tmp_path / "answers.jsonl"
    prompts = [Conversation(one.prompts, ("ignored",) * len(one.prompts), one.system) for one in CHATS]
    prompts.append(Conversation(text="no prompt"))
    write_answers(model, ends, prompts, path, Answering(temperature=0.0, at_once=5, length=120), quiet)
    indices = [json.loads(line)["index"] for line in path.read_text().splitlines()]
    answered = read_conversations(path, quiet)
    assert len(answered) >= 4 and indices == sorted(set(indices))
    assert any(len(one.answers) == 2 for one in answered)
    for index, found in zip(indices, answered, strict=True):
        assert found.prompts == CHATS[index].prompts[: len(found.prompts)]
        for turn, answer in enumerate(found.answers):
            ids = ends.encode_chat(found.messages(turn))
            begin = len(ids)
            while ids[-1] not in ends.end_tokens or len(ids) == begin:
                with torch.no_grad():
                    ids.append(int(model.model(torch.tensor([ids])).logits[0, -1].argmax()))
            assert ends.decode(ids[begin:-1]) == answer


@pytest.mark.usefixtures("way")
def test_answering_goes_on_where_it_was_stopped(
    backbone: Callable[..., Backbone], codec: Codec, tmp_path: Path
) -> None:
    """Also after a line that a kill has cut off; chance included."""
    model, ends, answering = backbone(), chatty(codec), Answering(temperature=1.0, at_once=4, length=120, seed=3)
    whole, stopped = tmp_path / "whole.jsonl", tmp_path / "stopped.jsonl"
    write_answers(model, ends, CHATS, whole, answering, quiet)

    def stop(what: str, share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_answers(model, ends, CHATS, stopped, answering, stop)
    assert 0 < stopped.stat().st_size < whole.stat().st_size
    with stopped.open("ab") as file:
        file.write(b'{"index": 9, "mess')
    write_answers(model, ends, CHATS, stopped, answering, quiet)
    assert stopped.read_bytes() == whole.read_bytes()
    write_answers(model, ends, CHATS, stopped, answering, quiet)
    assert stopped.read_bytes() == whole.read_bytes(), "nothing is answered twice"
    with pytest.raises(ParamError, match="other prompts or settings"):
        write_answers(model, ends, CHATS, stopped, replace(answering, seed=4), quiet)
    write_answers(model, ends, CHATS, stopped, replace(answering, at_once=2), quiet)
    (tmp_path / "stopped.state.json").write_text("{}")
    with pytest.raises(ParamError, match="is damaged"):
        write_answers(model, ends, CHATS, stopped, answering, quiet)


def test_fewer_answers_at_once_go_on_where_the_memory_ended(
    backbone: Callable[..., Backbone], codec: Codec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the sentence advises must not be refused for being another setting."""
    model, ends, answering = backbone(), chatty(codec), Answering(temperature=0.0, at_once=5, length=120)
    path, generate, calls = tmp_path / "answers.jsonl", model.model.generate, iter([True, False])
    monkeypatch.setattr(distill.TextBatch, "suit", lambda model, length: False)

    def full(*arguments: Any, **options: Any) -> Any:
        if next(calls, False):
            return generate(*arguments, **options)
        raise torch.OutOfMemoryError

    with monkeypatch.context() as patch:
        patch.setattr(model.model, "generate", full)
        with pytest.raises(ModelError, match="lower --answers-at-once"):
            write_answers(model, ends, CHATS[::2], path, answering, quiet)
    write_answers(model, ends, CHATS[::2], path, replace(answering, at_once=2), quiet)
    assert json.loads((tmp_path / "answers.state.json").read_text())["done"] == 6


@pytest.mark.slow
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_answers_follow_the_models_distribution_and_not_its_usual_settings(
    backbone: Callable[..., Backbone], codec: Codec, tmp_path: Path, temperature: float
) -> None:
    """transformers fills whatever a call leaves open from generation_config.json, which bends the distribution."""
    from transformers import GenerationConfig

    model, ends = backbone("mistral"), chatty(codec)
    answering, written = Answering(temperature=temperature, at_once=12, length=100), list[bytes]()
    for number, bent in enumerate(
        (
            {},
            {"repetition_penalty": 9.0},
            {"no_repeat_ngram_size": 1},
            {"min_p": 0.9, "top_k": 1, "top_p": 0.1, "typical_p": 0.1},
            {"suppress_tokens": list(range(100, 200)), "min_new_tokens": 12, "num_beams": 3},
        )
    ):
        usual = model.model.generation_config = GenerationConfig(do_sample=True, **bent)
        path = tmp_path / f"{number}.jsonl"
        write_answers(model, ends, CHATS, path, answering, quiet)
        written.append(path.read_bytes())
        assert model.model.generation_config is usual, "it is saved with a model that learns"
    assert len(written[0]) > 0 and len(set(written)) == 1


def test_plain_texts_cannot_be_answered_and_memory_may_end(
    backbone: Callable[..., Backbone], codec: Codec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = backbone()
    with pytest.raises(ParamError, match="needs prompts"):
        write_answers(model, codec, [Conversation(text="a")], tmp_path / "a", Answering(length=120), quiet)

    def full(*arguments: Any, **options: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(distill.TextBatch, "suit", lambda model, length: False)
    monkeypatch.setattr(model.model, "generate", full)
    with pytest.raises(ModelError, match="for 32 answers at once: lower --answers-at-once"):
        write_answers(model, codec, CHATS, tmp_path / "b", Answering(length=120), quiet)
