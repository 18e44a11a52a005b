"""The recipes of the gallery, and the command that follows them."""

from __future__ import annotations

import json
import shutil
from itertools import groupby
from pathlib import Path

import pytest

from app.jobs.recorded_race import OPENING, RACES
from app.server.limits import LIMITS
from app.store.recordings import FOLDER, INDEX, LANDINGS, read_index
from app.store.trace_store import ID
from decoding import METHODS, smollm2
from decoding.trace.file import read_trace
from tools import record_gallery
from tools.gallery_recipes import FEW_ROWS, SHARED_PROMPTS, GalleryRecipe, recipes

ALL = recipes()
QUICK = "ouroboros-reference-sizes"  # a recording of few steps


def test_the_real_model_comes_first_with_its_prompts_through_all_methods() -> None:
    """The same methods in the same order, so that prompts can be compared as well as ten methods."""
    real = [recipe for recipe in ALL if recipe.model == smollm2.NAME]
    assert ALL[: len(real)] == real
    groups = [[recipe.method for recipe in group] for _, group in groupby(real, lambda recipe: recipe.group)]
    assert groups == [list(METHODS)] * len(SHARED_PROMPTS)
    assert [recipe.id for recipe in real[:3]] == [
        f"smollm2-spelling-{name}" for name in ("autoregressive", "jacobi", "lookahead")
    ]


@pytest.mark.parametrize("recipe", ALL, ids=[recipe.id for recipe in ALL])
def test_a_recipe_can_be_followed(recipe: GalleryRecipe) -> None:
    """One with a mistake would be found when everything before it has been recorded."""
    assert METHODS[recipe.method].Params.parse(dict(recipe.params)).to_json().items() >= recipe.params.items()
    assert ID.fullmatch(recipe.id) and recipe.title and recipe.shows and recipe.about


@pytest.mark.parametrize("method", METHODS)
def test_few_rows_are_few(method: str) -> None:
    """A picture with more rows than that cannot be read at a glance."""
    assert METHODS[method].Params.parse(dict(FEW_ROWS[method])).nodes <= 64


def test_every_id_that_the_page_knows_has_a_recipe() -> None:
    ids = [recipe.id for recipe in ALL]
    assert len(set(ids)) == len(ids)
    assert {*LANDINGS, *(run for race in (OPENING, *RACES) for run in race.runs)} <= set(ids)
    assert OPENING.runs[-1] == LANDINGS[0]  # it is what "Step through it" opens
    assert all(2 <= len(race.runs) <= LIMITS.lanes for race in RACES)


def test_recordings_are_called_as_their_recipes_say() -> None:
    """A new title of a recipe must not wait for the recording to be made anew."""
    titles = {recipe.id: recipe.title for recipe in ALL}
    rows = json.loads((FOLDER / INDEX).read_text())
    assert {row["id"]: row["title"] for row in rows} == {row["id"]: titles[row["id"]] for row in rows}


def test_a_setting_for_another_model_does_not_pass_for_a_run_of_it() -> None:
    """ "13B on A100" was the title of a run of the embedded model on a CPU."""
    named = [recipe for recipe in ALL if " on A100" in recipe.preset]
    assert named and all(recipe.model == "pocket" for recipe in named)
    for recipe in named:
        assert f"the paper's setting for {recipe.preset}, run here on pocket" in recipe.title


@pytest.mark.slow
def test_what_is_missing_is_made_and_what_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where only the file, or only the entry of the index, is there."""
    for name in ("lookahead-names", QUICK):
        shutil.copy(FOLDER / f"{name}.jsonl.gz", tmp_path)
    rows = [row for row in json.loads((FOLDER / INDEX).read_text()) if row["id"] == "lookahead-names"]
    (tmp_path / INDEX).write_text(json.dumps(rows))
    old = (tmp_path / "lookahead-names.jsonl.gz").read_bytes()
    arguments = ["--missing", "--threads", "2", "--out", str(tmp_path)]
    assert record_gallery.main([*arguments, "--only", QUICK]) == 0
    assert [each.id for each in read_index(tmp_path)] == ["lookahead-names", QUICK]
    header = read_trace(tmp_path / f"{QUICK}.jsonl.gz").header
    assert header.threads == 2 and header.processor
    assert record_gallery.main([*arguments, "--only", "lookahead-names"]) == 0
    assert (tmp_path / "lookahead-names.jsonl.gz").read_bytes() == old
    assert QUICK in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "no such run"], "no recording has 'no such run' in its id"),
        (["--threads", "0"], "--threads must be from 1 to 256, not 0"),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record_gallery.main([*arguments, "--out", str(tmp_path)]) == 2
    assert sentence in capsys.readouterr().err and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("only", "models"), [("smollm2", {"smollm2"}), ("pocket", {"pocket", "pocket-medusa-2"})])
def test_a_model_names_its_recordings(tmp_path: Path, only: str, models: set[str]) -> None:
    assert {recipe.model for recipe in record_gallery._chosen(tmp_path, only, missing=True)} == models
