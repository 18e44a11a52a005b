"""The player's layout: what is seen at once, what stays in its place while a run plays, what takes how many presses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import Shown
from tests.tiers import choose, crossed, slow
from tests.viz.records import record, recorded
from viz.fates import node_fates
from viz.palette import Fate
from viz.stream import play

Show = Callable[..., Shown]
SCREENS = [(1280, 720), (1440, 900), (1920, 1080)]
ABOVE = 110  # pixels of a page's own head above the player
PLACES = """[...player.root.querySelectorAll(".ss-sticky, .ss-transport > :not(.ss-drawer), .ss-phase, .ss-say, "
  + ".ss-words, .ss-text, .ss-stage, .ss-legend, .ss-tabs, .ss-card")].map((node) => {
    const { x, y, width, height } = node.getBoundingClientRect();
    return [x, y, width, height].map(Math.round); })"""
OPEN = '[...document.querySelectorAll(".ss-grid .ss-card")].map((card) => card.dataset.view)'
SEEN = """given.filter((part) => {
  const box = player.root.querySelector(part).getBoundingClientRect();
  return !(box.width && box.height && box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth); })"""
STEP = 17  # of the task "why was guess 3 rejected?"


def on_a_page(shown: Shown) -> None:
    """Put the height of a page's head above the player, and nothing else."""
    shown.do("document.querySelector('h1').style.cssText = 'height: 0; margin: 0; overflow: hidden'")
    shown.do(f"document.querySelector('label').style.cssText = 'display: block; height: {ABOVE}px; overflow: hidden'")
    shown.do("player.cards.resized()")


# Two with other views and keys; which ones the rest have, tests of views and tables show.
@slow  # some seconds in a browser
@pytest.mark.parametrize(
    "method", choose(["lookahead", "medusa", "draft_model", "kangaroo"], ["lookahead", "draft_model"])
)
def test_only_text_and_stage_are_open_until_a_view_is_asked_for(show: Show, method: str) -> None:
    shown = show(record(method))
    assert shown.run(OPEN) == [] and shown.run("player.place().view") is None
    assert shown.page.is_visible(".ss-stage") and shown.page.is_visible(".ss-text")
    keys = shown.run('[...player.root.querySelectorAll(".ss-tab kbd")].map((key) => key.textContent)')
    assert keys == [str(place + 1) for place in range(len(keys))], "keys in the order of what they open"
    shown.press(keys[shown.run('[...player.cards.buttons.keys()].indexOf("timeline")')])
    shown.wait('document.activeElement.dataset.view === "timeline"')
    shown.page.click(".ss-tab:has-text('Token tree')")
    shown.page.wait_for_selector("[data-view=tree]")
    assert shown.run(OPEN) == ["tree", "timeline"] and shown.run("player.place().view") == "tree"
    shown.page.click(".ss-tab:has-text('Token tree')")
    shown.wait('!player.root.querySelector("[data-view=tree]")')
    assert shown.run("player.place().view") is None


@slow  # some seconds in a browser
def test_views_that_another_run_has_too_stay_open(show: Show) -> None:
    shown = show(record("lookahead"), views=("window", "timeline"))
    shown.do("player.reset(); player.feed(given)", play.lines(record("medusa")))
    assert shown.run(OPEN) == ["timeline"]


@slow  # some seconds in a browser
@pytest.mark.parametrize(
    ("name", "size"),
    crossed([("smollm2-prime-lookahead",), ("smollm2-prime-medusa",), ("smollm2-prime-kangaroo",)], SCREENS),
)
def test_text_and_stage_are_seen_at_once(show: Show, name: str, size: tuple[int, int]) -> None:
    """Once a lecturer saw the text and the first row of the stage, and had to scroll for the rest."""
    shown = show(recorded(name), step=5, width=size[0], height=size[1])
    on_a_page(shown)
    parts = [".ss-transport", ".ss-say", ".ss-text", ".ss-stage", ".ss-legend"]
    assert shown.run(SEEN, parts) == []
    assert shown.run("player.transport.bar.offsetHeight") < 50, "the controls are one row"
    assert shown.run("player.legend.node.offsetHeight") < 32, "the legend is one line"
    lines = "player.text.node.clientHeight / parseFloat(getComputedStyle(player.text.node).lineHeight)"
    assert shown.run(f"Math.floor({lines})") == 3


