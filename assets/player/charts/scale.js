// A figure of cells that grows with its screen: sizes are in pixels, so places alone would drift apart.

/** @import { Figure, Layer, Part } from "../types.d.ts" */

const PIXELS = new Set(["size", "font", "stroke"]); // of a layer
const OTHERS = new Set(["size", "width"]); // of plotly's fonts, markers and lines

/**
 * @param {Figure} figure
 * @param {number} by
 * @returns {Figure}
 */
export const enlarged = (figure, by) => {
  if (by === 1) return figure;
  const data = figure.data.map((part) => ("layer" in part ? layer(part, by) : trace(part, by)));
  return { ...figure, data, layout: /** @type {Figure["layout"]} */ (styled(figure.layout, by)) };
};

/**
 * @param {Layer} part
 * @param {number} by
 */
const layer = (part, by) => /** @type {Layer} */ (Object.fromEntries(Object.entries(part).map(([name, value]) =>
  [name, PIXELS.has(name) && typeof value === "number" ? value * by : value])));

/**
 * Scale the looks of a part, which are in pixels; bars have widths in columns.
 * @param {Part} part
 * @param {number} by
 */
const trace = (part, by) => /** @type {Part} */ (Object.fromEntries(Object.entries(part).map(([name, value]) =>
  [name, ["marker", "line", "textfont"].includes(name) ? styled(value, by) : value])));

/**
 * @param {unknown} value
 * @param {number} by
 * @param {string} [name]
 * @returns {unknown}
 */
const styled = (value, by, name = "") => {
  if (typeof value === "number") return OTHERS.has(name) ? value * by : value;
  if (Array.isArray(value)) return value.map((each) => styled(each, by));
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  const margins = name === "margin";
  return Object.fromEntries(Object.entries(value).map(([key, part]) =>
    [key, margins && typeof part === "number" ? part * by : styled(part, by, key)]));
};
