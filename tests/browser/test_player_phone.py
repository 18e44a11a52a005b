"""Charts on a phone: words stand beside one another, inside their picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from decoding.trace.file import read_trace

from .conftest import Shown

Show = Callable[..., Shown]
TRACE = Path(__file__).parents[2] / "assets" / "traces" / "lookahead.jsonl.gz"
BOXES = """(() => {
  const { box } = player.cards.cards.get(given).content, whole = box.getBoundingClientRect();
  const at = (node) => {
    const { left, right } = node.getBoundingClientRect();
    return [left - whole.left, right - whole.left];
  };
  const words = (kind) => [...box.querySelectorAll(kind)].map(at).sort(([a], [b]) => a - b);
  return [words(".xtick text"), words(".annotation-text"), whole.width];
})()"""


@pytest.mark.parametrize("name", ["mask", "window"])
@pytest.mark.parametrize("step", [11, 40])
def test_words_neither_meet_nor_leave_the_picture(show: Show, name: str, step: int) -> None:
    shown = show(read_trace(TRACE), step=step, width=390, height=900)
    shown.do(f"player.cards.goto('{name}')")
    shown.wait(f"player.cards.cards.get('{name}').content.drawn !== null")
    labels, notes, width = shown.run(BOXES, name)
    assert labels and all(one[1] <= other[0] for one, other in zip(labels, labels[1:], strict=False))
    assert all(left >= 0 and right <= width for left, right in notes)
