"""Which run folders the Debug page opens: by ids that nobody can turn into paths, few of them in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.store.folder import read_folder
from app.server.limits import LIMITS
from app.store import run_folders
from app.store.run_folders import RunFolders
from decoding.errors import ParamError, TraceError

from .debug_folders import make_folders


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folders(tmp_path_factory.mktemp("runs"))


def test_the_owners_folders_are_listed_behind_the_sample(place: Path) -> None:
    """One that cannot be read is left out: the others are there."""
    listed = RunFolders(place).listed()
    assert [each["name"] for each in listed[-2:]] == ["The first", "The second"]
    assert [each["name"] for each in RunFolders(place / "second").listed()[-1:]] == ["The second"]


def test_the_sample_ships() -> None:
    """Without it a visitor of a new page would have nothing to look at; every clone carries its bytes."""
    folders = RunFolders()
    opened = folders.get(folders.first())
    facts = opened.facts()
    assert facts["finished"] and {"draft_model", "medusa", "autoregressive"} <= facts["methods"].keys()
    assert facts["labels"].keys() == facts["methods"].keys() and facts["labels"]["draft_model"] == "Draft model"
    assert run_folders.method_label("another engine's") == "another engine's"
    assert sum(file.stat().st_size for file in run_folders.SHIPPED.rglob("*")) < 1_600_000


@pytest.mark.parametrize("name", ["nothing", "../first", "/etc", "own-0-first/../..", "x" * 64])
def test_no_other_folder_is_opened(place: Path, name: str) -> None:
    with pytest.raises(TraceError):
        RunFolders(place).get(name)


def test_a_folder_of_the_owner_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParamError, match="no run folder"):
        RunFolders(tmp_path)


def test_few_folders_stay_in_memory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was looked at last always stays."""
    monkeypatch.setattr(run_folders, "LIMITS", replace(LIMITS, folder_bytes=1))
    folders = RunFolders(place)
    first, second = (each["id"] for each in folders.listed()[-2:])
    opened = folders.get(first)
    assert folders.get(first) is opened
    folders.get(second)
    assert folders.get(first) is not opened


def test_what_a_visitor_brings_is_found_by_its_id_alone(place: Path) -> None:
    folders = RunFolders(place)
    folder_id = folders.bring("mine", read_folder(place / "first"))
    assert folders.get(folder_id).name == "mine" and len(folder_id) > 20
    assert folder_id not in {each["id"] for each in folders.listed()}
    for _ in range(LIMITS.brought_folders_each):
        folders.bring("another", read_folder(place / "first"))
    with pytest.raises(TraceError, match="drop its files again"):
        folders.get(folder_id)
