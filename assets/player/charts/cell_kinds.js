// Which traces of a figure are cells: what of them is drawn without plotly.
import { markerShape } from "./shapes.js";

/** @import { Marker, PlotTrace } from "../types.d.ts" */

/** @typedef {"squares" | "signs" | "words"} CellKind */

/**
 * Where words stand beside their places: plotly's positions as the text anchors of SVG.
 * @type {{ [position: string]: string }}
 */
export const ANCHORS = { "middle center": "middle", "middle left": "end", "middle right": "start" };

/**
 * What of a trace can be drawn here; the rest is left to plotly.
 * @param {PlotTrace} trace
 * @returns {CellKind | null}
 */
export const cellKind = (trace) => {
  const { mode, marker, visible, x, y } = trace;
  if (trace.type !== "scatter" || visible === false || !x || !y || trace.opacity !== undefined) return null;
  const words = hasWords(trace);
  if (mode === "text" || mode === "markers+text") return words ? (isSquare(mode, marker) ? "squares" : "words") : null;
  return mode === "markers" ? (isSquare(mode, marker) ? "squares" : isSign(marker) ? "signs" : null) : null;
};

/**
 * Words in the middle of their markers, or beside a place without one, all alike.
 * @param {PlotTrace} trace
 */
export const hasWords = (trace) =>
  Array.isArray(trace.text ?? []) && !trace.texttemplate && !trace.textfont?.style &&
  typeof trace.textfont?.color === "string" && Object.hasOwn(ANCHORS, trace.textposition ?? "") &&
  (trace.mode === "text" || (trace.mode === "markers+text" && trace.textposition === "middle center"));

/**
 * Squares of one size without a border, each of one colour.
 * @param {string} mode
 * @param {Marker | undefined} marker
 */
const isSquare = (mode, marker) => Boolean(
  mode !== "text" && marker?.symbol === "square" && marker.line?.width === 0 && typeof marker.size === "number" &&
  (typeof marker.color === "string" || banded(marker.colorscale)));

/**
 * Signs of one size and colour.
 * @param {Marker | undefined} marker
 */
const isSign = (marker) =>
  typeof marker?.size === "number" && typeof marker.color === "string" && marker.opacity === undefined &&
  typeof marker.line?.width === "number" && marker.line.color === marker.color &&
  (typeof marker.symbol === "object" ? Array.from(marker.symbol) : [marker.symbol ?? "circle"]).every(markerShape);

/**
 * A scale of flat bands, as that of the fates is.
 * @param {Marker["colorscale"]} scale
 */
const banded = (scale) =>
  Array.isArray(scale) && scale.length % 2 === 0 && scale.every(([, colour], i) => colour === scale[i - (i % 2)][1]);
