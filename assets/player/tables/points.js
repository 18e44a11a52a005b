// What a figure shows, point by point.
import { unescapeMarkup } from "../stream/escape.js";

/** @import { Player } from "../player.js" */
/** @import { Figure } from "../types.d.ts" */

/** @typedef {{ x: number, y: number, text: string, node: number, fate: string | null, symbol: string }} Seen */

/**
 * The points of a trace that are seen: places, and what is told of each.
 * @param {Player} player
 * @param {Figure} figure
 * @param {number} number of the trace
 * @returns {Seen[]}
 */
export const points = (player, { data }, number) => {
  const trace = data[number];
  if (!trace?.x || !trace.y || trace.visible === false) return [];
  const { x, y, text, customdata, marker } = trace;
  const fates = typeof marker?.color === "object" ? marker.color : [];
  const symbols = typeof marker?.symbol === "object" ? marker.symbol : [];
  return Array.from({ length: Math.min(x.length, y.length) }, (_, i) => ({
    x: x[i], y: y[i], text: unescapeMarkup(text?.[i] ?? ""), node: customdata?.[i] ?? -1,
    fate: fates[i] === undefined ? null : player.fate(Number(fates[i])).label, symbol: symbols[i] ?? "",
  }));
};

/**
 * @param {Seen} a
 * @param {Seen} b
 */
export const byPlace = (a, b) => a.y - b.y || a.x - b.x;

// A token that is written from right to left stays in its place among others.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;

/** @param {Seen} point */
const apart = ({ text }) => (RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text);

/**
 * Tokens side by side.
 * @param {Seen[]} row
 */
export const joined = (row) => row.map(apart).join(" ");
