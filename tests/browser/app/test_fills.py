"""Charts keep their hatching wherever the address, the theme, the tab or the size go: their pixels show it."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.tiers import choose, slow

from .conftest import Served

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]
PLAYER = "SpecscopeApp.shown.viewer.player"
STEP = 15


def chart(page: Any, view: str) -> bytes:
    """Return the pixels of a view's chart, with the pointer nowhere."""
    page.mouse.move(0, 0)
    page.locator(f".ss-card[data-view={view}]").scroll_into_view_if_needed()  # out of sight it keeps its old size
    plot = f"{PLAYER}.cards.cards.get('{view}').content"
    fits = f"{plot}.drawn && {plot}.width === {plot}.box.clientWidth"
    page.wait_for_function(f"{PLAYER}.request === undefined && {fits}")
    return bytes(page.locator(f".ss-card[data-view={view}] .ss-figure").screenshot())


def differing(one: bytes, other: bytes) -> float:
    """Return the share of pixels that differ by more than a shift of a fraction of a pixel smooths."""
    pictures = [np.asarray(Image.open(BytesIO(png)).convert("L"), dtype=np.int16) for png in (one, other)]
    assert pictures[0].shape == pictures[1].shape
    return float((abs(pictures[0] - pictures[1]) > 48).mean())


def settle(page: Any, step: int) -> None:
    """Wait until the player and the address are at a step."""
    page.wait_for_function(f"{PLAYER}.root.dataset.at === '{step}/commit' && location.search.includes('step={step}')")


def change_theme(page: Any) -> None:
    page.click("#app-theme")


def change_tab(page: Any) -> None:
    page.get_by_role("tab", name="Race").click()
    page.get_by_role("tab", name="Run").click()


def change_size(page: Any) -> None:
    page.set_viewport_size({"width": 1100, "height": 900})
    page.set_viewport_size({"width": 1280, "height": 1000})


@slow  # it plays whole runs
@pytest.mark.parametrize("view", choose(["pair", "timeline"], ["pair"]))  # both hatch in the same way
def test_a_chart_that_lived_long_looks_like_a_new_one(new_page: NewPage, served: Served, view: str) -> None:
    page, new = new_page(), {}
    for theme in ("light", "dark"):
        served.open(page, f"?run=draft-model-names&step={STEP}&view={view}&__theme={theme}")
        new[theme] = chart(page, view)
    served.open(page, f"?run=draft-model-names&step={STEP + 2}&view={view}&__theme=light")
    assert chart(page, view)
    page.locator(".ss").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    settle(page, STEP)
    for change, theme in ((change_size, "light"), (change_tab, "light"), (change_theme, "dark")):
        change(page)
        assert page.locator(f".ss-card[data-view={view}] :is([style*='url('], [fill*='url('])").count()
        assert differing(chart(page, view), new[theme]) < 0.002, change.__name__
