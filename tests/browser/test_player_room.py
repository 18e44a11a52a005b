"""Every board has room: nothing is cut, in a column of the page, on a phone and on the full screen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tiers import choose, crossed, slow
from tests.viz.records import recorded

from .conftest import Shown

Show = Callable[..., Shown]
# A view of a recording with the longest rows or words that it has, and the step.
BOARDS = [
    ("lookahead-reference", "window", 8),
    ("lookahead-reference", "pool", 8),
    ("ngrammys-defaults", "pool", 4),
    ("medusa-defaults", "pool", 5),
    ("ouroboros-defaults", "pool", 4),
    ("smollm2-prime-prompt_lookup", "pool", 28),
    ("smollm2-prime-rest", "pool", 5),
]
# A window, heads and strings: boards of the other methods are such ones.
THREE = [board for board in BOARDS if board[:2] in (("lookahead-reference", "window"), ("medusa-defaults", "pool"),
                                                    ("smollm2-prime-prompt_lookup", "pool"))]  # fmt: skip
# Words and cells that leave their figure, and pixels that the figure is short of what it needs.
CUT = """(() => { const plot = player.cards.cards.get(given).plot, whole = plot.box.getBoundingClientRect();
  const parts = [...plot.box.querySelectorAll(".ss-cells path, .ss-cell-words text, .ss-plot text")];
  const out = parts.filter((part) => { const { left, right, top, bottom, width } = part.getBoundingClientRect();
    return width && (left < whole.left - 1 || right > whole.right + 1 || top < whole.top - 1
      || bottom > whole.bottom + 1); });
  return [out.map((part) => part.textContent || part.parentNode.className.baseVal),
    Math.max(0, plot.view.base.least - whole.width)]; })()"""

# Tokens in wide cells that are wider than their cells.
SPILT = """(() => { const { cells } = player.cards.cards.get("pool").plot;
  let word = 0;
  return cells.drawn.flatMap(([, layer]) => [...layer.text ?? []].flatMap((text) => {
    const node = text && cells.words.children[word++];
    const spilt = node && layer.span && node.getComputedTextLength() > 2 * cells.halves(layer)[0];
    return spilt ? [node.textContent] : []; })); })()"""


def opened(show: Show, run: str, view: str, step: int, **size: int) -> Shown:
    shown = show(recorded(run), step=step, **size)
    shown.do(f"player.cards.goto('{view}')")
    shown.wait(f"player.cards.cards.get('{view}').content.drawn !== null")
    return shown


@pytest.mark.parametrize("run", choose(("prompt-lookup-defaults", "ngrammys-defaults"), {"prompt-lookup-defaults"}))
def test_tokens_fit_into_their_cells_on_a_phone(show: Show, run: str) -> None:
    """Words that spilt over their squares ran into those beside them."""
    shown = opened(show, run, "pool", 6, width=390, height=844)
    assert len(shown.run('[...document.querySelectorAll("[data-view=pool] .ss-cell-words text")]')) > 20
    assert shown.run(SPILT) == []


@slow  # some seconds in a browser
@pytest.mark.parametrize(("run", "view", "step", "size"), crossed(BOARDS, [(1280, 720), (390, 844)]))
def test_a_board_has_room_for_its_cells_and_words(
    show: Show, run: str, view: str, step: int, size: tuple[int, int]
) -> None:
    """A column that is too narrow is given up for the whole page; a phone scrolls inside of the card."""
    width, height = size
    shown = opened(show, run, view, step, width=width, height=height)
    assert shown.run(CUT, view) == [[], 0]
    card = f"player.cards.cards.get('{view}').node"
    assert shown.run("document.documentElement.scrollWidth") <= width
    hidden = shown.run(f"{card}.scrollWidth - {card}.clientWidth")
    assert hidden <= 0 or (width == 390 and shown.run(f"getComputedStyle({card}).overflowX") == "auto")


@slow  # some seconds in a browser
@pytest.mark.parametrize("board", choose(BOARDS, THREE))
def test_a_board_fills_the_full_screen_as_a_whole(show: Show, board: tuple[str, str, int]) -> None:
    """Places grew and cells did not: signs floated above the cells that they belong to."""
    run, view, step = board
    shown = opened(show, run, view, step, width=1440, height=900)
    plot = f"player.cards.cards.get('{view}').plot"
    before = shown.run(f"[{plot}.height(), 2 * {plot}.cells.halves({plot}.cells.drawn[0][1])[1]]")
    shown.page.click(f"[data-view={view}] button[aria-label*='on the full screen']")
    shown.wait(f"{plot}.box.closest('.ss-filled') && {plot}.gd._fullLayout.height > {before[0]} * 1.05")
    after = shown.run(f"[{plot}.gd._fullLayout.height, 2 * {plot}.cells.halves({plot}.cells.drawn[0][1])[1]]")
    assert after[0] / before[0] == pytest.approx(after[1] / before[1], rel=0.02) and after[1] > before[1]
    assert shown.run(CUT, view)[0] == []
    card = "player.root.querySelector('.ss-filled')"
    assert shown.run(f"[{card}.scrollHeight - {card}.clientHeight, {card}.scrollWidth - {card}.clientWidth]") == [0, 0]