@slow  # some seconds in a browser
@pytest.mark.parametrize(("method", "size"), crossed([("lookahead",), ("ouroboros",)], [(1280, 720), (390, 844)]))
def test_nothing_moves_from_step_to_step(show: Show, method: str, size: tuple[int, int]) -> None:
    """The narration wrapped to as many lines as it had: all below it jumped by 21 pixels, on a phone by 67."""
    trace = recorded(f"smollm2-prime-{method}")
    shown = show(trace, width=size[0], height=size[1], cap=None, views=("tree",))
    shown.do("player.cards.toggle('counters', true)")
    shown.do("scrollTo(0, 0)")
    moves = f"""await (async () => {{
      const places = () => JSON.stringify({PLACES}), first = places(), moved = [];
      for (let step = 0; step <= Math.min(30, player.record.last); step += 1) {{
        for (const phase of Specscope.PHASES) {{
          player.seek(step, phase, false);
          player.flush();
          if (places() !== first) moved.push(`${{step}}/${{phase}}`);
        }}
      }}
      return moved;
    }})()"""
    assert shown.run(moves) == []
    says = shown.run("player.record.steps.map((step) => step.say.length)")
    assert max(says) > min(says) + 60, "some sentences need a line more than others"


def test_a_remark_moves_nothing(show: Show) -> None:
    shown = show(record("lookahead"))
    before = shown.run(PLACES)
    shown.press("End", "]")
    shown.wait("document.querySelector('.ss-notice').textContent.includes('No later rejection')")
    shown.press("Home")
    shown.at("0/commit")
    assert shown.page.is_visible(".ss-notice") and shown.run(PLACES) == before


def test_a_sentence_that_is_too_long_can_be_read_whole(show: Show) -> None:
    shown = show(record("lookahead"), feed=False, step=None, width=390, height=844)
    long = "word " * 200
    lines = play.lines(record("lookahead")).replace('"say":"', f'"say":"{long}')
    shown.do("player.feed(given)", lines)
    shown.at("0/commit")
    say = "player.status.say"
    assert shown.run(f"{say}.scrollHeight > {say}.clientHeight && {say}.title.startsWith(given)", long)
    shown.press("i")
    shown.wait("player.root.querySelector('.ss-why')?.textContent.includes('word word')")


def test_the_pane_is_shown_for_what_is_pinned_and_for_the_facts_of_a_step(show: Show) -> None:
    shown = show(record("lookahead"), step=6)
    before = shown.run(PLACES)
    assert not shown.page.is_visible(".ss-detail")
    shown.press("i")
    shown.page.wait_for_selector(".ss-detail")
    assert "Guesses" in shown.text(".ss-facts") and not shown.page.is_visible(".ss-chip")
    shown.press("n")
    shown.page.wait_for_selector(".ss-chip")
    assert "Esc" in shown.text(".ss-chip") and "Token id" in shown.text(".ss-facts")
    assert shown.run(PLACES) == before, "it lies over the page"
    shown.press("Escape")
    shown.page.wait_for_selector(".ss-detail", state="hidden")


@pytest.mark.parametrize(("width", "height"), [pytest.param(1440, 900, marks=slow), (1280, 720), (390, 844)])
def test_what_is_said_of_a_token_leaves_the_view_free_that_it_was_pressed_in(
    show: Show, width: int, height: int
) -> None:
    """On a phone the pane covered all of it, and on a laptop a quarter of a view as wide as the page."""
    shown = show(recorded("smollm2-prime-eagle3"), step=5, width=width, height=height)
    on_a_page(shown)
    shown.page.click(".ss-piece[data-node='1']")
    shown.page.wait_for_selector(".ss-chip")
    edges = """(({ left, right, top, bottom }) => [left, right, top, bottom])(
      player.root.querySelector(given).getBoundingClientRect())"""
    view, pane, chip = (shown.run(edges, each) for each in (".ss-stage", ".ss-detail", ".ss-chip"))
    assert pane[2] >= view[3] or pane[3] <= view[2] or pane[0] >= view[1] or pane[1] <= view[0]
    assert chip[3] <= height and view[2] >= 0
    shown.press("Escape")
    shown.page.wait_for_selector(".ss-detail", state="hidden")


PINNED = ["smollm2-prime-lookahead", "smollm2-rain-draft_model", "smollm2-prime-medusa"]


