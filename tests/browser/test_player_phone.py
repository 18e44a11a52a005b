"""Charts on a phone: words stand beside one another, inside their picture."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tiers import crossed, slow
from tests.viz.records import recorded
from viz.lessons.sources import RunLibrary

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


@slow  # some seconds in a browser
@pytest.mark.parametrize(("step", "name"), crossed([(11,), (40,)], ["mask", "window"]))
def test_words_neither_meet_nor_leave_the_picture(show: Show, name: str, step: int) -> None:
    shown = show(recorded(RUN), step=step, width=390, height=900)
    shown.do(f"player.cards.goto('{name}')")
    shown.wait(f"player.cards.cards.get('{name}').content.drawn !== null")
    labels, notes, width = shown.run(BOXES, name)
    assert labels and all(one[1] <= other[0] for one, other in zip(labels, labels[1:], strict=False))
    assert all(left >= 0 and right <= width for left, right in notes)


@slow  # some seconds in a browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_ring_of_slots_is_whole_and_its_words_are_in_it(show: Show, width: int) -> None:
    """At the step that writes the last slots and the first ones, in all phases."""
    shown = show(RunLibrary().trace("lesson-ring"), step=19, width=width, height=900)
    shown.do("player.cards.goto('cache')")
    shown.wait("player.cards.cards.get('cache').content.drawn !== null")
    seen = shown.walk(
        [19],
        ["propose", "verify", "commit"],
        """(() => {
          const { box } = player.cards.cards.get("cache").content;
          const card = box.closest(".ss-card").getBoundingClientRect();
          const parts = [...box.querySelectorAll(".barlayer .point path, .scatterlayer text, .ss-cell-words text")];
          const words = [...box.querySelectorAll(".scatterlayer .textpoint")].map((text) => text.textContent.trim());
          return [parts.every((part) => {
            const { left, right } = part.getBoundingClientRect();
            return left >= card.left && right <= card.right;
          }), box.querySelectorAll(".barlayer .point path").length, words.filter(Boolean)];
        })()""",
    )
    assert [inside for inside, _, _ in seen] == [True] * 3
    assert [words for _, _, words in seen] == [
        ["window: slot 511"],
        ["window: slot 511", "overwritten: 4 slots"],
        ["window: slot 511", "next: slot 4", "overwritten: 4 slots"],
    ]
    arcs = [count for _, count, _ in seen]
    assert arcs[0] < arcs[1] < arcs[2]
