// A chart's cells: squares, the words in them and beside them, and small signs. Plotly styles every point and every
// text twice at every drawing, which took three tenths of a step's time; here what looks alike is one path, and words
// are rewritten in place. Pictures that are saved, sliding ones, and figures elsewhere have plotly's own.
//
// Python says of every trace in which layer of cells it is drawn, if in one: see viz/cells.py.
import { axisName } from "./axes.js";
import { markerShape } from "./shapes.js";
import { svg, write } from "../dom/elements.js";
import { unescapeMarkup } from "../stream/escape.js";

/** @import { Axis, CellLayer, Figure, LayoutAxis, Marker, PlotTrace, Point } from "../types.d.ts" */
/** @import { Plot } from "./plot.js" */

const REACH = 20; // pixels from a square's edge to a pointer that means it, as far as plotly's

/**
 * Where words stand beside their places: plotly's positions as the text anchors of SVG.
 * @type {{ [position: string]: string }}
 */
const ANCHORS = { "middle center": "middle", "middle left": "end", "middle right": "start" };

/**
 * @typedef {{ trace: PlotTrace, kind: CellLayer }} Taken
 * @typedef {([x: number, y: number] | null)[]} Pixels
 * @typedef {{ [attribute: string]: string | number }} Attributes
 * @typedef {{ draw: (x: number, y: number, r: number) => string, attributes: Attributes }} Look
 * @typedef {Map<string, { attributes: Attributes, d: string }>} Paths by their attributes
 */

export class Cells {
  /** @param {Plot} plot */
  constructor(plot) {
    this.plot = plot;
    /** @param {string} name */
    const layer = (name) => svg("svg", { class: `ss-cells ss-cell-${name}`, "aria-hidden": "true" });
    this.squares = layer("squares");
    this.signs = layer("signs");
    this.words = layer("words");
    /** @type {Map<number, Taken>} by the number of the trace */
    this.taken = new Map();
  }

  /**
   * The traces as plotly is to draw them: without what is drawn here.
   * @param {Figure} figure
   * @returns {PlotTrace[]}
   */
  take({ data, layout }) {
    /** @param {PlotTrace} trace */
    const ranged = (trace) =>
      sides(trace).every((name) => Array.isArray(/** @type {LayoutAxis | undefined} */ (layout[name])?.range));
    this.taken = new Map();
    data.forEach((trace, i) => {
      const shown = trace.visible !== false && trace.x && trace.y;
      if (trace.cell_layer && shown && ranged(trace)) this.taken.set(i, { trace, kind: trace.cell_layer });
    });
    // One pointer to a chart: squares beside bars that are pointed at, too, stay with plotly.
    const { nodes } = this.plot.view;
    const others = data.some((trace, i) => nodes[i] && !this.taken.has(i) && trace.visible !== false && holds(trace));
    if (others) this.taken = new Map([...this.taken].filter(([, cell]) => !caught(cell)));
    const held = new Set();
    return data.map((trace, i) => {
      if (!this.taken.has(i)) return trace;
      const axes = sides(trace).join();
      if (held.has(axes)) return { type: "scatter", visible: false };
      held.add(axes); // plotly lets go of axes without a trace
      const { xaxis, yaxis } = trace;
      return { type: "scatter", mode: "none", x: [0], y: [0], hoverinfo: "skip", showlegend: false, xaxis, yaxis };
    });
  }

  draw() {
    /** @type {Paths} */
    const squares = new Map();
    /** @type {Paths} */
    const signs = new Map();
    let written = 0;
    for (const { trace, kind } of this.taken.values()) {
      const places = this.places(trace);
      if (kind === "squares") gather(squares, trace.marker ?? {}, places, square);
      if (kind === "signs") gather(signs, trace.marker ?? {}, places, sign);
      else if (trace.mode !== "markers") written = this.write(trace, places, written);
    }
    drawPaths(this.squares, squares);
    drawPaths(this.signs, signs);
    shorten(this.words, written);
  }

  /**
   * Where the points of a trace are in pixels, or nothing.
   * @param {PlotTrace} trace
   * @returns {Pixels}
   */
  places(trace) {
    const [x, y] = sides(trace).map((name) => /** @type {Axis} */ (this.plot.gd._fullLayout[name]));
    /** @param {number} pixels */
    const round = (pixels) => Math.round(10 * pixels) / 10;
    return Array.from(trace.x ?? [], (value, i) => {
      const [left, top] = [x._offset + x.d2p(value), y._offset + y.d2p(trace.y?.[i] ?? NaN)];
      return Number.isFinite(left) && Number.isFinite(top) ? [round(left), round(top)] : null;
    });
  }

