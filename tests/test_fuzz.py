"""`make fuzz`, `make load` and `make soak` in short. Times and growth are measured by the long ones only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.fuzz import Fuzz, errors_in, serving_fuzz
from tools.load import FLAGS as LOAD_FLAGS
from tools.load import REFUSED, SERVED, counted, run_many
from tools.page import serving
from tools.soak import FLAGS as SOAK_FLAGS
from tools.soak import Soak


def test_readers_refuse_hostile_inputs_with_a_sentence(tmp_path: Path, everything: bool) -> None:
    fuzz = Fuzz(0.1 if everything else 0.005)
    fuzz.read(tmp_path)
    assert len(fuzz.sent) == 7


@pytest.mark.slow
def test_every_path_answers_hostile_inputs(tmp_path: Path) -> None:
    fuzz = Fuzz(0.03)
    with serving_fuzz(tmp_path) as page:
        fuzz.ask(page)
        assert page.visitor().ask("GET", "/healthz").status == 200
    log = (tmp_path / "log").read_text()
    assert len(fuzz.sent) == 9 and not errors_in(log)


@pytest.mark.long
@pytest.mark.slow
def test_visitors_are_served_or_refused_and_the_server_counts_the_same(tmp_path: Path) -> None:
    with serving(tmp_path / "log", *LOAD_FLAGS) as page:
        assert run_many(page, 12, 4, tokens=8) == {SERVED: 12} and counted(page)[SERVED] == 12
        outcomes = run_many(page, 50, 50)
        assert outcomes.total() == 50 and outcomes[SERVED] >= 17 and outcomes[REFUSED] == counted(page)[REFUSED]


@pytest.mark.long
@pytest.mark.slow
def test_every_run_of_a_mixed_crowd_passes_the_oracle(tmp_path: Path) -> None:
    with serving(tmp_path / "log", *SOAK_FLAGS) as page:
        soak = Soak(page)
        while soak.done.total() <= 20:  # a busy machine serves fewer at a time
            soak.visit(20)
    assert not soak.wrong, soak.wrong
