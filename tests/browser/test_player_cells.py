"""What the page draws of a chart instead of plotly, against what plotly draws of the same figure."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.tiers import choose, slow
from tests.viz.records import METHODS, record
from viz.cells import SYMBOLS
from viz.notebook import _Drawing
from viz.palette import MEANINGS

Show = Callable[..., Any]
BOTH = ("lookahead", "kangaroo")  # boards of cells, and charts of lines and bars
KINDS = ("lookahead", "jacobi", "kangaroo", "ouroboros")  # methods with every kind of layer and board
# Of every point and word that the page drew itself: what it is, and where and how it looks by plotly's own drawing.
DRAWN = """async (name) => {
  const { gd, cells, figure } = player.cards.cards.get(name).content;
  const taken = cells.drawn.map(([, layer]) => (
    { trace: Specscope.asTraces({ ...figure, data: [layer] })[0], kind: layer.layer }));
  const ours = [...cells.squares.children].flatMap((path) => path.getAttribute("d").match(/M[^M]+/g).map((d) => {
    const [, x, y, wide, high] = d.match(/^M([-\\d.]+) ([-\\d.]+)h([-\\d.]+)v([-\\d.]+)/).map(Number);
    const look = `${getComputedStyle(path).fill} ${Number(path.getAttribute("fill-opacity"))}`;
    return { x: x + wide / 2, y: y + high / 2, wide, high, look };
  }));
  const frame = cells.words.getBoundingClientRect();
  const measured = (node, { left, top }) => {
    const box = node.getBoundingClientRect();
    return { word: node.textContent, x: (box.left + box.right) / 2 - left, y: (box.top + box.bottom) / 2 - top,
      fill: getComputedStyle(node).fill };
  };
  const words = [...cells.words.children].map((node) => measured(node, frame));
  const signs = [...cells.signs.children].map((path) => [getComputedStyle(path).fill, path.getTotalLength()]);
  const other = document.body.appendChild(document.createElement("div"));
  const traces = taken.map(({ trace }, k) => ({ ...trace, uid: `own${k}` }));
  await Plotly.newPlot(other, traces, { ...gd.layout }, { staticPlot: true });
  const own = { left: other.getBoundingClientRect().left, top: other.getBoundingClientRect().top };
  const squares = [], their = [], lengths = new Map();
  taken.forEach(({ trace, kind }, k) => {
    const group = [...other.querySelectorAll("g.trace")].find((each) => each.__data__[0].trace.uid === `own${k}`);
    for (const path of group?.querySelectorAll("path.point, .point path") ?? []) {
      const moved = path.getAttribute("transform") ?? "(0,0)"; // a marker is, a bar is not
      const [, left, top] = moved.match(/\\(([-\\d.]+),([-\\d.]+)\\)/).map(Number);
      const axis = (side) => gd._fullLayout[Specscope.axisName(trace[`${side}axis`] ?? side)]._offset;
      const look = getComputedStyle(path);
      if (kind === "squares") {
        const { x, y, width, height } = path.getBBox();
        squares.push({ x: x + width / 2 + left + axis("x"), y: y + height / 2 + top + axis("y"),
          wide: width, high: height, look: `${look.fill} ${Number(look.opacity)}` });
      } else if (kind === "signs") {
        lengths.set(look.fill, (lengths.get(look.fill) ?? 0) + path.getTotalLength());
      }
    }
    for (const node of group?.querySelectorAll("text") ?? []) if (node.textContent) their.push(measured(node, own));
  });
  other.remove();
  return { ours, squares, words, their, signs, lengths: [...lengths] };
}"""

# A node of every part of a view that shows any, and where on the page its picture has its middle.
PLACES = """(() => {
  const { box, marks, view, figure } = player.cards.cards.get(given).content;
  const area = box.getBoundingClientRect();
  return view.nodes.flatMap((kind, trace) => {
    const part = figure.data[trace], axes = kind && marks.axes(trace);
    const known = Array.from(part.nodes ?? part.customdata ?? part.z?.keys() ?? [], Number);
    const end = { bar: part.orientation === "h" ? "x" : "y" }[part.type]; // where marks of a bar are
    const i = known.findIndex((node, point) => node >= 0 && (!end || part[end][point] > 0));
    const own = kind === "rows" ? marks.litCells(trace, known[i]) : axes && i >= 0 ? marks.points(trace, known[i]) : [];
    if (!own.length) return [];
    const { x, y, w, h } = own.at(-1);
    const back = (side) => (end === side ? (axes[side].d2p(0) - axes[side].d2p(part[side][i])) / 2 : 0);
    return [[known[i], area.left + x + w / 2 + back("x"), area.top + y + h / 2 + back("y")]];
  });
})()"""


def in_order(drawn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drawn squares by their looks, and by their places in whole rows and columns."""
    return sorted(drawn, key=lambda each: (each["look"], round(each["y"] / 9), each["x"]))


