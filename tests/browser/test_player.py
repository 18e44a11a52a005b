"""The player as a visitor uses it: transport, keys, phases, pins, tables, widths and themes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from decoding import tree
from tests.browser.conftest import Shown
from tests.tiers import choose, sampled, slow
from tests.viz.records import METHODS, QUICK, parsed, record
from viz.fates import emitted_fates, node_fates
from viz.palette import DARK, LIGHT, Fate
from viz.run_state import RunState
from viz.stream import play
from viz.views.mask_words import sentences

Show = Callable[..., Shown]
SEEN = """Object.fromEntries([...document.querySelectorAll(".ss-card .ss-marks[data-seen]")].map((svg) =>
  [svg.closest(".ss-card").dataset.view, svg.dataset.seen]))"""
OPEN = '[...document.querySelectorAll(".ss-grid .ss-card")].map((card) => card.dataset.view)'


@sampled
@pytest.mark.parametrize("method", choose(METHODS, QUICK))
def test_every_view_of_every_method_draws(show: Show, method: str) -> None:
    """A view that fails in the browser would be an empty card, at any step and in any phase."""
    shown = show(record(method), height=6000)
    shown.do("player.change({ open: new Set(player.cards.views.map((view) => view.name)) })")
    shown.walk((0, len(shown.trace.steps) - 1), ["propose", "commit"], "null")
    plots = shown.run(
        '[...document.querySelectorAll(".ss-plot")].map((plot) => [Boolean(plot.querySelector("svg")), '
        'plot.getAttribute("role"), plot.getAttribute("aria-label").includes(`step ${player.state.step} `)])'
    )
    assert plots == [[True, "img", True]] * len(plots) and len(plots) >= 3
    assert shown.run("player.cards.views.length") == len(shown.run(OPEN))
    assert shown.text(".ss-say") == shown.run("player.record.steps.at(-1).say")


def test_keys_move_through_the_run(show: Show) -> None:
    """Each key of the help does what it says, and none acts while something is being typed."""
    shown, last = show(record("lookahead")), len(record("lookahead").steps) - 1
    for key, place in (("ArrowRight", "1/commit"), ("ArrowLeft", "0/commit"), ("Shift+ArrowRight", "10/commit"),
                       ("End", f"{last}/commit"), ("Shift+ArrowLeft", f"{last - 10}/commit"), ("Home", "0/commit"),
                       (".", "1/propose"), (".", "1/verify"), (",", "1/propose"), (",", "0/commit")):  # fmt: skip
        shown.press(key)
        shown.at(place)
    rejected = [k for k, step in enumerate(record("lookahead").steps) if Fate.CORRECTION in _emitted(k)]
    shown.press("]")
    shown.at(f"{rejected[0]}/commit")
    shown.press("End", "[")
    shown.at(f"{[k for k in rejected if k < last][-1]}/commit")
    shown.press("6")
    shown.wait('document.activeElement.dataset.view === "timeline"')
    shown.press("c", "?")
    shown.wait('document.querySelector("dialog[open]")?.textContent.includes("play or pause")')
    shown.press("Escape", "Home")
    shown.at("0/commit")
    assert "compare" in shown.run("asked")
    shown.page.focus("#other")
    shown.press("ArrowRight", "End", "]", "Space")
    assert shown.run("[player.state.step, player.state.playing]") == [0, False]


def test_the_veil_over_later_steps_spares_the_words_about_the_first(show: Show) -> None:
    """The timeline's two charts are crossed by line and veil; the sentence between them is of no step."""
    shown = show(record("lookahead"))
    shown.press("6")
    shown.wait('document.querySelector("[data-view=timeline] .ss-mark-cursor")?.getAttribute("d")')
    parts = """["cursor", "veil"].map((name) =>
      document.querySelector(`[data-view=timeline] .ss-mark-${name}`).getAttribute("d").split("M").length - 1)"""
    assert shown.run(parts) == [2, 2]


def _emitted(k: int) -> list[int]:
    return [*emitted_fates(record("lookahead").steps[k])]


