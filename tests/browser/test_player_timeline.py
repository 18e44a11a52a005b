"""The timeline as a picture: where its steps end, and which one a visitor presses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.conftest import Shown
from tests.viz.records import record, timed

Show = Callable[..., Shown]
# Where the filled areas of the lower chart rise or fall, in steps.
EDGES = """(() => {
  const { gd } = player.cards.cards.get("timeline").content, { xaxis } = gd._fullLayout;
  const paths = [...gd.querySelectorAll(".xy2 .js-fill")].map((path) => path.getAttribute("d"));
  const xs = paths.flatMap((d) => [...d.matchAll(/[ML]([-\\d.]+),|H([-\\d.]+)/g)].map((found) => found[1] ?? found[2]));
  return [...new Set(xs.map((x) => Math.round(xaxis.p2d(Number(x)) * 20) / 20))].sort((a, b) => a - b);
})()"""


def test_the_time_of_every_step_is_drawn_equally_wide(show: Show) -> None:
    """The area of the last step ended at its middle, under a bar of full width."""
    trace = timed(record("lookahead"))
    shown = show(trace, height=2400)
    shown.do("player.cards.goto('timeline')")
    shown.wait("player.cards.cards.get('timeline').content.drawn !== null")
    assert shown.run(EDGES) == [k + 0.5 for k in range(len(trace.steps))]


@pytest.mark.slow  # some seconds in a browser
@pytest.mark.parametrize("resized", [False, True])
def test_pressing_a_step_leads_to_it(show: Show, resized: bool) -> None:
    """The point of a step's time stands where the next step begins: on either side of it is another step.

    Once a chart's width had changed, it heard no press any more.
    """
    trace = timed(record("lookahead"))
    shown = show(trace, height=2400, reduced_motion="reduce")
    shown.do("player.cards.goto('timeline')")
    shown.wait("player.cards.cards.get('timeline').content.drawn !== null")
    if resized:
        width = "player.cards.cards.get('timeline').content.gd._fullLayout.width"
        before = shown.run(width)
        shown.page.set_viewport_size({"width": 1500, "height": 2400})
        shown.wait(f"{width} > {before}")
    height = trace.steps[5].timing.forward_ms
    for step, share in ((5, 0.4), (6, -0.4)):
        place = shown.run(
            """(() => { const { gd } = player.cards.cards.get("timeline").content, { xaxis, yaxis2 } = gd._fullLayout;
          const box = gd.getBoundingClientRect(), [x, y] = [xaxis.d2p(given[0]), yaxis2.d2p(given[1])];
          return [box.left + xaxis._offset + x, box.top + yaxis2._offset + y]; })()""",
            [step + share, height],
        )
        shown.do("player.cards.cards.get('timeline').content.gd._hoverdata = undefined")
        shown.page.mouse.move(place[0] - 2, place[1])
        shown.page.mouse.move(*place)
        shown.wait("player.cards.cards.get('timeline').content.gd._hoverdata?.length")  # plotly saw the pointer
        shown.page.mouse.click(*place)
        shown.at(f"{step}/commit")
