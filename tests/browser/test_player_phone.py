"""Charts on a phone: words stand beside one another, inside their picture."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tiers import crossed
from tests.viz.records import recorded

from .conftest import Shown

Show = Callable[..., Shown]
RUN = "lookahead"
BOXES = """(() => {
  const { box } = player.cards.cards.get(given).content, whole = box.getBoundingClientRect();
  const at = (node) => {
    const { left, right } = node.getBoundingClientRect();
    return [left - whole.left, right - whole.left];
  };
  const words = (kind) => [...box.querySelectorAll(kind)].map(at).sort(([a], [b]) => a - b);
  return [words(".xtick text"), words(".annotation-text"), whole.width];
})()"""


@pytest.mark.parametrize(("step", "name"), crossed([(11,), (40,)], ["mask", "window"]))
def test_words_neither_meet_nor_leave_the_picture(show: Show, name: str, step: int) -> None:
    shown = show(recorded(RUN), step=step, width=390, height=900)
    shown.do(f"player.cards.goto('{name}')")
    shown.wait(f"player.cards.cards.get('{name}').content.drawn !== null")
    labels, notes, width = shown.run(BOXES, name)
    assert labels and all(one[1] <= other[0] for one, other in zip(labels, labels[1:], strict=False))
    assert all(left >= 0 and right <= width for left, right in notes)