@slow  # some seconds in a browser
@pytest.mark.parametrize("name", choose(PINNED, PINNED[1:2]))  # with q of the drafter, which is the longest list
def test_a_pinned_token_shows_all_its_facts_without_scrolling(show: Show, name: str) -> None:
    """The pane beside the text was as low as the text: the last facts, and the target's best tokens, lay below it."""
    shown = show(recorded(name), step=5, width=1280, height=720)
    on_a_page(shown)
    for node in range(shown.run("player.record.nodesAt(5).count")):
        shown.do(f"player.pin(5, {node})")
        shown.wait(f"player.record.details.has(5) || {node} === 0")
        pane = "player.root.querySelector('.ss-detail')"
        assert shown.run(f"{pane}.scrollHeight <= {pane}.clientHeight")
        inside = shown.run(SEEN, [".ss-detail", ".ss-facts", ".ss-facts > div:last-child", ".ss-chip", ".ss-why"])
        assert inside == []
        piece = shown.run(
            """(() => { const pieces = [...player.root.querySelectorAll(".ss-piece.ss-pinned")];
          return !pieces.length || pieces.some((piece) => {
            const { x, y, width, height } = piece.getBoundingClientRect();
            return piece.contains(document.elementFromPoint(x + width / 2, y + height / 2)); }); })()"""
        )
        assert piece, "what is told of is not covered"


def test_what_is_used_less_waits_behind_a_button(show: Show) -> None:
    shown = show(record("lookahead"), width=390, height=844)
    drawer = (".ss-find", ".ss-toggle", ".ss-jumps", "button[aria-label='Copy link']")
    assert [part for part in drawer if shown.page.is_visible(part)] == []
    before = shown.run(PLACES)
    shown.page.click("button[aria-label='More controls']")
    assert [part for part in drawer if not shown.page.is_visible(part)] == []
    assert shown.text(".ss-where") == f"prompt / {shown.run('player.record.last')}"
    assert shown.run(PLACES) == before
    shown.page.click(".ss-foot")
    assert not shown.page.is_visible(".ss-drawer")
    shown.press("/")
    shown.wait("document.activeElement === player.transport.find.input")
    shown.page.keyboard.type("zzz")
    shown.press("Escape")
    assert not shown.page.is_visible(".ss-drawer")


# The full screen of the player


PIECES, OTHERS = ".ss-piece:not(.ss-empty) .ss-piece-word", ".ss-say, .ss-text .ss-token"
SIZES = """[...player.root.querySelectorAll(given)]
  .filter((node) => node.offsetParent).map((node) => parseFloat(getComputedStyle(node).fontSize))"""
HIDDEN = [".ss-head", ".ss-foot", ".ss-tabs", ".ss-grid"]


def lecture(show: Show, native: bool, name: str, **options: Any) -> Shown:
    """Return the player on the full screen, by its key; where a browser has none for elements, over the window."""
    shown = show(recorded(name), **options)
    if not native:
        shown.do("Element.prototype.requestFullscreen = () => Promise.reject(new TypeError())")
    shown.press("f")
    shown.wait("player.state.full && player.root.offsetHeight === innerHeight")
    if native:
        shown.wait("document.fullscreenElement === player.root")
    return shown


