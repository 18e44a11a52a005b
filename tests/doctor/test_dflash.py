"""A DFlash drafter under examination: its arithmetic at many places at once, and what is tried with it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from analysis.doctor.dflash import ExaminedDFlash
from analysis.doctor.texts import Text, read_text
from decoding.parts.dflash_files import load_dflash
from tests.parts.record_dflash import CASES, MASK, TAPS
from tests.parts.test_dflash import DRAFTERS, authors_form, target

IDS = tuple(3 + at * 7 % 31 for at in range(24))
PLACES = range(3, 18)


def text_for(examined: ExaminedDFlash) -> Text:
    return read_text(target(), IDS, IDS[:3], IDS[3:], examined.layers())


@pytest.mark.parametrize("case", CASES)
def test_as_given_it_says_what_a_session_says(case: str) -> None:
    """With windows, which reach back from the root, and blocks that are read in one direction or in both."""
    examined, one = ExaminedDFlash(str(DRAFTERS / case), target()), load_dflash(str(DRAFTERS / case), target())
    text, session, guesses = text_for(examined), one.open(64, 64), one.config.guesses
    states = torch.cat([text.states[tap] for tap in one.layers], 1)
    logits, at = examined.rows(examined.given, text, PLACES)
    assert at == [place + ahead for ahead in range(examined.depth) for place in PLACES]
    made = logits.view(examined.depth, len(PLACES), -1)
    for number, place in enumerate(PLACES):
        session.read(states[session.length : place])
        wanted = session.logits(session.fill(IDS[place], guesses))[: examined.depth]
        assert torch.allclose(made[:, number], wanted, atol=1e-9), place


@pytest.mark.parametrize(
    ("case", "wrong", "flag", "better"),
    [
        ("plain", {"draft_shift": 1}, "draft_shift", 0),
        ("plain", {"feature_shift": -1}, "feature_shift", 0),
        ("plain", {"normed": False}, "hidden_norm", True),
        ("window", {"edge": "each row"}, "window_edge", "the root"),
    ],
)
def test_what_only_a_program_can_have_wrong_is_tried(case: str, wrong: dict[str, Any], flag: str, better: Any) -> None:
    examined = ExaminedDFlash(str(DRAFTERS / case), target())
    wiring = replace(examined.given, **wrong)
    [probe] = [each for each in examined.probes(wiring) if each.flag == flag and each.other == better]
    text = text_for(examined)
    before, after = (examined.rows(each, text, PLACES)[0] for each in (wiring, examined.given))
    assert not torch.allclose(before, after, atol=1e-3)
    assert torch.equal(examined.rows(probe.wiring, text, PLACES)[0], after)


def test_entries_are_advised_as_the_form_of_the_file_has_them(tmp_path: Path) -> None:
    """The authors number the layers from one less, and have other entries for the same."""
    (tmp_path / "config.json").write_text(json.dumps(authors_form()))
    tensors = load_file(DRAFTERS / "whole" / "model.safetensors")
    save_file({name: each for name, each in tensors.items() if "bias" not in name}, tmp_path / "model.safetensors")
    kinds = {case: ExaminedDFlash(str(DRAFTERS / case), target(), "", (7,)) for case in ("plain", "window")}
    remedies = {
        case: " ".join(each.remedy for each in (*one.probes(one.given), *one.edits(one.given)))
        for case, one in {**kinds, "authors": ExaminedDFlash(str(tmp_path), target(), "", (7,))}.items()
    }
    last = [*TAPS[:-1], TAPS[-1] - 1]
    assert f"write {last} into aux_hidden_state_layer_ids in" in remedies["plain"]
    assert f"write {[tap - 1 for tap in last]} into dflash_config.target_layer_ids in" in remedies["authors"]
    assert "set mask_token_id to 7 in" in remedies["plain"] and str(MASK) != "7"
    assert "set dflash_config.mask_token_id to 7 in" in remedies["authors"]
    assert "set sliding_window_non_causal to true in" in remedies["window"]
    assert "set dflash_config.causal to true in" in remedies["authors"]
    assert "set sample_from_anchor to true in" in remedies["plain"]
