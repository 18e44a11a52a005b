"""What was tuned on this machine is a preset when the server starts, selected where its model is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.measured_here import machine_facts
from analysis.tuned import POCKET, tuned_here
from analysis.tuning import tune
from app import presets
from app.models.entry import CatalogEntry
from app.presets import DEFAULTS, best_preset, is_for_a_model, preset, preset_name
from decoding.methods import METHODS
from decoding.toy import toy
from tools.page import serving

TOY = CatalogEntry("toy", "toy")
LOOKAHEAD = METHODS["lookahead"]
FOUND = LOOKAHEAD.Params(W=3, N=3, G=2).to_json()
NAME = "toy, tuned here"


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing was tuned before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(presets, "_tuned_here", {})
    return tmp_path / "specscope" / "tuned"


def test_what_tune_found_is_offered_once_it_speculates(fresh: Path) -> None:
    report = tune(toy(), "jacobi", ["Monday"], max_new_tokens=4)
    [path] = fresh.glob("*.json")
    content = json.loads(path.read_text())
    assert (content["model"], content["device"]) == ("toy", machine_facts(toy())["device"])
    content["jacobi"]["speculate"] = True
    path.write_text(json.dumps(content))
    assert tuned_here() == {"jacobi": {"toy": METHODS["jacobi"].Params.parse(report["params"]).to_json()}}
    content["jacobi"]["speculate"] = False
    path.write_text(json.dumps(content))
    assert tuned_here() == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"device": "another processor"},
        {"versions": "torch 1.0"},
        {"model": 3},
        {"lookahead": {"speculate": True, "params": {"W": -1}}},
        {"lookahead": {"speculate": "yes", "params": FOUND}},
        {"lookahead": []},
    ],
)
def test_what_does_not_fit_this_machine_or_is_damaged_is_left_out(fresh: Path, changed: dict[str, object]) -> None:
    fresh.mkdir(parents=True)
    whole = {"model": "toy", **machine_facts(toy()), "lookahead": {"speculate": True, "params": FOUND}}
    (fresh / "a.json").write_text(json.dumps(whole))
    assert tuned_here() == {"lookahead": {"toy": FOUND}}
    (fresh / "a.json").write_text(json.dumps(whole | changed))
    (fresh / "b.json").write_text("[")
    assert tuned_here() == {}


def test_it_is_selected_for_its_model_alone() -> None:
    assert best_preset("lookahead", TOY) != NAME and NAME not in presets.presets(LOOKAHEAD)
    presets.offer({"lookahead": {"toy": FOUND}})
    assert best_preset("lookahead", TOY) == NAME and preset(LOOKAHEAD, NAME) == FOUND
    assert preset_name(LOOKAHEAD, FOUND) == NAME and is_for_a_model("lookahead", NAME)
    assert best_preset("lookahead", replace(TOY, model="pocket")) == POCKET
    assert best_preset("lookahead", replace(TOY, model="/models/toy")) == NAME
    assert best_preset("lookahead", replace(TOY, device="cuda")) == DEFAULTS
    assert not is_for_a_model("jacobi", NAME)


def test_two_models_with_the_same_settings_keep_their_names() -> None:
    presets.offer({"lookahead": {"toy": FOUND, "pocket": FOUND}})
    assert best_preset("lookahead", replace(TOY, model="pocket")) == "pocket, tuned here"
    assert best_preset("lookahead", TOY) == NAME


@pytest.mark.slow
def test_a_server_offers_it_from_its_start_on(fresh: Path, tmp_path: Path) -> None:
    fresh.mkdir(parents=True)
    whole = {"model": "toy", **machine_facts(toy()), "lookahead": {"speculate": True, "params": FOUND}}
    (fresh / "a.json").write_text(json.dumps(whole))
    (tmp_path / "models.toml").write_text("[[model]]\nname = 'toy'\nmodel = 'toy'\n")
    flags = ("--models", str(tmp_path / "models.toml"))
    with serving(tmp_path / "log", *flags, XDG_CACHE_HOME=str(tmp_path)) as page:
        menus = [each["props"] for each in page.visitor().read()["components"]]
    [menu] = [each for each in menus if each.get("elem_id") == "p-lookahead-preset"]
    assert menu["value"] == NAME and [NAME, NAME] in [[*each] for each in menu["choices"]]


def test_settings_that_ship_keep_their_name() -> None:
    ships = preset(LOOKAHEAD, POCKET)
    presets.offer({"lookahead": {"toy": ships}})
    assert best_preset("lookahead", TOY) == POCKET and NAME not in presets.presets(LOOKAHEAD)