  /**
   * Writes into the texts from number `used` on; returns how many are in use then.
   * @param {PlotTrace} trace
   * @param {Pixels} places
   * @param {number} used
   */
  write(trace, places, used) {
    const { text, textfont } = trace;
    const fixed = {
      fill: String(textfont?.color), "font-size": String(textfont?.size),
      "text-anchor": ANCHORS[trace.textposition ?? ""],
    };
    for (let i = 0; i < (text?.length ?? 0); i += 1) {
      const place = places[i];
      if (!text?.[i] || !place) continue;
      const node = this.words.children[used] ?? this.words.appendChild(svg("text", { dy: ".35em" }));
      used += 1;
      set(node, { x: place[0], y: place[1], ...fixed });
      write(node, unescapeMarkup(text[i]));
    }
    return used;
  }

  // Whether the pointer finds squares here, and then nothing else.
  get catch() {
    return [...this.taken.values()].some(caught);
  }

  /**
   * The square next to a place of the chart, as plotly tells of its points.
   * @param {number} x
   * @param {number} y
   * @returns {Point | null}
   */
  near(x, y) {
    /** @type {Point | null} */
    let found = null;
    let least = REACH;
    for (const [curveNumber, { trace, kind }] of this.taken) {
      if (!caught({ trace, kind })) continue;
      const half = Number(trace.marker?.size) / 2;
      for (const [pointNumber, place] of this.places(trace).entries()) {
        const far = place ? Math.hypot(place[0] - x, place[1] - y) - half : Infinity;
        if (far < least) [found, least] = [{ curveNumber, pointNumber }, far];
      }
    }
    return found;
  }

  clear() {
    this.taken = new Map();
    for (const layer of [this.squares, this.signs, this.words]) shorten(layer, 0);
  }
}

/** @param {PlotTrace} trace */
const sides = (trace) => [axisName(trace.xaxis ?? "x"), axisName(trace.yaxis ?? "y")];

/** @param {PlotTrace} trace */
const holds = ({ x, z }) => Number((x ?? z)?.length) > 0;

/** @param {Taken} taken */
const caught = ({ trace, kind }) => kind === "squares" && trace.hoverinfo !== "skip";

/**
 * @param {Marker} marker
 * @param {number} i
 * @returns {Look | null}
 */
const square = (marker, i) => {
  const shape = markerShape("square");
  return shape && {
    draw: shape.draw,
    attributes: { fill: String(colourOf(marker, i)), "fill-opacity": Number(each(marker.opacity, i) ?? 1) },
  };
};

/**
 * @param {Marker} marker
 * @param {number} i
 * @returns {Look | null}
 */
const sign = ({ symbol, color, line }, i) => {
  const shape = markerShape(each(symbol, i) ?? "circle");
  const paint = String(color);
  return shape && {
    draw: shape.draw,
    attributes: { fill: shape.open ? "none" : paint, stroke: paint, "stroke-width": Number(line?.width) },
  };
};

/**
 * @param {Marker} marker
 * @param {number} i
 */
const colourOf = ({ color, colorscale = [], cmin = 0, cmax = 1 }, i) => {
  const value = typeof color === "object" ? color[i] : color;
  if (typeof value === "string") return value;
  const at = (Number(value) - cmin) / (cmax - cmin);
  return colorscale.findLast(([from]) => from <= at)?.[1];
};

/**
 * A setting of a point, where each has its own.
 * @template {string | number} T
 * @param {T | ArrayLike<T> | undefined} value
 * @param {number} i
 */
const each = (value, i) => (typeof value === "object" ? value[i] : value);

/**
 * The points of a trace, put to those of the same look.
 * @param {Paths} paths
 * @param {Marker} marker
 * @param {Pixels} places
 * @param {(marker: Marker, i: number) => Look | null} lookOf
 */
const gather = (paths, marker, places, lookOf) => {
  const half = Number(marker.size) / 2;
  places.forEach((place, i) => {
    const look = place && lookOf(marker, i);
    if (!look) return;
    const key = JSON.stringify(look.attributes);
    const path = paths.get(key) ?? { attributes: look.attributes, d: "" };
    path.d += look.draw(place[0], place[1], half);
    paths.set(key, path);
  });
};

/**
 * @param {SVGElement} layer
 * @param {Paths} paths
 */
const drawPaths = (layer, paths) => {
  [...paths.values()].forEach(({ attributes, d }, i) =>
    set(layer.children[i] ?? layer.appendChild(svg("path")), { ...attributes, d }));
  shorten(layer, paths.size);
};

/**
 * @param {SVGElement} layer
 * @param {number} length
 */
const shorten = (layer, length) => {
  while (layer.children.length > length) layer.lastChild?.remove();
};

/**
 * @param {Element} node
 * @param {Attributes} attributes
 */
const set = (node, attributes) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
  }
};
