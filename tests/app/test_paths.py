"""Where a host keeps its models is told to its log, and never to a visitor."""

from __future__ import annotations

import base64
import gzip
import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.controls import order
from app.jobs.live_run import LiveRun
from app.models.catalog import read_catalog
from app.models.entry import CatalogEntry
from app.state import AppState
from app.store.trace_store import StoredRun
from decoding import load
from decoding.embedded import DRAFTER, TARGET
from decoding.errors import ModelError, ParamError
from tests.tiers import choose, sampled, slow

from .conftest import SECRET, entry, lines

FORMS = ("trace", "html", "perfetto", "csv", "vllm")
PROMPT = "What is the dish of Ablow?"


def ran(app_state: AppState, method: str) -> str:
    """Return all that the page is told of a run."""
    asked = order(
        app_state.catalog, model="ours", method=method, params={}, sampling={}, prompt=PROMPT, max_new_tokens=8
    )
    return "".join(deque(app_state.jobs.start(LiveRun(asked, "x=1"), "tab"), maxlen=1))


def answers(app_state: AppState, run: str) -> str:
    """Return all else that the page can ask of it, unpacked."""
    functions = {function.__name__: function for function in app_state.calls.functions()}
    asked = [("run_step", [run, 0]), ("run_detail", [run, 0]), ("open_recording", run)]
    asked += [("run_export", [run, form]) for form in FORMS]
    texts = []
    for name, argument in asked:
        answer = functions[name](argument)
        assert "fault" not in answer
        packed = base64.b64decode(answer.pop("bytes", ""))
        texts.append(json.dumps(answer) + (gzip.decompress(packed).decode() if packed else ""))
    return "\n".join(texts)


@slow
@pytest.mark.parametrize(
    "method", choose(["autoregressive", "draft_model", "medusa", "kangaroo", "rest"], {"draft_model", "medusa", "rest"})
)
def test_a_run_names_the_model_as_the_catalog_does(cellar: Path, method: str) -> None:
    app_state = AppState({"ours": entry(cellar)}, "ours")
    got = ran(app_state, method)
    begun, *_ = (line for line in lines(got) if line["kind"] == "play")
    run = lines(got)[0]["run"]
    assert SECRET not in got and str(cellar.parent) not in got and "fault" not in got
    assert SECRET not in answers(app_state, run)
    kept = app_state.store.get(run)
    assert isinstance(kept, StoredRun) and kept.trace.header.model.name == "ours" == begun["header"]["model"]["name"]
    if method == "draft_model":
        assert kept.trace.header.draft is not None and kept.trace.header.draft.name == "ours (draft)"
    same = load("pocket", device="cpu", dtype="float32").generate(PROMPT, method, max_new_tokens=8).trace
    assert kept.trace.ids == same.ids and kept.trace.header.model.hash == same.header.model.hash
    told_parts = {part: about.split()[-1] for part, about in kept.trace.header.parts.items()}
    assert told_parts == {part: about.split()[-1] for part, about in same.header.parts.items()}
    assert all(about.startswith("ours ") for about in kept.trace.header.parts.values())


