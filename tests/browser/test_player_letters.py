"""Words are read from the back of a room and on a phone: their sizes as they are drawn, and what a thumb presses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tiers import slow
from tests.viz.records import recorded

from .conftest import Shown

Show = Callable[..., Shown]
RUN = "smollm2-rain-lookahead"
VIEWS = ("mask", "window", "pool", "tree", "pair", "timeline", "counters", "cache")
# Words below a size, with the size that an SVG's own scale gives them; the stage's letters are its own affair.
SMALL = """(() => {
  const walker = document.createTreeWalker(player.root, NodeFilter.SHOW_TEXT), small = [];
  while (walker.nextNode()) {
    const { data, parentElement: node } = walker.currentNode;
    if (!data.trim() || node.closest(".ss-stage, .ss-hidden") || !node.getClientRects().length) continue;
    const matrix = node.getScreenCTM?.(), scale = matrix ? Math.hypot(matrix.a, matrix.b) : 1;
    const size = scale * parseFloat(getComputedStyle(node).fontSize);
    if (size < given - 0.05) small.push([size, data.trim(), node.closest("[class]").getAttribute("class")].join(" "));
  }
  return small;
})()"""


@slow  # some seconds in a browser
@pytest.mark.parametrize(
    ("width", "height", "least"), [pytest.param(1440, 900, 12, marks=slow), (1280, 720, 12), (390, 844, 11)]
)
def test_no_word_is_smaller_than_what_is_read(show: Show, width: int, height: int, least: int) -> None:
    shown = show(recorded(RUN), step=5, width=width, height=height)
    for view in VIEWS:
        shown.do("player.cards.goto(given)", view)
        shown.wait(f"(player.cards.cards.get('{view}').content.drawn ?? '') !== ''")
        assert shown.run(SMALL, least) == []


@slow  # layouts of many screens
def test_the_full_screen_names_the_run_and_keeps_the_legend(show: Show) -> None:
    """Who looks up in the middle of a lecture sees what runs, on which prompt, and what the colours mean."""
    shown = show(recorded(RUN), step=5, width=1280, height=720)
    shown.do("Specscope.toggleFullScreen(player.root, player)")
    for view in (None, *VIEWS):
        if view:
            shown.do("player.cards.goto(given)", view)
        line, legend = shown.text(".ss-slim"), shown.text(".ss-legend")
        assert "Lookahead" in line and "SmolLM2 135M" in line and "how water becomes clouds" in line
        assert "Rejected" in legend and "5 / 68" in shown.text(".ss-where")
        assert shown.run(SMALL, 12) == []
        assert shown.run("player.legend.node.getBoundingClientRect().bottom") <= 720
    assert "becomes clouds and rain" in shown.run("player.status.prompt.title")


def test_a_thumb_finds_the_step_and_every_button(show: Show) -> None:
    shown = show(recorded(RUN), step=5, width=390, height=844)
    assert shown.text(".ss-where") == "5 / 68"
    sizes = shown.run(
        "[...player.transport.bar.querySelectorAll('button, select, .ss-scrubber')].filter((each) => each.offsetParent)"
        ".map(({ offsetWidth, offsetHeight }) => [offsetWidth, offsetHeight])"
    )
    assert all(width >= 40 and height >= 40 for width, height in sizes)
    assert shown.run("document.documentElement.scrollWidth") == 390
    assert shown.run("player.transport.bar.offsetHeight") <= 140
