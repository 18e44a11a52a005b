// Marks the hovered and pinned tokens, and the current step, in one SVG over each chart, so that nothing is redrawn.
import { axesOf, halvesOf, isLayer, nodesOf } from "./layers.js";
import { svg } from "../dom/elements.js";
import { isJudged } from "../stream/fates.js";
import { seenNodes } from "../stream/tree.js";

/** @import { Axis, Nodes, Part, PlotElement, Spot } from "../types.d.ts" */
/** @import { Plot } from "./plot.js" */

const ROW_MARGIN = 2; // a row of a mask may be only a few pixels high: its outline stays outside of it

/**
 * @typedef {"veil" | "seen" | "pinned" | "hovered" | "cursor"} MarkName
 * @typedef {{ x: Axis, y: Axis, area: number[] }} Axes
 * @typedef {{ node: number, area: number[], x: number, y: number, w: number, h: number }} Box
 */

export class Marks {
  /** @param {Plot} plot */
  constructor(plot) {
    this.plot = plot;
    /** @param {MarkName} name */
    const path = (name) => svg("path", { class: `ss-mark-${name}`, "fill-rule": "evenodd" });
    this.path = {
      veil: path("veil"), seen: path("seen"), pinned: path("pinned"), hovered: path("hovered"), cursor: path("cursor"),
    };
    this.svg = svg("svg", { class: "ss-marks", "aria-hidden": "true" }, ...Object.values(this.path));
  }

  clear() {
    for (const path of Object.values(this.path)) path.removeAttribute("d");
    delete this.svg.dataset.seen;
    delete this.svg.dataset.pinned;
  }

  draw() {
    const { state, record } = this.plot.player;
    const layout = this.plot.gd._fullLayout;
    if (!layout) return;
    this.clear();
    if (this.plot.view.grows) this.drawTime(layout);
    const nodes = record.nodes(state.step);
    if (!nodes) return;
    if (state.pin?.step === state.step && state.pin.node < nodes.count) this.drawPin(nodes, state.pin);
    if (state.hover && state.hover.step === state.step) {
      this.set("hovered", this.boxes(state.hover.node, state.hover.own).map(outline).join(""));
    }
  }

  /**
   * @param {MarkName} name
   * @param {string} d
   */
  set(name, d) {
    if (d) this.path[name].setAttribute("d", d);
  }

  /**
   * Dim everything that the pinned node does not see.
   * @param {Nodes} nodes
   * @param {Spot} pin
   */
  drawPin(nodes, { node, own }) {
    const pinned = this.boxes(node, own);
    const { state } = this.plot.player;
    if (this.plot.view.pinned || state.asking) { // this view is about the pinned node, all of it
      this.set("pinned", pinned.map(outline).join(""));
      return;
    }
    const seen = seenNodes(nodes, node, this.plot.player.record.head.header.window);
    const lit = this.plot.view.nodes.flatMap((kind, trace) =>
      kind === "rows" ? this.litCells(trace, node)
        : kind === "points" ? seen.flatMap((other) => this.points(trace, other))
          : kind === "own" && own ? pinned : []);
    const areas = [...new Map(lit.map((box) => [box.area.join(), box.area])).values()];
    this.set("veil", areas.map(rectangle).join("") + lit.map(outline).join(""));
    this.set("seen", lit.map(outline).join(""));
    this.set("pinned", pinned.map(outline).join(""));
    if (!lit.length) return;
    this.svg.dataset.seen = [...new Set(lit.map((box) => box.node))].join();
    this.svg.dataset.pinned = String(node);
  }

  /**
   * Return where a node is drawn; the target's own token there replaces it where a view draws that one too.
   * @param {number} node
   * @returns {Box[]}
   */
  boxes(node, own = false) {
    const { nodes } = this.plot.view;
    const written = own ? nodes.flatMap((kind, trace) => (kind === "own" ? this.own(trace, node) : [])) : [];
    if (written.length) return written;
    return nodes.flatMap((kind, trace) => {
      if (kind === "rows") return this.row(trace, node);
      return kind === "points" ? this.points(trace, node) : [];
    });
  }

  /**
   * @param {number} trace
   * @returns {Axes | null}
   */
  axes(trace) {
    const given = this.plot.figure?.data[trace];
    if (!given || given.visible === false) return null;
    const layout = this.plot.gd._fullLayout;
    const [x, y] = axesOf(given).map((name) => /** @type {Axis | undefined} */ (layout[name]));
    return x && y ? { x, y, area: [x._offset, y._offset, x._length, y._length] } : null;
  }

  /**
   * Return where a node's points are in a trace.
   * @param {number} trace
   * @param {number} node
   */
  points(trace, node) {
    const axes = this.axes(trace);
    const given = this.plot.figure?.data[trace];
    const nodes = given && nodesOf(given);
    if (!axes || !nodes || !given.x) return [];
    /** @type {Box[]} */
    const boxes = [];
    for (let i = 0; i < nodes.length; i += 1) {
      if (Number(nodes[i]) === node) boxes.push(...this.around(axes, given, i, node));
    }
    return boxes;
  }