@slow  # layouts of many screens
@pytest.mark.parametrize(
    ("name", "native"),
    crossed([("smollm2-prime-lookahead",), ("smollm2-rain-medusa",), ("smollm2-prime-ouroboros",)], [True, False]),
)
def test_a_class_can_read_the_full_screen(show: Show, name: str, native: bool) -> None:
    """Words of at least 20 pixels on a projector of 1280 by 720; all that is needed, and nothing else."""
    shown = lecture(show, native, name, step=5, width=1280, height=720, views=("mask",))
    parts = [
        ".ss-transport",
        ".ss-slim",
        ".ss-legend",
        ".ss-say",
        ".ss-text",
        ".ss-stage",
        ".ss-strip",
        ".ss-where",
        ".ss-phases",
    ]
    assert shown.run(SEEN, parts) == []
    assert [part for part in HIDDEN if shown.page.is_visible(part)] == []
    words = sorted(shown.run(SIZES, PIECES))
    assert words[0] >= 12 and words[len(words) // 10] >= 20  # a long word is written smaller, to be whole
    assert min(shown.run(SIZES, OTHERS)) >= 20
    assert min(shown.run(SIZES, ".ss-where, .ss-phase")) >= 18
    floor = shown.run("(({ right, bottom }) => [right, bottom])(player.stage.floor.getBoundingClientRect())")
    assert floor[0] <= 1280 and floor[1] <= 720
    assert "phase" in shown.text(".ss-strip") and "leave" in shown.text(".ss-strip")
    shown.press("f")
    shown.wait("!player.state.full && !document.fullscreenElement && !player.root.matches('.ss-filled')")
    assert shown.run(OPEN) == ["mask"], "what was open is open again"


@slow  # layouts of many screens
def test_the_stage_grows_with_the_screen(show: Show) -> None:
    letters = []
    for width, height in ((1280, 720), (1920, 1080)):
        shown = lecture(show, False, "smollm2-prime-lookahead", step=5, width=width, height=height)
        letters.append(shown.run("parseFloat(player.stage.floor.style.fontSize)"))
        shown.press("Escape")
        shown.wait("!player.state.full")
    assert letters[1] > 1.4 * letters[0]


def test_a_view_takes_the_stages_place_on_the_full_screen(show: Show) -> None:
    shown = lecture(show, False, "smollm2-prime-lookahead", step=5, width=1280, height=720)
    shown.press("1")
    shown.page.wait_for_selector("[data-view=mask] .main-svg >> nth=0")
    assert not shown.page.is_visible(".ss-stage")
    assert shown.run(SEEN, ["[data-view=mask]", ".ss-say", ".ss-strip"]) == []
    shown.press("6")
    shown.wait("!player.root.querySelector('[data-view=mask]')")
    shown.press("6")
    shown.page.wait_for_selector(".ss-stage")
    assert shown.run(OPEN) == []


# Three people's tasks, by presses


@slow  # some seconds in a browser
def test_why_a_guess_was_rejected_takes_four_presses(show: Show) -> None:
    """From the recording at that step: by keys alone, or by one press on the stage."""
    for name in ("medusa-best-guesses-only", "smollm2-rain-medusa"):
        trace = recorded(name)
        assert node_fates(trace.steps[STEP])[3] is Fate.REJECTED
        shown = show(trace, step=STEP, width=1280, height=720)
        presses = ["n", "n", "n", "n"]
        shown.press(*presses)
        shown.wait("player.state.pin?.node === 3")
        assert len(presses) <= 4
        told = shown.text(".ss-detail")
        assert "Rejected" in told and "Target's choice" in told and "p, the target's" in told
        shown.press("Escape")
        shown.wait("player.state.pin === null")
        if shown.page.locator(".ss-piece[data-node='3']").count():
            shown.page.click(".ss-piece[data-node='3']")
            shown.wait("player.state.pin?.node === 3")
            assert shown.text(".ss-detail") == told


def test_which_diagonal_an_n_gram_came_from_takes_two_presses(show: Show) -> None:
    """Pointed at or pressed, an n-gram of the pool lights the cells that it was read from, and the line in them."""
    shown = show(recorded("smollm2-prime-lookahead"), step=6, width=1280, height=720)
    rows = """Object.values(Object.groupBy([...player.stage.pieces.shown.values()]
      .filter(({ node, id, origin }) => node < 0 && origin !== null && id !== origin
        && player.stage.pieces.shown.get(origin)?.fate !== undefined), ({ y }) => y))
      .filter((row) => row.length === 3).map((row) => row.map(({ id, text }) => [id, text]))"""
    ngrams = shown.run(rows)
    assert ngrams
    for ngram in ngrams:
        shown.page.click(f"[data-piece='{ngram[1][0]}']")
        shown.wait("player.root.querySelectorAll('.ss-piece.ss-kin').length >= 6")
        texts = shown.run(
            """[...player.root.querySelectorAll(".ss-piece.ss-kin")].map((node) => player.stage.pieces.shown.get(
          Number(node.dataset.piece))).filter(({ id }) => !given.includes(id)).sort((a, b) => a.y - b.y)
          .map(({ text }) => text)""",
            [id for id, _ in ngram],
        )
        assert [text for _, text in ngram] == texts[-3:]
        assert shown.page.locator(".ss-link-diagonal.ss-kin").count() == 2
        shown.page.mouse.move(0, 0)
        shown.wait("!player.root.querySelector('.ss-kin')")


def test_the_mask_row_of_a_window_cell_takes_two_presses(show: Show) -> None:
    """A class sees on the full screen what a cell of the window sees, and why."""
    shown = lecture(show, False, "smollm2-prime-lookahead", step=6, width=1280, height=720)
    nodes = shown.run("player.record.nodesAt(6)")
    node = next(i for i, source in enumerate(nodes["source"]) if source.startswith("window, 1 below"))
    shown.page.click(f".ss-piece[data-node='{node}']")
    shown.press("1")
    shown.page.wait_for_selector("[data-view=mask] .ss-mark-pinned[d]")
    assert shown.run("player.state.pin.node") == node
    edges = "(({ top, bottom }) => [top, bottom])(player.root.querySelector(given).getBoundingClientRect())"
    row, pane = shown.run(edges, ".ss-mark-pinned[d]"), shown.run(edges, ".ss-detail")
    assert row[0] >= 0 and row[1] <= pane[0], "the row is not covered by what is said of it"
    shown.wait("player.root.querySelector('.ss-why').textContent.startsWith('Sees ')")
