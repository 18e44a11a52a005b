// A chart's cells: squares, the words in them and beside them, and small signs. Plotly styles every point and every
// text twice at every drawing, which took three tenths of a step's time; here what looks alike is one path, and words
// are rewritten in place. Pictures that are saved, sliding ones, and figures elsewhere have plotly's own.
import { axisName } from "./axes.js";
import { markerShape } from "./shapes.js";
import { svg, write } from "../dom/elements.js";
import { unescapeMarkup } from "../stream/escape.js";

const REACH = 20; // pixels from a square's edge to a pointer that means it, as far as plotly's

export class Cells {
  constructor(plot) {
    this.plot = plot;
    const layer = (name) => svg("svg", { class: `ss-cells ss-cell-${name}`, "aria-hidden": "true" });
    [this.squares, this.signs, this.words] = ["squares", "signs", "words"].map(layer);
    this.taken = new Map();
  }

  // The traces as plotly is to draw them: without what is drawn here.
  take({ data, layout }) {
    const ranged = (trace) => sides(trace).every((name) => Array.isArray(layout[name]?.range));
    const known = data.map((trace, i) => [i, { trace, kind: kindOf(trace) }])
      .filter(([, { trace, kind }]) => kind && ranged(trace));
    this.taken = new Map(known);
    // One pointer to a chart: squares beside bars that are pointed at, too, stay with plotly.
    const { nodes } = this.plot.view;
    const others = data.some((trace, i) => nodes[i] && !this.taken.has(i) && trace.visible !== false && holds(trace));
    if (others) this.taken = new Map(known.filter(([, cell]) => !caught(cell)));
    const held = new Set();
    return data.map((trace, i) => {
      const kind = this.taken.get(i)?.kind;
      if (!kind) return trace;
      if (kind === "words" && trace.mode !== "text") return { ...trace, mode: "markers", text: null };
      const axes = sides(trace).join();
      if (held.has(axes)) return { type: "scatter", visible: false };
      held.add(axes); // plotly lets go of axes without a trace
      const { xaxis, yaxis } = trace;
      return { type: "scatter", mode: "none", x: [0], y: [0], hoverinfo: "skip", showlegend: false, xaxis, yaxis };
    });
  }

  draw() {
    const [squares, signs] = [new Map(), new Map()];
    let written = 0;
    for (const { trace, kind } of this.taken.values()) {
      const places = this.places(trace);
      if (kind === "squares") gather(squares, trace.marker, places, square);
      if (kind === "signs") gather(signs, trace.marker, places, sign);
      else if (hasWords(trace)) written = this.write(trace, places, written);
    }
    drawPaths(this.squares, squares);
    drawPaths(this.signs, signs);
    shorten(this.words, written);
  }

  // Where the points of a trace are in pixels, or nothing.
  places(trace) {
    const [x, y] = sides(trace).map((name) => this.plot.gd._fullLayout[name]);
    return Array.from(trace.x, (value, i) => {
      const at = [x._offset + x.d2p(value), y._offset + y.d2p(trace.y[i])];
      return at.every(Number.isFinite) ? at.map((place) => Math.round(10 * place) / 10) : null;
    });
  }

  // Writes into the texts from number `used` on; returns how many are in use then.
  write(trace, places, used) {
    const { text = [], textfont: { color, size } } = trace;
    for (let i = 0; i < text.length; i += 1) {
      if (!text[i] || !places[i]) continue;
      const node = this.words.children[used] ?? this.words.appendChild(svg("text", { dy: ".35em" }));
      used += 1;
      set(node, { x: places[i][0], y: places[i][1], fill: color, "font-size": size,
        "text-anchor": ANCHORS[trace.textposition] });
      write(node, unescapeMarkup(text[i]));
    }
    return used;
  }

  // Whether the pointer finds squares here, and then nothing else.
  get catch() {
    return [...this.taken.values()].some(caught);
  }

