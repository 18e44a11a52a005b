// The cache's slots as rows of a table.
import { chunks } from "./chunks.js";

/** @import { Player } from "../player.js" */
/** @import { RunRecord } from "../stream/record.js" */
/** @import { Figure, PlotTrace, Rows, SlotSpec } from "../types.d.ts" */

/** @typedef {{ use?: number, first: number, stop: number }} Piece slots in a row, and the number of their use */

/**
 * Slots: neighbours that look alike are one row, unless something begins there.
 * @param {Player} player
 * @param {SlotSpec} spec
 * @param {Figure} figure
 * @returns {Rows}
 */
export const slotRows = ({ record, state }, { words, page }, { data }) => {
  const uses = words.flatMap((_, number) => pieces(data[number], page, number));
  const lost = pieces(data[words.length], page);
  const marks = slotMarks(data.slice(words.length + 1), page, record, state.step);
  const cuts = new Set([...[...uses, ...lost].flatMap(({ first, stop }) => [first, stop]), ...marks.keys()]);
  const bounds = [...cuts].sort((a, b) => a - b);
  /** @type {(Piece & { gone: boolean })[]} */
  const rows = [];
  for (const [i, first] of bounds.slice(0, -1).entries()) {
    /** @param {Piece} piece */
    const here = (piece) => piece.first <= first && first < piece.stop;
    const row = { use: uses.findLast(here)?.use, gone: lost.some(here), first, stop: bounds[i + 1] }; // seen: the top
    const before = rows.at(-1);
    const same = before?.use === row.use && before?.gone === row.gone && before?.stop === first && !marks.has(first);
    if (before && same) before.stop = row.stop;
    else if (row.use !== undefined) rows.push(row);
  }
  return {
    headings: ["What", "First slot", "Last slot", "Slots", "Sign"],
    rows: rows.map(({ use, first, stop, gone }) => {
      const signs = [...(marks.get(first) ?? []), ...(gone ? ["overwritten: held text"] : [])];
      return { cells: [words[use ?? -1], first, stop - 1, stop - first, signs.join(", ")] };
    }),
  };
};

/**
 * The bars of a trace, as slots. Those of another height lie a little lower in their line.
 * @param {PlotTrace} trace
 * @param {number} page slots of a line
 * @param {number} [use]
 * @returns {Piece[]}
 */
const pieces = ({ x, y, base, visible }, page, use) => {
  if (visible === false) return [];
  return Array.from(x ?? [], (length, i) => {
    const first = Math.floor(y?.[i] ?? NaN) * page + (base?.[i] ?? NaN);
    return { use, first, stop: first + length };
  });
};

/** @type {{ [sign: string]: string }} */
const SIGNS = { window: "the window begins", next: "written next" };

/**
 * What begins in a slot: a chunk, the window, or what is written next.
 * @param {PlotTrace[]} signs
 * @param {number} page
 * @param {RunRecord} record
 * @param {number} k
 */
const slotMarks = (signs, page, record, k) => {
  /** @type {Map<number, string[]>} */
  const found = new Map();
  /**
   * @param {number} slot
   * @param {string} name
   */
  const mark = (slot, name) => found.set(slot, [...(found.get(slot) ?? []), name]);
  const named = chunks(record, k);
  const ring = record.head.header.slots || Infinity;
  if (named.length > 1) for (const { first, name } of named) mark(first % ring, name);
  for (const { x, y, text, visible } of signs) {
    const name = visible === false ? null : SIGNS[text?.[0] ?? ""];
    if (!name) continue;
    Array.from(x ?? [], (at, i) => mark(Math.round((y?.[i] ?? NaN) + 0.5) * page + Math.floor(at), name));
  }
  return found;
};