@slow  # it plays in real time
def test_play_walks_the_phases_and_stops_at_the_end(show: Show) -> None:
    """Teaching play shows every phase, debug play whole steps; the end is an end, and play begins anew behind it."""
    shown, last = show(record("lookahead")), len(record("lookahead").steps) - 1
    shown.do("globalThis.places = []; player.on.change = ({ step, phase }) => places.push(`${step}/${phase}`)")
    shown.do(
        "globalThis.busy = 300; const work = () => { for (const until = performance.now() + busy; "
        "performance.now() < until;); if (busy) requestAnimationFrame(work); }; work()"
    )
    shown.do("player.change({ speed: '2' })")  # a phase is shorter than a frame of this machine
    shown.press("Space")
    shown.wait("places.includes('2/propose')")
    shown.press("Space")
    places = [place for place in shown.run("places") if place.startswith("1/")]
    assert places == [f"1/{phase}" for phase in ("propose", "verify", "answers", "accept", "commit")]
    shown.do("busy = 0; places.length = 0; player.change({ substeps: false, speed: '8' })")
    shown.page.click("button[aria-label='More controls']")
    shown.page.click("text=Sub-steps")
    shown.page.click("text=Sub-steps")
    shown.press("Space")
    shown.wait("!player.state.playing")
    shown.at(f"{last}/commit")
    assert {place.split("/")[1] for place in shown.run("places")} == {"commit"}
    shown.do("player.change({ speed: 'real' })")
    shown.press("Space")
    shown.wait(f"player.state.step < {last} || !player.state.playing")
    shown.wait(f"!player.state.playing && player.state.step === {last}")


def test_the_scrubber_and_the_buttons_lead_to_steps(show: Show) -> None:
    """The bar says where it stands, ticks mark rejections, and jumps find what they are named for."""
    shown, steps = show(record("lookahead")), record("lookahead").steps
    shown.page.fill(".ss-scrubber", "5")
    shown.at("5/commit")
    assert shown.page.get_attribute(".ss-scrubber", "aria-valuetext") == f"step 5 of {len(steps) - 1}"
    ticks = shown.page.get_attribute(".ss-tick-bad", "d")
    assert ticks.count("M") == sum(Fate.CORRECTION in _emitted(k) for k in range(len(steps))) > 0
    shown.press("Home")
    shown.page.click("button[aria-label='More controls']")
    shown.page.click("button[aria-label='Next hit']")
    shown.at(f"{next(k for k, step in enumerate(steps) if k and step.accepted)}/commit")
    shown.press("End")
    shown.page.click("button[aria-label='Next rejection']")
    shown.wait('document.querySelector(".ss-notice").textContent.includes("No later rejection")')


def test_nothing_is_told_before_it_has_happened(show: Show) -> None:
    """Guesses are only guesses until the target has judged them, and tokens join the text at the end of the step."""
    trace = record("lookahead")
    k = next(k for k, step in enumerate(trace.steps) if step.accepted and step.drafted > step.accepted)
    before = "".join(trace.texts[token] for step in trace.steps[:k] for token in step.emitted)
    shown = show(trace, step=k, height=2600, views=("tree",))
    written = (
        '[...document.querySelectorAll(".ss-text .ss-token[data-at]:not([hidden])")].map((s) => s.textContent).join("")'
    )
    fates = """player.cards.cards.get("tree").content.figure.data.flatMap((trace) =>
      trace.visible === false || typeof trace.marker?.color !== "object" ? [] : Array.from(trace.marker.color))"""
    assert Fate.ACCEPTED in shown.run(fates)
    for phase in ("propose", "verify", "answers", "accept"):
        shown.do(f"player.goto({{ step: {k}, phase: '{phase}' }})")
        assert shown.run(written) == before
        assert (Fate.ACCEPTED in shown.run(fates)) == (phase == "accept")
        ghosts = shown.run('[...document.querySelectorAll(".ss-ghosts .ss-fate-2")].length')
        assert (ghosts > 0) == (phase == "accept")
        shown.do("player.pin(player.state.step, 1)")
        goes_on = "Likeliest next" if trace.header.sampling["temperature"] else "Target's next token"
        assert (goes_on in shown.text(".ss-facts")) == (phase in ("answers", "accept"))
        assert "wanted" not in shown.text(".ss-say")
    shown.press("Escape", ".")
    shown.at(f"{k}/commit")
    emitted = "".join(trace.texts[token] for token in trace.steps[k].emitted)
    assert shown.run(written) == before + emitted and emitted


