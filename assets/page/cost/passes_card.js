// The card of measured c(T), on several machines.
import { Card } from "./card.js";
import { roundTicks } from "./chart.js";
import { curveName, curveSentence, isMeasured, mostTokens, passCost, provenance } from "./curves.js";

/** @import { Cost } from "./cost.js" */
/** @import { Curve } from "./types.d.ts" */

const HEIGHT = 320;
/** What curves look like, the chosen one first; the fourth mark is that of recorded runs. */
export const LOOKS = [0, 1, 2, 4];
export const RECORDED_LOOK = 3;

/**
 * Return powers of two up to a number of tokens.
 * @param {number} most
 * @returns {[number, string][]}
 */
export const powersOfTwo = (most) =>
  Array.from({ length: Math.ceil(Math.log2(most)) + 1 }, (_, power) => [2 ** power, String(2 ** power)]);

export class PassesCard extends Card {
  constructor() {
    super("What a pass over T tokens costs", "measured", "In passes over one token. Drafts need cheap passes over several tokens: "
      + "where the line is flat, reading guesses costs almost nothing.", ["curve", "with"]);
  }

  /** @param {Cost} page */
  show({ compared }) {
    const most = Math.max(...compared.map(mostTokens));
    const costs = compared.map(passCost);
    const high = Math.max(2, ...compared.flatMap((curve, at) => curve.rows.map(costs[at])));
    this.draw({
      says: compared.map((curve, at) => ({ words: curveSentence(curve), look: LOOKS[at] })),
      charts: [{
        figure: {
          says: compared.map(curveSentence).join(" "), height: HEIGHT, level: 1,
          x: { label: "T, tokens that a pass reads", low: 1, high: 2 ** Math.ceil(Math.log2(most)), log: true, ticks: powersOfTwo(most) },
          y: { label: "c(T), in passes over one token", low: 0, high: high * 1.04, ticks: roundTicks(0, high) },
          series: compared.map((curve, at) => ({
            name: curveName(curve), look: LOOKS[at], line: true,
            points: curve.rows.map((tokens, row) => ({ x: tokens, y: costs[at](tokens), measured: true,
              says: `${curveName(curve)}: T = ${tokens} costs ${costs[at](tokens).toFixed(2)} (${curve.milliseconds[row]} ms)` })),
          })),
        },
        entries: compared.map((curve, at) => ({ name: curveName(curve), look: LOOKS[at], measured: true, line: true })),
        level: "a pass over one token",
      }],
      table: () => this.table(compared),
      notes: ["The marks were measured. The broken lines between them only join them: nothing was measured there.",
        ...compared.map(provenance)],
    });
  }

  /** @param {Curve[]} compared */
  table(compared) {
    const rows = [...new Set(compared.flatMap((curve) => curve.rows))].sort((a, b) => a - b);
    return {
      columns: ["T", ...compared.flatMap((curve) => [`${curveName(curve)}: c(T)`, "ms"])], more: false,
      rows: rows.map((tokens) => [tokens, ...compared.flatMap((curve) => (isMeasured(curve, tokens)
        ? [Number(passCost(curve)(tokens).toFixed(3)), curve.milliseconds[curve.rows.indexOf(tokens)]] : [null, null]))]),
    };
  }
}
