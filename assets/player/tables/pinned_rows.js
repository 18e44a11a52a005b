// Target against drafter as a table: a row for every token that has a bar in the chart.
import { unpack } from "../stream/decode.js";
import { isAnswered, isJudged } from "../stream/fates.js";

/** @import { Player } from "../player.js" */
/** @import { Numbers, Packed, Rows, Seen, View } from "../types.d.ts" */

const HEADINGS = ["Token", "p of the target", "q of the drafter", "Guessed at node", "Sign"];

/**
 * The parts of the chart, in the order of viz/views/pair.py.
 * @typedef {{ x: number[], customdata: Packed | number[] }} TargetBars
 * @typedef {{ x?: number[], y?: number[] }} DrafterBars
 * @typedef {{ text: { tokens: Packed | number[] } }} Names
 * @typedef {{ y: number[], sign: string[] }} Signs
 * @typedef {{ text: { strings: string[] } }} Sentences
 * @typedef {[TargetBars, DrafterBars, Names, Signs, Sentences]} Bars
 */

/**
 * @param {Player} player
 * @param {View} view
 * @param {Seen} at
 * @returns {Rows}
 */
export const pinnedRows = ({ record }, view, { step, phase, pin }) => {
  const [answered, judged] = [isAnswered({ phase }), isJudged({ phase })];
  const about = judged || pin?.step === step ? pin : record.spot(step, 1); // which guess decides is not known yet
  const patch = judged || record.details.has(step) ? record.patch(view, step, about) : undefined;
  const bars = /** @type {Bars | undefined} */ (/** @type {unknown} */ (patch?.data));
  if (!bars) return { headings: HEADINGS, rows: [] };
  const [target, drafter, names, marks, { text }] = bars;
  const q = new Map(drafter.x?.map((share, i) => [Math.floor(drafter.y?.[i] ?? NaN), share]));
  /** @param {number} row */
  const signs = (row) => marks.sign.filter((_, i) => marks.y[i] === row)
    .map((sign) => (sign === "diamond" ? "taken" : "the guess")).join(", ");
  /** @type {Numbers} */
  const nodes = unpack(target.customdata);
  const rows = Array.from(unpack(names.text.tokens), (token, row) => {
    const [node, p] = [nodes[row], answered ? target.x[row] : null];
    return { node, cells: [record.visible(token), p, q.get(row), node < 0 ? null : node, judged ? signs(row) : null] };
  });
  return { headings: HEADINGS, rows, say: judged ? text.strings.map((words) => record.string(words)).filter(Boolean) : [] };
};
