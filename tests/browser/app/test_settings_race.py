"""A race of settings, started by its button: the verdict, and the form with what won."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis import tuning
from decoding.methods.jacobi import JacobiParams

from .conftest import Served

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
FOUND = ".app-settings-race .app-verdict"


@pytest.mark.slow  # some seconds in a browser; tests/app has what a race says
@pytest.mark.parametrize("seconds", [1000.0, 1e-9])
def test_what_won_is_put_into_the_form(
    new_page: Callable[..., Any], served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: float
) -> None:
    """Autoregressive decoding takes so long that guessing pays, or no time at all."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tuning, "candidates", lambda method: [JacobiParams(n=9).to_json()])
    timed = tuning.timed_run

    def paced(engine: Any, method: str, *given: Any) -> Any:
        run = timed(engine, method, *given)
        return replace(run, decode_seconds=seconds) if method == "autoregressive" else run

    monkeypatch.setattr(tuning, "timed_run", paced)
    page = served.open(new_page(), "?method=jacobi&p.n=4")
    page.wait_for_selector("#p-jacobi-tune", state="visible")
    page.click("#p-jacobi-tune")
    page.wait_for_selector(FOUND)
    pays = seconds > 1
    assert ("Do not speculate" in page.inner_text(FOUND)) is not pays
    page.click("text=Use these settings" if pays else "text=Use autoregressive decoding")
    chosen = "document.querySelector('#run-method input').value"
    page.wait_for_function(f"{chosen} === '{'Jacobi' if pays else 'Autoregressive'}'")
    if pays:
        page.wait_for_function("document.querySelector('#p-jacobi-n input').value === '9'")
    page.click(".app-settings-race .app-close")
    assert page.is_hidden(".app-settings-race")
