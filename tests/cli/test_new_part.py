"""Whoever adds a part registers it in `NAMED_PARTS` alone: everything that takes parts takes it from there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from app.models.catalog import read_catalog
from app.models.own_models import OwnModels, labels
from decoding import Engine, OptionError, load
from decoding.codec import Codec
from decoding.methods.autoregressive import Autoregressive
from decoding.model.transformers_model import AnyModel
from decoding.parts import NAMED_PARTS
from decoding.parts.named import NamedPart
from tests import families

from .conftest import Command


@dataclass
class Oracle:
    """A part that no method of ours has."""

    about: str


class Asking(Autoregressive):
    """A method that needs it."""

    name = "asking"
    needs = frozenset({"oracle"})


def read_oracle(path: str, target: AnyModel, codec: Codec) -> Oracle:
    return Oracle(f"oracle {(Path(path) / 'answer.txt').read_text()}")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Register the part, and make a model and the part's folder."""
    monkeypatch.setitem(
        NAMED_PARTS, "oracle", NamedPart("asking", "an oracle", "org/oracle", "a folder or hub id", read_oracle)
    )
    families.tiny("llama").save_pretrained(tmp_path / "model")
    (tmp_path / "delphi").mkdir()
    (tmp_path / "delphi" / "answer.txt").write_text("42")
    return tmp_path


def about(engine: Engine) -> str:
    text: str = engine.part("oracle").about
    return text


def test_it_is_an_argument_of_load(home: Path) -> None:
    engine = load(str(home / "model"), device="cpu", oracle=str(home / "delphi"))
    assert about(engine) == "oracle 42" and engine.lacks(Asking) is None
    assert engine.generate([3, 4], Asking, max_new_tokens=2).trace.header.parts == {"oracle": "oracle 42"}
    lacks = load(str(home / "model"), device="cpu").lacks(Asking)
    assert lacks is not None and "an oracle: load the engine with oracle= (--oracle), a folder or hub id" in lacks
    with pytest.raises(OptionError, match="there is no option 'orakel'; the parts are medusa, .*, oracle"):
        load(str(home / "model"), orakel=str(home / "delphi"))


def test_it_is_a_key_of_a_catalog(home: Path) -> None:
    listed = home / "models.toml"
    listed.write_text(f"[[model]]\nname = 'ours'\nmodel = '{home / 'model'}'\noracle = '{home / 'delphi'}'\n")
    entry = read_catalog(listed).models["ours"]
    assert "oracle" in entry.parts
    assert about(entry.load(lambda what, share: None)) == "ours 42"


def test_it_is_a_field_of_the_page(home: Path) -> None:
    assert labels()["oracle"] == "Oracle"
    entry = OwnModels(home, {}).add({"model": "model", "oracle": "delphi"})
    assert about(entry.load(lambda what, share: None)).endswith(" 42")


def test_it_is_a_flag(command: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    flags = ("--model", "model", "--prompt-ids", "3,4", "--max-new-tokens", "4", "--device", "cpu", "--json")
    assert command("run", *flags, "--oracle", "delphi").code == 0
    refused = command("run", *flags, "--oracle", "model/config.json")
    assert refused.code == 2 and "is no folder: name one of an oracle" in refused.err
