// Layers of cells: the parts of a figure that the page draws itself. viz/cells.py says what their keys mean.
import { axisName } from "./axes.js";

/** @import { Axis, Figure, Layer, LayoutAxis, Part, PlotTrace, View } from "../types.d.ts" */

/**
 * @param {Part} part
 * @returns {part is Layer}
 */
export const isLayer = (part) => "layer" in part;

/**
 * Return the names of a part's axes in the layout.
 * @param {Part} part
 */
export const axesOf = (part) => [axisName(isLayer(part) ? "x" : part.xaxis ?? "x"), axisName(part.yaxis ?? "y")];

/**
 * Return the node of each point of a part, where it shows any.
 * @param {Part} part
 */
export const nodesOf = (part) => (isLayer(part) ? part.nodes : part.customdata);

/**
 * Return half the width and half the height of a point in pixels: of a dot, where its part has no size.
 * @param {Part} part
 * @param {number} i
 * @param {Axis[]} axes
 */
export const halvesOf = (part, i, axes) => {
  const { span, size } = isLayer(part) ? part : { size: at(part.marker?.size, i) };
  return axes.map((axis, side) => (span ? Math.abs(axis.d2p(span[side]) - axis.d2p(0)) : size ?? 8) / 2);
};

/**
 * Return the value of a point, where each may have its own.
 * @template {string | number} T
 * @param {T | ArrayLike<T> | undefined} value
 * @param {number} i
 */
export const at = (value, i) => (typeof value === "object" ? value[i] : value);

/**
 * Return the symbol of a sign, by its name.
 * @param {Layer} layer
 * @param {number} i
 */
export const symbolOf = ({ sign, signs }, i) => {
  const named = sign?.[i] ?? "circle";
  return typeof named === "number" ? signs?.[named] ?? "" : named;
};

/**
 * Return which parts of a view's figures the page draws: their numbers. All layers, but one pointer finds either plotly's
 * points or squares drawn here: squares beside bars that are pointed at, too, stay with plotly.
 * @param {View} view
 */
export const drawnHere = ({ base, nodes }) => {
  const parts = /** @type {Part[]} */ (base.data ?? []);
  const pointed = parts.some((part, i) => nodes[i] && !isLayer(part) && part.hoverinfo !== "skip");
  /** @param {Layer} layer */
  const placed = (layer) => axesOf(layer).every((name) => isRanged(base.layout?.[name]));
  return new Set(parts.flatMap((part, i) =>
    (isLayer(part) && placed(part) && !(pointed && part.layer === "squares") ? [i] : [])));
};

/** @param {unknown} axis */
const isRanged = (axis) => Array.isArray(/** @type {LayoutAxis | undefined} */ (axis)?.range);

/**
 * Return what plotly gets instead of the parts that the page draws, by their numbers: of each pair of axes one empty trace,
 * because plotly lets go of axes without a trace, and else hidden ones.
 * @param {View} view
 * @param {Set<number>} here
 */
export const placeholders = ({ base }, here) => {
  const held = new Set();
  return new Map([...here].map((i) => {
    const layer = /** @type {Layer} */ (base.data[i]);
    const axes = axesOf(layer).join();
    if (held.has(axes)) return [i, /** @type {PlotTrace} */ ({ type: "scatter", visible: false })];
    held.add(axes);
    return [i, /** @type {PlotTrace} */ ({ ...EMPTY, mode: "none", x: [0], y: [0], yaxis: layer.yaxis })];
  }));
};

const EMPTY = { type: "scatter", x: [], y: [], hoverinfo: "skip", showlegend: false };

/**
 * Return a figure as plotly draws all of it: for pictures that are saved.
 * @param {Figure} figure
 * @returns {PlotTrace[]}
 */
export const asTraces = ({ data, fills }) => data.map((part) => (isLayer(part) ? asTrace(part, fills) : part));

/**
 * Return a layer as the trace that plotly draws it from: the counterpart of `as_trace` in viz/cells.py. Python cannot send
 * it instead: the page needs the layer, since it draws most of them itself, and a trace only of those that it cannot place and
 * for pictures that are saved.
 * @param {Layer} layer
 * @param {string[]} fills the colours of the fates
 * @returns {PlotTrace}
 */
export const asTrace = (layer, fills) => {
  const { layer: kind, font, ink, side } = layer;
  const squares = kind === "squares";
  /** @type {PlotTrace} */
  const trace = { ...EMPTY, cliponaxis: false };
  for (const name of SAME) if (name in layer) Object.assign(trace, { [name]: layer[name] });
  if (layer.nodes) trace.customdata = layer.nodes;
  if (font) {
    trace.textposition = squares ? "middle center" : `middle ${side}`;
    trace.textfont = { size: font, color: ink };
  }
  if (layer.span) return { ...trace, ...bars(layer, layer.span, fills) };
  trace.mode = squares && font ? "markers+text" : MODES[kind];
  if (squares) Object.assign(trace, { hoverinfo: "none", marker: { symbol: "square", size: layer.size, ...fill(layer, fills) } });
  if (kind === "signs") trace.marker = sign(layer);
  return trace;
};

const MODES = { squares: "markers", signs: "markers", labels: "text" };
/** @type {("x" | "y" | "yaxis" | "text" | "visible")[]} */
const SAME = ["x", "y", "yaxis", "text", "visible"];

/**
 * Return wide cells as bars: plotly's markers are as high as they are wide.
 * @param {Layer} layer
 * @param {number[]} span
 * @param {string[]} fills
 * @returns {PlotTrace}
 */
const bars = (layer, [columns, rows], fills) => {
  const base = Array.from(layer.x, (x) => x - columns / 2);
  return {
    type: "bar", orientation: "h", base, x: base.map(() => columns), width: rows, offset: -rows / 2,
    textposition: "inside", insidetextanchor: "middle", textangle: 0, constraintext: "none",
    marker: fill(layer, fills), hoverinfo: "none",
  };
};

/**
 * Return how squares are filled: of fates, with one flat band of the colour scale for each code.
 * @param {Layer} layer
 * @param {string[]} fills
 */
const fill = ({ opacity, colour, fate }, fills) => {
  const look = { opacity, line: { width: 0 } };
  if (colour) return { ...look, color: colour };
  const colorscale = fills.flatMap((band, code) => [0, 1].map((end) => [(code + end) / fills.length, band]));
  const bands = { ...look, colorscale, cmin: -0.5, cmax: fills.length - 0.5, showscale: false };
  return fate ? { ...bands, color: fate } : bands;
};

/** @param {Layer} layer */
const sign = (layer) => {
  const { size, colour, stroke } = layer;
  const look = { size, color: colour, line: { width: stroke, color: colour } };
  return layer.sign ? { ...look, symbol: Array.from(layer.sign, (_, i) => symbolOf(layer, i)) } : look;
};
