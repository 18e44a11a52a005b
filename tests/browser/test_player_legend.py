"""The legend and the keys of views: what is drawn is explained beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.browser.conftest import Shown
from tests.tiers import slow
from tests.viz.records import record
from viz.palette import MEANINGS, Fate

Show = Callable[..., Shown]


def legend(shown: Shown) -> list[str]:
    return [str(words) for words in shown.run("[...player.legend.node.children].map((item) => item.textContent)")]


@slow  # some seconds in a browser
def test_the_legend_explains_what_the_open_views_draw(show: Show) -> None:
    """Jacobi's answers and Ouroboros's sparks are no node's fate, and stood in no legend."""
    for method, view, fate in (("jacobi", "window", Fate.EXPLORED), ("ouroboros", "tree", Fate.INSPIRED)):
        bare = replace(record(method), steps=record(method).steps[:1])
        shown, label = show(bare, height=2400), MEANINGS[fate].label
        shown.do("player.change({ open: new Set(['timeline']) })")
        assert label not in legend(shown)
        shown.do(f"player.cards.goto('{view}')")
        assert label in legend(shown)
        shown.do(f"player.cards.toggle('{view}', false)")
        assert label not in legend(shown)


def test_greys_and_stripes_are_explained_by_the_key_of_their_view(show: Show) -> None:
    shown = show(record("lookahead"), step=6, height=2400)
    shown.do("player.cards.goto('cache')")
    key = shown.text("[data-view=cache] .ss-key")
    assert all(words in key for words in ("read", "seen by no row", "moved", "overwritten"))
    looks = """[...document.querySelectorAll("[data-view=cache] .ss-swatch")].map((mark) =>
      [mark.className, getComputedStyle(mark).backgroundImage !== "none", mark.offsetWidth > 0])"""
    hatched = [("ss-hatch" in name, painted) for name, painted, seen in shown.run(looks) if seen]
    assert hatched == [(False, False), (True, True), (True, True), (False, False)]
    shown.do("player.cards.goto('pair')")
    assert shown.run('[...document.querySelectorAll("[data-view=pair] :is(.ss-figure, .ss-key)")].length') == 1