  // The square next to a place of the chart, as plotly tells of its points.
  near(x, y) {
    let found = null, least = REACH;
    for (const [curveNumber, { trace, kind }] of this.taken) {
      if (!caught({ trace, kind })) continue;
      this.places(trace).forEach((place, pointNumber) => {
        const far = place ? Math.hypot(place[0] - x, place[1] - y) - trace.marker.size / 2 : Infinity;
        if (far < least) [found, least] = [{ curveNumber, pointNumber }, far];
      });
    }
    return found;
  }

  clear() {
    this.taken = new Map();
    for (const layer of [this.squares, this.signs, this.words]) shorten(layer, 0);
  }
}

const ANCHORS = { "middle center": "middle", "middle left": "end", "middle right": "start" };

const sides = (trace) => ["x", "y"].map((side) => axisName(trace[`${side}axis`] ?? side));

const holds = ({ x, z }) => (x ?? z)?.length > 0;

const caught = ({ trace, kind }) => kind === "squares" && trace.hoverinfo !== "skip";

// What of a trace can be drawn here; the rest is left to plotly.
const kindOf = (trace) => {
  const { mode, marker, visible, x, y } = trace;
  if (trace.type !== "scatter" || visible === false || !x || !y || trace.opacity !== undefined) return null;
  const words = hasWords(trace);
  if (mode === "text" || mode === "markers+text") return words && (isSquare(mode, marker) ? "squares" : "words");
  return mode === "markers" ? (isSquare(mode, marker) ? "squares" : isSign(marker) ? "signs" : null) : null;
};

// Words in the middle of their markers, or beside a place without one, all alike.
const hasWords = (trace) =>
  Array.isArray(trace.text ?? []) && !trace.texttemplate && !trace.textfont?.style &&
  typeof trace.textfont?.color === "string" && Object.hasOwn(ANCHORS, trace.textposition) &&
  (trace.mode === "text" || (trace.mode === "markers+text" && trace.textposition === "middle center"));

// Squares of one size without a border, each of one colour.
const isSquare = (mode, marker) =>
  mode !== "text" && marker?.symbol === "square" && marker.line?.width === 0 && typeof marker.size === "number" &&
  (typeof marker.color === "string" || banded(marker.colorscale));

// Signs of one size and colour.
const isSign = (marker) =>
  typeof marker?.size === "number" && typeof marker.color === "string" && marker.opacity === undefined &&
  typeof marker.line?.width === "number" && marker.line.color === marker.color &&
  (typeof marker.symbol === "object" ? Array.from(marker.symbol) : [marker.symbol ?? "circle"]).every(markerShape);

// A scale of flat bands, as that of the fates is.
const banded = (scale) =>
  Array.isArray(scale) && scale.length % 2 === 0 && scale.every(([, colour], i) => colour === scale[i - (i % 2)][1]);

const square = (marker, i) => ({
  shape: markerShape("square"), look: { fill: colourOf(marker, i), "fill-opacity": each(marker.opacity, i) ?? 1 },
});

const sign = ({ symbol, color, line }, i) => {
  const shape = markerShape(each(symbol, i) ?? "circle");
  return { shape, look: { fill: shape.open ? "none" : color, stroke: color, "stroke-width": line.width } };
};

const colourOf = ({ color, colorscale, cmin, cmax }, i) => {
  const value = each(color, i);
  if (typeof value === "string") return value;
  const at = (value - cmin) / (cmax - cmin);
  return colorscale.findLast(([from]) => from <= at)?.[1];
};

const each = (value, i) => (typeof value === "object" ? value[i] : value);

// The points of a trace, put to those of the same look.
const gather = (paths, marker, places, kind) => {
  places.forEach((place, i) => {
    if (!place) return;
    const { shape, look } = kind(marker, i);
    const key = JSON.stringify(look);
    if (!paths.has(key)) paths.set(key, { ...look, d: "" });
    paths.get(key).d += shape.draw(place[0], place[1], marker.size / 2);
  });
};

const drawPaths = (layer, paths) => {
  [...paths.values()].forEach((path, i) => set(layer.children[i] ?? layer.appendChild(svg("path")), path));
  shorten(layer, paths.size);
};

const shorten = (layer, length) => {
  while (layer.children.length > length) layer.lastChild.remove();
};

const set = (node, attributes) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
};