@slow  # some seconds in a browser
@pytest.mark.parametrize("method", choose(METHODS, BOTH))
def test_cells_are_where_and_what_plotly_draws(show: Show, method: str) -> None:
    """Squares by place, size, colour and strength, words by place and colour, signs by outline."""
    trace = record(method)
    shown = show(trace, step=min(6, len(trace.steps) - 1), height=2400)
    for name in shown.run("player.cards.views.filter((view) => view.kind === 'plot').map((view) => view.name)"):
        shown.do(f"player.cards.goto('{name}')")
        shown.wait(f"player.cards.cards.get('{name}').content.drawn !== null")
        drawn = shown.page.evaluate(DRAWN, name)
        assert len(drawn["ours"]) == len(drawn["squares"]), name
        for ours, theirs in zip(in_order(drawn["ours"]), in_order(drawn["squares"]), strict=True):
            assert ours == pytest.approx(theirs, abs=0.6), name  # bars end at whole pixels
        assert len(drawn["words"]) == len(drawn["their"]), name
        for ours, theirs in zip(drawn["words"], drawn["their"], strict=True):
            assert (ours["word"], ours["fill"]) == (theirs["word"], theirs["fill"]), name
            assert abs(ours["x"] - theirs["x"]) < 2 and abs(ours["y"] - theirs["y"]) < 2, (name, ours, theirs)
        for (fill, length), (same, wanted) in zip(drawn["signs"], drawn["lengths"], strict=True):
            assert fill == same and length == pytest.approx(wanted, rel=0.02), name
        if name in ("window", "pool") and method in ("lookahead", "jacobi"):
            assert drawn["squares"] and drawn["their"], name


def test_signs_have_the_shapes_of_plotlys_markers(show: Show) -> None:
    """Every sign that a figure may carry: its box and the length of its outline."""
    symbols = [*{meaning.symbol for meaning in MEANINGS} | {*SYMBOLS}]
    pairs = show(record("lookahead"), step=6).page.evaluate(
        """async (symbols) => {
      const other = document.body.appendChild(document.createElement("div"));
      const x = symbols.map((_, i) => i), marker = { symbol: symbols, size: 20 };
      await Plotly.newPlot(other, [{ type: "scatter", mode: "markers", x, y: x, marker }], {}, { staticPlot: true });
      const measured = (path, d) => { if (d) path.setAttribute("d", d); const { x, y, width, height } = path.getBBox();
        return [x, y, width, height, path.getTotalLength(), getComputedStyle(path).fill === "none"]; };
      return [...other.querySelectorAll(".point")].map((point, i) => {
        const theirs = measured(point), shape = Specscope.markerShape(symbols[i]);
        const ours = measured(point, shape.draw(0, 0, 10));
        return [symbols[i], [...ours.slice(0, 5), shape.open], theirs];
      });
    }""",
        symbols,
    )
    assert len(pairs) == len(symbols)
    for symbol, ours, theirs in pairs:
        assert ours == pytest.approx(theirs, abs=0.6), symbol


def test_a_symbol_that_is_not_known_is_not_drawn(show: Show) -> None:
    shown = show(record("lookahead"), step=6)
    assert shown.run("['pentagon', '', 'toString'].map(Specscope.markerShape)") == [None, None, None]


