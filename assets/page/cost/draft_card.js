// The card that shows, by sliders, when a draft pays on every compared machine.
import { el } from "../../player/dom/elements.js";
import { Card } from "./card.js";
import { keyMark, roundTicks } from "./chart.js";
import { SPANS } from "./choices.js";
import { slider } from "./controls.js";
import { curveName, isMeasured, passCost } from "./curves.js";
import { MOST_DRAFT, bestDraft, breakEven, expectedTokens, percent, speedUp, stepCost, verdict } from "./drafting.js";
import { LOOKS } from "./passes_card.js";

/** @import { Cost } from "./cost.js" */
/** @import { Control } from "./controls.js" */
/** @import { Drafting } from "./types.d.ts" */

const HEIGHT = 300;
const LENGTHS = Array.from({ length: MOST_DRAFT }, (_, at) => at + 1);

export const whole = (/** @type {number} */ share) => `${Math.round(100 * share)}%`;

/** @type {{ [name in keyof Drafting]: { label: string, words: (value: number) => string } }} */
const SLIDERS = {
  draft: { label: "Draft length", words: (value) => `${value} guess${value === 1 ? "" : "es"}` },
  share: { label: "Drafting a guess costs", words: (value) => `${whole(value)} of a pass` },
  accept: { label: "First guess accepted", words: whole },
  keep: { label: "Each further guess accepted", words: (value) => (value === 1 ? "as often" : `${whole(value)} as often`) },
};

export class DraftCard extends Card {
  /** @param {Cost} page */
  constructor(page) {
    super("When a draft pays", "projected", "Tokens per step by your sliders, divided by what a step costs: the pass as measured above, and drafting.",
      ["curve", "with", "draft", "share", "accept", "keep"]);
    /** @type {Map<keyof Drafting, Control>} */
    this.sliders = new Map();
    for (const name of /** @type {(keyof Drafting)[]} */ (Object.keys(SLIDERS))) {
      this.sliders.set(name, slider({ ...SLIDERS[name], span: SPANS[name], changed: (value, done) => page.choose({ [name]: value }, done, name) }));
    }
    this.facts = el("dl", { class: "app-cost-facts" });
    this.controls.append(el("div", { class: "app-cost-sliders" }, ...[...this.sliders.values()].map(({ node }) => node)));
    this.of = el("p", { class: "app-cost-small" });
    this.says.after(this.of, this.facts);
  }

  /** @param {Cost} page */
  show({ compared, choices }) {
    for (const [name, control] of this.sliders) control.show(choices[name]);
    const costs = compared.map(passCost);
    const [cost] = costs;
    this.of.replaceChildren(keyMark(LOOKS[0], true, false), curveName(compared[0]));
    const facts = [
      ["Tokens per step", expectedTokens(choices).toFixed(2)],
      ["A step costs", shown(stepCost(cost, choices), (value) => `${value.toFixed(2)} passes`)],
      ["Speed-up", shown(speedUp(cost, choices), (value) => `${value.toFixed(2)}×`)],
      ["Acceptance to break even", needed(breakEven(cost, choices), Number.isNaN(speedUp(cost, choices)))],
      ["Best draft length", String(bestDraft(cost, choices).draft || "none")],
    ];
    this.facts.replaceChildren(...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
    const curves = compared.map((curve, at) => LENGTHS.map((draft) => ({ x: draft, y: speedUp(costs[at], { ...choices, draft }),
      measured: isMeasured(curve, draft + 1) })).filter(({ y }) => !Number.isNaN(y)).map((point) => ({ ...point,
      says: `${curveName(curve)}: ${SLIDERS.draft.words(point.x)} are ${point.y.toFixed(2)} times as fast` })));
    const high = Math.max(1.5, ...curves.flat().map(({ y }) => y));
    const says = compared.map((curve, at) => `${curveName(curve)}: ${lower(verdict(costs[at], choices))}`);
    this.draw({
      says: says.map((words, at) => ({ words, look: LOOKS[at] })),
      charts: [{
        figure: {
          says: says.join(" "), height: HEIGHT, level: 1, chosen: choices.draft,
          x: { label: "draft length", low: 0.5, high: MOST_DRAFT + 0.5, ticks: LENGTHS.map((draft) => [draft, String(draft)]) },
          y: { label: "speed-up over one token a pass", low: 0, high: high * 1.04, ticks: roundTicks(0, high) },
          series: compared.map((curve, at) => ({ name: curveName(curve), look: LOOKS[at], line: true, points: curves[at] })),
        },
        entries: [...compared.map((curve, at) => ({ name: curveName(curve), look: LOOKS[at], measured: true, line: true })),
          { name: "interpolated between two measured passes", look: LOOKS[0], measured: false }],
        level: "as fast as one token a pass",
      }],
      table: () => this.table(compared, costs, choices),
      notes: ["A guess counts as accepted if it is right and all guesses before it were; “as often” compares it with the one before. “Passes” are passes over a single token. "
        + "Left out: accepting, committing, and that longer texts make passes dearer."],
    });
  }

  /**
   * @param {import("./types.d.ts").Curve[]} compared
   * @param {import("./types.d.ts").PassCost[]} costs
   * @param {Drafting} drafting
   */
  table(compared, costs, drafting) {
    return {
      columns: ["Draft length", "Tokens per step", ...compared.flatMap((curve) => [`${curveName(curve)}: speed-up`, "acceptance to break even"])],
      more: false,
      rows: LENGTHS.map((draft) => [draft, Number(expectedTokens({ ...drafting, draft }).toFixed(2)), ...costs.flatMap((cost) => [
        known(speedUp(cost, { ...drafting, draft })), needed(breakEven(cost, { ...drafting, draft }), Number.isNaN(cost(draft + 1)))])]),
    };
  }
}

/** @param {string} sentence */
const lower = (sentence) => sentence[0].toLowerCase() + sentence.slice(1);

/** @param {number} value */
export const known = (value) => (Number.isNaN(value) ? null : Number(value.toFixed(2)));

/**
 * @param {number} value
 * @param {(value: number) => string} words
 */
const shown = (value, words) => (Number.isNaN(value) ? "not measured" : words(value));

/**
 * @param {number | null} accept
 * @param {boolean} [unknown]
 */
const needed = (accept, unknown = false) => (unknown ? "not measured" : accept === null ? "never" : percent(accept));
