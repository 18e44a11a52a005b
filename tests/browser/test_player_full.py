"""A view on the full screen: what it is read with goes there along with it, and comes back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.conftest import Shown
from tests.tiers import crossed, slow
from tests.viz.records import record

Show = Callable[..., Shown]
FULL = "button[aria-label*='on the full screen']"
PARTS = ".ss-tooltip, .ss-chip, .ss-legend"
# Which of the three a card holds, and which of them can be seen in the window.
THERE = f"""[...player.root.querySelectorAll("[data-view=tree] :is({PARTS})")].filter((part) => {{
  const {{ left, top, width, height }} = part.getBoundingClientRect();
  return width && left >= 0 && top >= 0 && left + width <= innerWidth && top + height <= innerHeight; }})
  .map((part) => part.className.split(" ")[0]).sort()"""
HOME = f"""[...player.root.querySelectorAll("{PARTS}")].map((part) =>
  [part.className, part.parentElement.className, part.previousElementSibling?.className])"""
NODE = """(() => { const plot = player.cards.cards.get("tree").content, area = plot.gd.getBoundingClientRect();
  const [point] = plot.marks.boxes(1);
  return [area.left + point.x + point.w / 2, area.top + point.y + point.h / 2]; })()"""


def filled(
    show: Show, native: bool, view: str = "tree", method: str = "draft_model", **options: int
) -> tuple[Shown, list[list[str]]]:
    """Show a view on the full screen or, where a browser has none for elements, over the window."""
    step = 4 if method == "draft_model" else 6
    shown = show(record(method), step=step, reduced_motion="reduce", **options)  # no place moves while it is used
    shown.do(f"player.cards.goto('{view}')")
    home = shown.run(HOME)
    if not native:
        shown.do("Element.prototype.requestFullscreen = () => Promise.reject(new TypeError())")
    shown.page.click(f"[data-view={view}] {FULL}")
    there = "document.fullscreenElement" if native else "player.root.querySelector('.ss-filled')"
    shown.wait(f"{there}?.dataset.view === '{view}'")
    shown.wait(f"player.cards.cards.get('{view}').content.gd._fullLayout.height > 400")
    return shown, home


@slow  # some seconds in a browser
@pytest.mark.parametrize(("native", "width"), crossed([(True,), (False,)], [1280, 390]))
def test_a_view_on_the_full_screen_is_read_with_tooltip_chip_and_legend(show: Show, native: bool, width: int) -> None:
    """They lie outside of the card, and what lies outside of a full screen is not seen."""
    shown, home = filled(show, native, width=width, height=900)
    assert shown.run(THERE) == ["ss-legend"]
    x, y = shown.run(NODE)
    shown.page.mouse.move(1, 1)
    shown.page.mouse.move(x, y)
    shown.wait("player.state.hover?.node === 1")
    assert shown.run(THERE) == ["ss-legend", "ss-tooltip"]
    shown.page.mouse.click(x, y)
    shown.wait("player.state.pin?.node === 1")
    assert shown.run(THERE) == ["ss-chip", "ss-legend", "ss-tooltip"]
    card = "player.root.querySelector('.ss-filled')"
    assert shown.run(f"{card}.scrollHeight - {card}.clientHeight") <= 0
    shown.page.click(".ss-filled .ss-chip")
    shown.wait("player.state.pin === null")
    assert shown.run("player.root.querySelectorAll('.ss-filled').length") == 1, "only the pin is released"
    shown.press("Escape")
    shown.wait("!player.root.querySelector('.ss-filled') && !document.fullscreenElement")
    assert shown.run(HOME) == home


@slow  # some seconds in a browser
def test_a_view_that_is_closed_on_the_full_screen_gives_back_what_it_was_lent(show: Show) -> None:
    shown, home = filled(show, native=False)
    shown.open("timeline")
    shown.do("player.cards.toggle('tree', false)")
    assert shown.run(HOME) == home
    shown.do("player.cards.goto('tree')")
    shown.page.click(f"[data-view=tree] {FULL}")
    shown.do("Specscope.toggleFullScreen(player.cards.cards.get('timeline').node, player)")
    assert shown.run('[...player.root.querySelectorAll(".ss-filled")].map((card) => card.dataset.view)') == ["timeline"]
    shown.press("Escape")
    assert shown.run(HOME) == home


@slow  # some seconds in a browser
@pytest.mark.parametrize("native", [True, False])
def test_a_cell_is_pinned_by_one_press_on_the_full_screen(show: Show, native: bool) -> None:
    """Plotly sends a press of its own behind the browser's, which released at once what the first had pinned."""
    shown, _ = filled(show, native, "window", "lookahead")
    x, y = shown.run(NODE.replace("tree", "window"))
    shown.page.mouse.move(x, y)
    shown.wait("player.state.hover?.node === 1")
    shown.page.mouse.click(x, y)
    shown.wait("player.state.pin?.node === 1")
    shown.do("void 0")
    assert shown.run("player.state.pin") == {"step": 6, "node": 1}
