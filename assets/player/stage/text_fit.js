// Fits a word to its piece: narrower if it is long, then smaller, but not too small to read.

/** @import { StagePiece } from "../types.d.ts" */

const BESIDE = 0.95; // letters that borders and gaps at both sides take
const NARROWEST = 0.75; // share of its width to which a long word is compressed before it is written smaller
const TIGHTEST = 0.55; // and before some of it is cut off
const MEASURED = 100; // pixels at which words are measured
const ROUNDING = 0.05; // letters that rounded sizes may take more
const MOST = 5000; // widths that are remembered
const BOLD = new Set([1, 2, 6, 7, 10]); // fates whose words are bold, as in 45_stage.css

const pen = globalThis.document?.createElement("canvas").getContext("2d") ?? null;
/** @type {Map<string, number>} */
const widths = new Map();

/** @param {number} value */
const short = (value) => Math.round(100 * value) / 100;

/**
 * Return the width of a text, in letters.
 * @param {string} text
 * @param {boolean} bold
 */
const widthOf = (text, bold) => {
  const key = `${bold} ${text}`;
  if (!widths.has(key)) {
    if (widths.size >= MOST) widths.clear();
    if (pen) pen.font = `${bold ? 650 : 400} ${MEASURED}px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif`;
    widths.set(key, (pen?.measureText(text).width ?? 0) / MEASURED);
  }
  return widths.get(key) ?? 0;
};

/**
 * How a piece's word is written: its size in letters of the stage, how narrow, and where it is cut before that, in its own.
 * A word that fits as measured is not cut: some systems round the width of every letter up to whole pixels.
 * @param {{ letter: number, column: number, least: number }} stage
 * @param {StagePiece} piece
 */
export const fitted = ({ letter, column, least }, { text, fate, faint }) => {
  const room = column - BESIDE;
  const natural = widthOf(text, BOLD.has(fate) && !faint);
  const compressed = Math.max(NARROWEST, Math.min(1, room / natural));
  const size = Math.max(least / letter, Math.min(1, room / natural / compressed));
  const narrow = Math.max(TIGHTEST, Math.min(compressed, room / natural / size));
  const most = short(room / size / narrow) + ROUNDING;
  return { size: short(size), narrow: short(narrow), most: natural > most ? `${most}em` : "none" };
};