def test_models_of_the_hub_are_named_by_their_id(cellar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lie in a folder of this machine once they are fetched."""
    fetched = {"org/large": "target", "org/small": "drafter"}
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda name, **asked: str(cellar / f"{SECRET}-{fetched[name]}")
    )
    commit = "0123456789" * 4
    ours = entry(cellar, model="org/large", revision=commit, draft="org/small", draft_revision=commit)
    engine = ours.load(lambda what, share: None)
    assert engine.draft is not None
    assert (engine.model.card.name, engine.draft.card.name) == ("org/large", "org/small")
    assert SECRET not in str(engine.generate(PROMPT, "medusa", max_new_tokens=4).trace.header)


def test_what_ships_keeps_its_name() -> None:
    engine = CatalogEntry("pocket", "pocket").load(lambda what, share: None)
    assert engine.draft is not None
    assert (engine.model.card.name, engine.draft.card.name) == (TARGET, DRAFTER)
    assert str(engine.part("medusa").about).startswith("medusa ")


def spoilt(place: str, change: Callable[[Path], Any]) -> Callable[[Path], CatalogEntry]:
    def make(cellar: Path) -> CatalogEntry:
        change(cellar / place)
        return entry(cellar)

    return make


def other_tokens(path: Path) -> None:
    """Give the drafter a tokenizer that cuts words otherwise."""
    got = json.loads(path.read_text())
    got["model"]["vocab"]["zzzz"] = got["model"]["vocab"].pop("<pad>", 4095)
    path.write_text(json.dumps(got))


TARGET_FOLDER = f"{SECRET}-target"
BROKEN: dict[str, Callable[[Path], CatalogEntry]] = {
    "no folder": lambda cellar: entry(cellar, model=str(cellar / "gone")),
    "relative": lambda cellar: entry(cellar, model=f"{SECRET}/gone"),
    "a file": lambda cellar: entry(cellar, model=str(cellar / f"{SECRET}.safetensors.packed")),
    "a name too long": lambda cellar: entry(cellar, model=f"{cellar}/{'x' * 300}"),
    "broken config": spoilt(f"{TARGET_FOLDER}/config.json", lambda path: path.write_text("{")),
    "a config that transformers refuses": spoilt(
        f"{TARGET_FOLDER}/config.json",
        lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | {"hidden_size": "wide"})),
    ),
    "no config": spoilt(f"{TARGET_FOLDER}/config.json", Path.unlink),
    "missing weights": spoilt(f"{TARGET_FOLDER}/model-00002-of-00002.safetensors", Path.unlink),
    "no index": spoilt(f"{TARGET_FOLDER}/model.safetensors.index.json", Path.unlink),
    "cut weights": spoilt(
        f"{TARGET_FOLDER}/model-00001-of-00002.safetensors", lambda path: path.write_bytes(path.read_bytes()[:999])
    ),
    "broken tokenizer": spoilt(f"{TARGET_FOLDER}/tokenizer.json", lambda path: path.write_text("{}")),
    "other tokens": spoilt(f"{SECRET}-drafter/tokenizer.json", other_tokens),
    "no heads": lambda cellar: entry(cellar, heads="gone"),
    "another's adapter": spoilt(
        f"{SECRET}-kangaroo/config.json",
        lambda path: path.write_text(
            json.dumps(json.loads(path.read_text()) | {"base_model": str(path), "base_hash": "0"})
        ),
    ),
    "no datastore": spoilt(f"{SECRET}.safetensors.packed", Path.unlink),
}


@sampled
@pytest.mark.parametrize("make", BROKEN.values(), ids=BROKEN)
def test_a_model_that_cannot_be_loaded_is_a_sentence(
    cellar: Path, make: Callable[[Path], CatalogEntry], caplog: pytest.LogCaptureFixture
) -> None:
    got = ran(AppState({"ours": make(cellar)}, "ours"), "autoregressive")
    faults = [line["sentence"] for line in lines(got) if line["kind"] == "fault"]
    assert faults == ["Ours cannot be loaded on this server now: choose another model."]
    assert SECRET not in got and str(cellar.parent) not in got
    assert sum(record.getMessage().startswith("ours cannot be loaded: ") for record in caplog.records) == 1


def test_the_log_has_the_whole_sentence(cellar: Path, caplog: pytest.LogCaptureFixture) -> None:
    ran(AppState({"ours": entry(cellar, model=str(cellar / "gone"))}, "ours"), "autoregressive")
    assert str(cellar / "gone") in caplog.text and "correct the catalog" in caplog.text


def test_a_part_that_cannot_be_made_is_a_sentence(cellar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*asked: Any, **options: Any) -> None:
        raise ModelError(f"{cellar} is full: make room")

    monkeypatch.setattr("decoding.parts.tables.load_tables", fail)
    got = ran(AppState({"ours": entry(cellar)}, "ours"), "ngrammys")
    assert lines(got)[-1]["sentence"] == (
        "What ngrammys needs of ours cannot be loaded on this server now: choose another method or model."
    )


def test_a_folder_that_went_is_not_looked_for_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be any commit of whoever has that name there; and the page would tell the folder's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / SECRET / "model").mkdir(parents=True)
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(f"[[model]]\nname='ours'\nmodel='{SECRET}/model'\n")
    app_state = AppState(read_catalog(catalog).models, "ours")
    (tmp_path / SECRET / "model").rmdir()
    asked = SimpleNamespace(count=0)

    def download(name: str, **options: Any) -> str:
        asked.count += 1
        raise OSError

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    got = ran(app_state, "autoregressive")
    assert SECRET not in got and asked.count == 0 and "is not a folder" in caplog.text


def test_the_host_is_told_why_a_model_did_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(name: str, **options: Any) -> str:
        raise OSError("401: a gated model\nsign in")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    with pytest.raises(ModelError, match=r"'org/model' could not be fetched \(401: a gated model sign in\)"):
        CatalogEntry("ours", "org/model", "0123456789" * 4).load(lambda what, share: None)


def test_a_name_that_no_file_system_takes_does_not_stop_the_start(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(f"[[model]]\nname='ours'\nmodel='{'x' * 300}'\n")
    assert read_catalog(catalog).models["ours"].model == "x" * 300
    catalog.write_text(f"[[model]]\nname='ours'\nmodel='org/{'x' * 300}'\n")
    with pytest.raises(ParamError, match="40 hex digits"):
        read_catalog(catalog)