  /**
   * Return where the target's own token is in a trace: the last point of a line that leads to it.
   * @param {number} trace
   * @param {number} node
   */
  own(trace, node) {
    const axes = this.axes(trace);
    const given = this.plot.figure?.data[trace];
    return axes && given?.x?.length ? this.around(axes, given, given.x.length - 1, node) : [];
  }

  /**
   * Return the box around a point; none where it is not in the picture.
   * @param {Axes} axes
   * @param {Part} given
   * @param {number} i
   * @param {number} node
   * @returns {Box[]}
   */
  around(axes, given, i, node) {
    const left = axes.x._offset + axes.x.d2p(given.x?.[i] ?? NaN);
    const top = axes.y._offset + axes.y.d2p(given.y?.[i] ?? NaN);
    if (!Number.isFinite(left) || !Number.isFinite(top)) return [];
    const [across, down] = halvesOf(given, i, [axes.x, axes.y]).map((half) => half + 3);
    return [{ node, area: axes.area, x: left - across, y: top - down, w: 2 * across, h: 2 * down }];
  }

  /**
   * Return the row of a node in a matrix, and its extent on the page.
   * @param {number} trace
   * @param {number} node
   */
  rowPlace(trace, node) {
    const axes = this.axes(trace);
    const given = this.plot.figure?.data[trace];
    if (!axes || !given || isLayer(given) || !given.z) return null;
    const row = given.customdata ? Array.from(given.customdata, Number).indexOf(node) : node;
    if (row < 0 || row >= given.z.length) return null;
    const [top, bottom] = edges(axes.y, given.y, row, given.z.length);
    return { axes, given, row, line: given.z[row], top: Math.min(top, bottom), h: Math.abs(bottom - top) };
  }

  /**
   * @param {number} trace
   * @param {number} node
   */
  row(trace, node) {
    const place = this.rowPlace(trace, node);
    if (!place) return [];
    const { area } = place.axes;
    return [{ node, area, x: area[0], y: place.top - ROW_MARGIN, w: area[2], h: place.h + 2 * ROW_MARGIN }];
  }

  /**
   * Return the cells that a node's row sees, neighbours joined.
   * @param {number} trace
   * @param {number} node
   */
  litCells(trace, node) {
    const place = this.rowPlace(trace, node);
    if (!place) return [];
    const { line } = place;
    /** @type {Box[]} */
    const boxes = [];
    for (let from = 0; from < line.length; from += 1) {
      if (!line[from]) continue;
      let to = from;
      while (to + 1 < line.length && line[to + 1]) to += 1;
      const [left] = edges(place.axes.x, place.given.x, from, line.length);
      const [, right] = edges(place.axes.x, place.given.x, to, line.length);
      boxes.push({ node, area: place.axes.area, x: left, y: place.top, w: right - left, h: place.h });
      from = to;
    }
    return boxes;
  }

  /**
   * A growing chart shows all steps: a line is at this one, and the later ones are behind a veil. Axes without
   * labels carry words, which are of no step.
   * @param {PlotElement["_fullLayout"]} layout
   */
  drawTime(layout) {
    const { state } = this.plot.player;
    const x = layout.xaxis;
    if (!x) return;
    const [left, right] = [x._offset, x._offset + x._length];
    const at = left + x.d2p(state.step);
    const edge = Math.max(left, left + x.d2p(state.step + (isJudged(state) ? 0.5 : -0.5)));
    const axes = Object.entries(layout).filter(([name]) => name.startsWith("yaxis"))
      .map(([, axis]) => /** @type {Axis} */ (axis));
    const rows = axes.filter((axis) => axis.showticklabels);
    const later = rows.map((y) => rectangle([edge, y._offset, right - edge, y._length]));
    const now = rows.map((y) => `M${at} ${y._offset}v${y._length}`);
    if (edge < right) this.set("veil", later.join(""));
    if (at >= left && at <= right) this.set("cursor", now.join(""));
    this.svg.dataset.cursor = String(state.step);
  }
}

/** @param {number[]} sides */
const rectangle = ([x, y, w, h]) => `M${x} ${y}h${w}v${h}h${-w}z`;

/** @param {Box} box */
const outline = ({ x, y, w, h }) => `M${round(x)} ${round(y)}h${round(w)}v${round(h)}h${round(-w)}z`;

/** @param {number} value */
const round = (value) => Math.round(value * 10) / 10;

/**
 * Return a cell's two sides: from its edges where they are given, from neighbouring centres, or from its number.
 * @param {Axis} axis
 * @param {ArrayLike<number> | undefined} given
 * @param {number} i
 * @param {number} count
 */
const edges = (axis, given, i, count) => {
  /** @param {number} value */
  const at = (value) => axis._offset + axis.d2p(value);
  if (!given || !given.length) return [at(i - 0.5), at(i + 0.5)];
  if (given.length === count + 1) return [at(given[i]), at(given[i + 1])];
  /** @param {number} j */
  const centre = (j) => Number(given[j]);
  const before = i > 0 ? (centre(i) - centre(i - 1)) / 2 : null;
  const after = i + 1 < count ? (centre(i + 1) - centre(i)) / 2 : null;
  return [at(centre(i) - (before ?? after ?? 0.5)), at(centre(i) + (after ?? before ?? 0.5))];
};