def test_a_pin_lights_exactly_what_the_node_sees(show: Show) -> None:
    """Mask, tree and window light the ancestors of the pinned node, and the pane says why."""
    trace = record("lookahead")
    k = len(trace.steps) - 2
    step, story = trace.steps[k], RunState.of(trace)
    shown = show(trace, step=k, height=2400)
    shown.do("player.change({ open: new Set(['mask', 'window', 'tree']) })")
    for node in (1, len(step.tokens) // 3, len(step.tokens) - 1):
        shown.do(f"player.pin({k}, {node})")
        path, seen = tree.path_to(step.parents, node), shown.run(SEEN)
        guess = node_fates(step)[node] is not Fate.EXPLORED
        assert {*seen} >= {"mask", "tree" if guess else "window"}
        for view in {*seen} - {"mask"}:
            assert {int(other) for other in seen[view].split(",")} <= {*path}
        assert {*map(int, seen["tree" if guess else "window"].split(","))} == {*path}
        cells = shown.run(
            """(() => { const plot = player.cards.cards.get("mask").content;
          const trace = plot.view.nodes.indexOf("rows"); const figure = plot.figure.data[trace];
          const line = figure.z[plot.marks.rowPlace(trace, player.state.pin.node).row];
          return Array.from(line).slice(line.length - given).map(Boolean); })()""",
            len(step.tokens),
        )
        assert cells == tree.closure(step.parents)[node].tolist()
        shown.wait(f"player.record.details.has({k})")
        assert shown.text(".ss-why") == sentences(story, k)[node]
        assert "press to release" in shown.text(".ss-chip")
    shown.do(f"player.togglePin({k}, {len(step.tokens) - 1})")
    assert shown.run(SEEN) == {} and not shown.page.is_visible(".ss-chip")
    shown.do(f"player.pin({k}, 1)")
    shown.press("Escape")
    shown.wait("player.state.pin === null")


def test_a_token_can_be_found(show: Show) -> None:
    """Whoever looks for a token in the pool or the text is led to the next step that has it, and to its node."""
    trace = record("lookahead")
    shown = show(trace)
    wanted = trace.texts[trace.steps[8].tokens[-1]]
    holds = {token for token, text in trace.texts.items() if wanted in text}
    places = [
        (k, next((node for node, token in enumerate(step.tokens) if node and token in holds), None))
        for k, step in enumerate(trace.steps)
        if k and holds & {*step.tokens[1:], *step.emitted}
    ]
    shown.press("/")
    shown.page.keyboard.type(wanted)
    for k, node in places[:5]:
        shown.press("Enter")
        shown.at(f"{k}/commit")
        assert shown.run("player.state.pin?.node ?? null") == node
    assert {node for _, node in places[:5]} != {None}
    shown.press("Shift+Enter")
    shown.at(f"{places[3][0]}/commit")
    shown.press("Escape", "End", "/", "Enter")
    shown.wait('document.querySelector(".ss-notice").textContent.includes("No later step")')


def test_pointing_links_text_and_views(show: Show) -> None:
    """A token under the pointer is told of, and its node is outlined in every open view; pressing it pins it."""
    trace = record("lookahead")
    k = next(k for k, step in enumerate(trace.steps) if step.accepted)
    shown = show(trace, step=k, height=2400, views=("mask", "tree"), reduced_motion="reduce")
    at = sum(len(step.emitted) for step in trace.steps[:k])
    token = f".ss-text .ss-token[data-at='{at}']"
    shown.page.hover(token)
    shown.wait('!document.querySelector(".ss-tooltip").hidden')
    assert "Accepted" in shown.text(".ss-tooltip") and "n-gram" in shown.text(".ss-tooltip")
    shown.wait('document.querySelectorAll(".ss-mark-hovered[d]").length >= 2')
    shown.page.click(token)
    shown.wait(f"player.state.pin?.node === {trace.steps[k].path[1]}")
    box = shown.run(
        """(() => { const plot = player.cards.cards.get("tree").content;
      const [point] = plot.marks.boxes(given); const area = plot.gd.getBoundingClientRect();
      return [area.left + point.x + point.w / 2, area.top + point.y + point.h / 2]; })()""",
        trace.steps[k].path[1],
    )
    shown.page.mouse.move(box[0] - 3, box[1] - 3)
    shown.page.mouse.move(*box)
    shown.wait(f"player.state.hover?.node === {trace.steps[k].path[1]}")
    shown.page.mouse.click(*box)
    shown.wait("player.state.pin === null")


def test_a_token_can_be_pinned_from_the_table_of_the_text(show: Show) -> None:
    """What each view's table holds is tested in test_player_tables.py."""
    trace = record("lookahead")
    shown = show(trace, step=len(trace.steps) - 2)
    step = trace.steps[len(trace.steps) - 2]
    shown.page.click(".ss-words button[aria-label*='table']")
    rows = shown.run('[...document.querySelectorAll("dialog[open] tbody tr")].map((row) => row.cells[0].textContent)')
    assert rows == [trace.texts[token].replace(" ", "·") for token in step.tokens]
    shown.page.click("dialog[open] tbody tr:nth-child(3) button")
    shown.wait("player.state.pin?.node === 2")


@slow  # some seconds in a browser
def test_a_phone_shows_one_view_at_a_time(show: Show) -> None:
    """At 390 pixels the page does not scroll sideways, and the transport stays in sight."""
    shown = show(record("lookahead"), width=390, height=844, has_touch=True, step=6)
    assert shown.run(OPEN) == []
    for name in shown.run("player.cards.views.map((view) => view.name)"):
        shown.do(f"player.cards.goto('{name}')")
        assert shown.run(OPEN) == [name]
        assert shown.run("document.documentElement.scrollWidth") <= 390, name
    shown.do("scrollTo(0, document.body.scrollHeight)")
    top = shown.run('document.querySelector(".ss-transport").getBoundingClientRect().top')
    assert 0 <= top < 100
    small = shown.run("""[...document.querySelectorAll(".ss button, .ss select")].filter((node) => node.offsetParent)
      .filter((node) => Math.min(node.getBoundingClientRect().width, node.offsetHeight) < 24).length""")
    assert small == 0


def test_dark_and_light_follow_the_page(show: Show) -> None:
    """The theme of the page is the theme of every figure, also when it changes under a run."""
    shown = show(record("lookahead"), views=("mask",))
    paper = "player.cards.cards.get('mask').content.gd._fullLayout.paper_bgcolor"
    assert shown.run(paper) == LIGHT["paper"]
    shown.do("document.body.classList.add('dark')")
    shown.wait(f"{paper} === '{DARK['paper']}'")
    assert shown.run("getComputedStyle(player.root).getPropertyValue('--ss-text')") == DARK["text"]


@slow  # some seconds in a browser
def test_a_window_shows_a_step_at_once_while_it_plays(show: Show) -> None:
    """Words that flew in from a corner, over cells in the colours of the step before, said what was never so."""
    shown = show(record("lookahead"), step=5, height=2400, views=("window",))
    looks = "({ words: plot.cells.words.innerHTML, squares: plot.cells.squares.innerHTML })"
    shown.do(
        "const plot = player.cards.cards.get('window').content; globalThis.looks = {}; const draw = plot.draw;"
        "plot.draw = function (...given) {"
        f"  const drew = draw.apply(this, given); looks[this.step] = {looks}; return drew; }}"
    )
    shown.do("player.change({ speed: '1', substeps: false, playing: true })")
    shown.wait("player.state.step >= 7")
    shown.do("player.change({ playing: false })")
    while_playing = shown.run("{ ...looks }")
    assert {"6", "7"} <= while_playing.keys()
    for step in while_playing:
        shown.do(f"looks = {{}}; player.goto({{ step: 2 }}); await settled(); player.goto({{ step: {step} }})")
        assert shown.run("looks")[step] == while_playing[step]
        assert "<text" in while_playing[step]["words"]


def test_words_in_cells_are_the_figures_own_on_the_screen_and_in_pictures(show: Callable[..., Shown]) -> None:
    shown = show(record("lookahead"), step=6, views=("window",))
    plot = "player.cards.cards.get('window').content"
    drawn = shown.run(f"[...{plot}.cells.words.children].map((node) => node.textContent)")
    got = shown.run(
        f"{plot}.figure.data.filter((trace) => trace.font && trace.visible !== false && trace.text?.length)"
        ".flatMap((trace) => Array.from(trace.text, Specscope.unescapeMarkup)).filter(Boolean)"
    )
    assert drawn == got and len(drawn) > 10
    centres = shown.run(
        f"[...{plot}.cells.words.children].map((node) => {{ const box = node.getBoundingClientRect(); "
        f"const own = {plot}.gd.getBoundingClientRect(); "
        "return [box.x + box.width / 2 - own.x - node.getAttribute('x'), "
        "box.y + box.height / 2 - own.y - node.getAttribute('y')]; })"
    )
    assert all(abs(x) < 1.5 and abs(y) < 3 for x, y in centres), "words stand where their cells are"
    picture = shown.run(f"decodeURIComponent(await {plot}.image('svg'))")
    assert all(f">{word}<" in picture for word in drawn if word.isalnum())


def test_settings_of_a_chart_are_told_once(show: Callable[..., Shown]) -> None:
    """A chart that asks the page for its size, or looks for a <base> in it, makes the browser lay it all out."""
    shown = show(record("lookahead"), step=3, views=("window",))
    plot = "player.cards.cards.get('window').content"
    shown.do(f"globalThis.kept = {plot}.gd._context")
    shown.do("player.seek(5)")
    assert shown.run(f"kept === {plot}.gd._context && {plot}.gd.clientWidth === 1")


@slow  # some seconds in a browser
@pytest.mark.parametrize("method", choose(["lookahead", "draft_model", "ngrammys", "rest"], ["draft_model", "rest"]))
def test_every_trace_that_has_points_is_drawn(show: Callable[..., Shown], method: str) -> None:
    """Hiding empty traces must not hide those whose places along one axis are counted, not listed."""
    shown = show(record(method), step=4, height=6000)
    shown.do("player.change({ open: new Set(player.cards.views.map((view) => view.name)) })")
    lost = shown.run(
        "[...player.cards.cards.values()].filter((card) => card.content.figure).flatMap(({ view, content }) => "
        "content.figure.data.map((trace, i) => [view.name, i, trace])"
        ".filter(([, i, trace]) => trace.visible !== false && (trace.x ?? trace.y ?? trace.z)?.length "
        "&& !content.cells.here.has(i) && content.gd._fullData[i].visible !== true)"
        ".map(([name, i]) => `${name} ${i}`))"
    )
    assert lost == []


def test_where_tokens_are_drawn_the_likeliest_is_not_called_what_the_target_wanted(show: Callable[..., Shown]) -> None:
    trace = record("draft_model")
    drawn = replace(trace, header=replace(trace.header, sampling={**trace.header.sampling, "temperature": 0.8}))
    shown = show(drawn, step=3)
    shown.do("player.pin(player.state.step, 1)")
    got = shown.text(".ss-facts")
    assert "Likeliest next" in got and "Target" not in got.replace("Target's likeliest", "")


def helped() -> tuple[str, int, int]:
    """Return a run in which the target helped to make a guess that it then accepted, the step, and the node."""
    trace, lines = record("ouroboros"), parsed(play.lines(record("ouroboros")))
    k = next(k for k, step in enumerate(trace.steps) if step.accepted)
    node = trace.steps[k].path[1]
    line = next(line for line in lines if line["kind"] == "step" and line["k"] == k)
    line["nodes"]["inspired"], line["inspired"] = [node], [0]
    return "".join(json.dumps(line) + "\n" for line in lines), k, node


def test_a_guess_that_the_target_helped_to_make_is_told_in_the_text(show: Show) -> None:
    """Its spark stands beside what became of it: both are seen."""
    lines, k, node = helped()
    shown = show(record("ouroboros"), feed=False, step=None, height=2400)
    shown.do(f"player.feed(given); player.goto({{ step: {k} }})", lines)
    at = sum(len(step.emitted) for step in record("ouroboros").steps[:k])
    token = shown.page.locator(f".ss-text .ss-token[data-at='{at}']")
    assert "ss-fate-2" in token.get_attribute("class") and "ss-fate-8" in token.get_attribute("class")
    styles = 'getComputedStyle(given, "::before").content + getComputedStyle(given).textDecorationLine'
    assert token.evaluate(f"(given) => {styles}") == '"✦"underline'
    shown.do(f"player.seek({k}, 'propose')")
    ghost = shown.page.locator(f".ss-ghosts [data-node='{node}']").get_attribute("class")
    assert "ss-fate-0" in ghost and "ss-fate-8" in ghost
    shown.do(f"player.pin({k}, {node})")
    assert "inspired or refined" in shown.text(".ss-facts")