@pytest.mark.parametrize("method", choose(KINDS, BOTH))
def test_pictures_and_notebooks_draw_cells_alike(show: Show, method: str) -> None:
    """Both say a layer in plotly's words: the page for pictures that are saved, Python for notebooks."""
    trace = record(method)
    k = min(6, len(trace.steps) - 1)
    shown = show(trace, step=k, height=2400)
    shown.do(f"player.seek({k}, 'commit')")
    layers = 0
    for name in shown.run("player.cards.views.filter((view) => view.kind === 'plot').map((view) => view.name)"):
        drawn_cells = shown.run(
            "(() => { const { record, frames, theme } = player, view = record.view(given);"
            f"const figure = frames.figure(view, {{ step: {k}, phase: 'commit' }}, theme, null, record.last + 1);"
            "return Specscope.asTraces(figure).map((trace, i) => ('layer' in figure.data[i] ? Object.fromEntries("
            "Object.entries(trace).map(([key, value]) => [key, JSON.parse(JSON.stringify(value, (_, part) => "
            "ArrayBuffer.isView(part) ? Array.from(part) : part))])) : null)); })()",
            name,
        )
        drawn = json.loads(json.dumps(_Drawing(trace, name, "light", None).picture(k)["data"]))
        wanted, legend = drawn[: len(drawn_cells)], drawn[len(drawn_cells) :]  # which on the page is a line of its own
        assert all(entry["x"] == [None] for entry in legend)
        for mine, theirs in zip(drawn_cells, wanted, strict=True):
            layers += mine is not None
            assert mine is None or mine == theirs, name
    assert layers


def test_cells_are_pointed_at_and_pinned(show: Show) -> None:
    """The pointer finds a cell of the window and of the pool though plotly does not draw it, and only there."""
    shown = show(record("lookahead"), step=6, height=2400, reduced_motion="reduce")  # no place moves while it is used
    for name in ("window", "pool"):
        shown.do(f"player.cards.goto('{name}')")
        node, x, y = shown.run(
            """(() => { const plot = player.cards.cards.get(given).content;
          const area = plot.box.getBoundingClientRect(), nodes = player.record.nodes(6).count;
          const all = [...Array(nodes).keys()].map((k) => [k, plot.marks.boxes(k)[0]]);
          const [node, box] = all.findLast(([, box]) => box);
          return [node, area.left + box.x + box.w / 2, area.top + box.y + box.h / 2]; })()""",
            name,
        )
        shown.page.mouse.move(x, y)
        shown.wait(f"player.state.hover?.node === {node}")
        assert not shown.run("document.querySelector('.ss-tooltip').hidden")
        shown.page.mouse.click(x, y)
        shown.wait(f"player.state.pin?.node === {node}")
        shown.page.mouse.click(x, y)
        shown.wait("player.state.pin === null")
        shown.page.mouse.move(1, 1)
        shown.wait("!player.state.hover")


@slow  # some seconds in a browser
@pytest.mark.parametrize("method", choose(METHODS, BOTH))
def test_every_node_of_every_chart_can_be_pointed_at(show: Show, method: str) -> None:
    """At the middle of each trace's first node, whoever drew it: a bar beside squares as well as the squares."""
    trace = record(method)
    shown = show(trace, step=min(6, len(trace.steps) - 1), height=2400, reduced_motion="reduce")
    for name in shown.run("player.cards.views.filter((view) => view.kind === 'plot').map((view) => view.name)"):
        shown.do(f"player.cards.goto('{name}')")
        shown.wait(f"player.cards.cards.get('{name}').content.drawn !== null")
        places = shown.run(PLACES, name)
        assert places or name != "mask"
        for node, x, y in places:
            shown.page.mouse.move(1, 1)
            shown.wait("!player.state.hover")
            shown.page.mouse.move(x, y)
            shown.wait(f"player.state.hover?.node === {node}")


def test_plotly_draws_a_chart_of_cells_only_when_its_own_part_changes(show: Show) -> None:
    shown = show(record("lookahead"), step=8, height=2400, views=("window", "tree"))
    shown.do(
        "globalThis.drawn = []; const react = Plotly.react; Plotly.react = (gd, ...rest) => {"
        "drawn.push(gd.closest('.ss-card').dataset.view); return react(gd, ...rest); }"
    )
    before = shown.run("player.cards.cards.get('window').content.cells.words.textContent")
    shown.do("player.seek(9)")
    shown.wait("drawn.includes('tree')")
    assert "window" not in shown.run("drawn")
    assert shown.run("player.cards.cards.get('window').content.cells.words.textContent") != before
    shown.do("document.body.classList.add('dark')")
    shown.wait("drawn.includes('window')")
