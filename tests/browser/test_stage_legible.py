"""Every word on the stage of every method can be read: how large it is, how it stands out, and that it is not cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import Shown
from tests.tiers import choose, sampled, slow
from tests.viz.records import METHODS, record

Show = Callable[..., Shown]
SCREENS = {"phone": (390, 844, 11), "projector": (1280, 720, 12)}
# Of every text: what it says, its size on the screen, and its contrast to the least favourable background below it.
TEXTS = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colours = new Map();
  const rgba = (colour) => {
    if (!colours.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      colours.set(colour, [...canvas.getImageData(0, 0, 1, 1).data].map((value) => value / 255));
    }
    return colours.get(colour);
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((value, i) => value * a + below[i] * (1 - a)).concat(1);
  const light = (colour) => {
    const [r, g, b] = colour.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (element) => {
    const own = rgba(getComputedStyle(element).backgroundColor);
    return own[3] === 1 || element === document.body ? own : over(own, ground(element.parentElement));
  };
  const opacity = (element) => (
    element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1);
  const floor = document.querySelector(".ss-floor");
  const scale = floor.getBoundingClientRect().width / floor.offsetWidth;
  const walker = document.createTreeWalker(floor, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const style = getComputedStyle(element);
    const below = ground(element);
    const [r, g, b, a] = rgba(style.color);
    const ink = over([r, g, b, a * opacity(element)], below);
    const size = parseFloat(style.fontSize) * scale;
    texts.push({ text: walker.currentNode.data, size, contrast: contrast(ink, below) });
  }
  return texts;
})()"""


def texts(shown: Shown) -> list[dict[str, Any]]:
    """All texts of the stage in the phases of some steps."""
    steps = [2, len(shown.trace.steps) // 2]
    texts = sum(shown.walk(steps, ["propose", "accept", "commit"], TEXTS), [])
    assert len(texts) > 20
    return texts


# Each way to draw guesses once; the scenes of the other methods are made of the same pieces.
@slow  # some seconds in a browser
@sampled
@pytest.mark.parametrize("method", choose(METHODS, ("lookahead", "draft_model", "ngrammys", "medusa", "ouroboros")))
def test_every_word_is_large_and_dark_enough(show: Show, method: str) -> None:
    """Nothing on the stage is smaller than 11 pixels on a phone or 12 elsewhere, or of a contrast below 4.5."""
    shown = show(record(method))
    for width, height, least in SCREENS.values():
        shown.page.set_viewport_size({"width": width, "height": height})
        seen = texts(shown)
        assert [each for each in seen if each["size"] < least - 0.1] == []
        assert [each for each in seen if each["contrast"] < 4.5] == []
    shown.do("document.body.classList.add('dark')")
    assert [each for each in texts(shown) if each["contrast"] < 4.5] == []


@pytest.mark.parametrize("method", ["medusa", "draft_model", "ouroboros"])
def test_words_are_as_wide_as_their_pieces_allow(show: Show, method: str) -> None:
    """A word of up to eight letters is whole on a desk, and its feet are inside its piece."""
    shown = show(record(method), width=1440, height=900)
    for step in range(0, len(shown.trace.steps), 3):
        shown.do(f"player.seek({step}, 'commit', false)")
        cut = shown.run(
            '[...document.querySelectorAll(".ss-piece-word")].filter((word) => word.textContent.length <= 8'
            " && (word.scrollWidth > word.offsetWidth || word.scrollHeight > word.offsetHeight + 1))"
            ".map((word) => word.textContent)"
        )
        assert cut == []
