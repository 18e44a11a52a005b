"""All of SmolLM2's parts in one call, here for a tiny model with a chat template."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from decoding.codec import Codec
from decoding.errors import ModelError
from decoding.loader import load
from decoding.parts.draft_vocabulary import VOCABULARY_FILE
from lab.smollm2 import stages
from lab.smollm2.plans import PLANS, PartsPlan
from lab.smollm2.stages import Stages
from lab.training.backbone import Backbone
from lab.training.conversations import read_conversations
from lab.training.own_prompts import opening_of_a_turn, write_prompts
from tests.families import needs_compiler

from .test_runs import chatty

TINY = PartsPlan(
    prompts=24, length=120, lines=2, draft_vocabulary=40, heads=2, heads_epochs=0.5, exits=(1, 2), exit_steps=2,
    adapter_epochs=0.5, drafter_epochs=0.5, eagle_epochs=0.5, feature_vocabulary=40, eagle_width=32,
    dflash_epochs=0.5, dflash_layers=1, dflash_width=32,
)  # fmt: skip
pytestmark = needs_compiler


def quiet(what: str, share: float) -> None:
    """Ignore all progress."""


@pytest.fixture
def model(backbone: Callable[..., Backbone], codec: Codec, tmp_path: Path) -> str:
    """Make a folder whose random model ends its texts often."""
    folder = tmp_path / "model"
    backbone(max_position_embeddings=256).save(folder, codec)
    ends = json.loads((folder / "generation_config.json").read_text()) | {"eos_token_id": [*range(2, 70)]}
    (folder / "generation_config.json").write_text(json.dumps(ends))
    return str(folder)


@pytest.mark.slow
def test_every_stage_is_made_once_and_the_parts_are_opened(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call after a stop makes what is missing, and nothing again."""
    monkeypatch.setattr("lab.training.own_prompts._SHORTEST", 1)
    monkeypatch.setattr(stages, "_SIZES", {"hidden": 32, "layers": 1, "heads": 2, "intermediate": 64})
    out = tmp_path / "parts"
    whole = stages.build_store

    def stop(*arguments: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, "build_store", stop)
    with pytest.raises(KeyboardInterrupt):
        Stages(out, TINY, 1, "cpu", quiet, model).run()
    corpus = (out / "conversations.jsonl").stat()
    monkeypatch.setattr(stages, "build_store", whole)
    report: Any = Stages(out, TINY, 1, "cpu", quiet, model).run()
    assert (out / "conversations.jsonl").stat().st_mtime_ns == corpus.st_mtime_ns
    assert report["corpus"]["prompts"] == 24 and report["corpus"]["answered"] >= 2
    assert len(read_conversations(out / "conversations.jsonl", quiet)) == report["corpus"]["answered"]
    assert report["exit"]["layer"] in TINY.exits
    assert json.loads((out / "kangaroo" / "config.json").read_text())["base_hash"] == ""
    assert not (out / "drafter" / "tokenizer.json").exists()
    for part in ("medusa", "kangaroo"):
        assert len(load_file(out / part / VOCABULARY_FILE)["ids"]) == 40
        assert "| draft vocabulary | 40 |" in (out / part / "README.md").read_text()
    assert "lm_head.weight" not in load_file(out / "dflash" / "model.safetensors")
    engine = load(
        model,
        draft=str(out / "drafter"),
        medusa=str(out / "medusa"),
        kangaroo=str(out / "kangaroo"),
        eagle=str(out / "eagle"),
        dflash=str(out / "dflash"),
        datastore=str(out / "datastore.safetensors"),
        device="cpu",
        dtype="bfloat16",
    )
    options: dict[str, Any] = {"max_new_tokens": 24, "end_tokens": ()}
    plain = engine.generate((5, 6, 7, 8), **options).ids
    for method in ("medusa", "kangaroo", "eagle3", "dflash", "draft_model", "rest", "ouroboros"):
        assert engine.generate((5, 6, 7, 8), method, **options).ids == plain, method
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert Stages(out, TINY, 1, "cpu", quiet, model).run() == report
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before


def test_prompts_are_different_and_the_same_for_a_seed(
    backbone: Callable[..., Backbone],
    codec: Codec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from decoding.model.loading import decoder_of

    monkeypatch.setattr("lab.training.own_prompts._SHORTEST", 1)
    monkeypatch.setattr("lab.training.own_prompts._ROOM", 60)
    model, ends = decoder_of(backbone().model), chatty(codec)
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        write_prompts(model, ends, 20, tmp_path / name, seed, quiet)
    one, same, other = ((tmp_path / name).read_text() for name in ("one", "same", "other"))
    assert one == same != other
    prompts = [json.loads(line)["prompt"] for line in one.splitlines()]
    assert len(prompts) == len(set(prompts)) == 20 and all(prompt == prompt.strip() for prompt in prompts)


def test_a_users_turn_is_opened_as_the_template_does(codec: Codec) -> None:
    """The ids stand in front of every chat of one message."""
    opening = opening_of_a_turn(codec)
    assert codec.encode_chat([{"role": "user", "content": "count 5"}])[: len(opening)] == opening
    with pytest.raises(ModelError, match="no chat template"):
        opening_of_a_turn(Codec())


def test_the_plans_are_within_the_models_reach() -> None:
    assert set(PLANS) == {"full", "smoke"} and all(plan.length <= 2048 for plan in PLANS.values())
