// The card of Lookahead's window: the paper's formula by sliders, recorded runs of six windows, the speed-up on each machine.
import { el } from "../../player/dom/elements.js";
import { Card } from "./card.js";
import { roundTicks } from "./chart.js";
import { SPANS } from "./choices.js";
import { slider } from "./controls.js";
import { curveName, isMeasured, passCost } from "./curves.js";
import { known, whole } from "./draft_card.js";
import { WINDOWS, fitted, recordedTokens, rowsOf, tokensPerStep, windowSpeedUp, windowVerdict, worstError } from "./lookahead.js";
import { LOOKS, RECORDED_LOOK } from "./passes_card.js";

/** @import { Cost } from "./cost.js" */
/** @import { Control } from "./controls.js" */
/** @import { Curve, LookaheadModel, PassCost, WindowRun } from "./types.d.ts" */

const HEIGHT = 280;
const AXIS = { label: "columns of the window (W = G)", low: 0.9, high: 72, log: true,
  ticks: /** @type {[number, string][]} */ (WINDOWS.map((window) => [window, String(window)])) };

/** @type {{ [name in keyof LookaheadModel]: { label: string, words: (value: number) => string } }} */
const SLIDERS = {
  alpha: { label: "A guessed token is right (α)", words: whole },
  every: { label: "Steps per good guess (f)", words: (value) => `${value.toFixed(1)} steps` },
  n: { label: "Length of an n-gram (N)", words: (value) => `${value} tokens` },
};

export class WindowCard extends Card {
  /** @param {Cost} page */
  constructor(page) {
    super("Lookahead’s window", "projected", "Tokens per step by equations 5 and 7 of Lookahead’s paper, beside recorded runs; below, divided by the pass as measured.",
      ["curve", "with", "alpha", "every", "n"], (row) => page.play(this.runs[row].id, 1));
    this.page = page;
    /** @type {WindowRun[]} */
    this.runs = [];
    this.isAsked = false; // for the recorded runs; if no answer comes, the next choice asks again
    /** @type {Map<keyof LookaheadModel, Control>} */
    this.sliders = new Map();
    for (const name of /** @type {(keyof LookaheadModel)[]} */ (Object.keys(SLIDERS))) {
      this.sliders.set(name, slider({ ...SLIDERS[name], span: SPANS[name], changed: (value, done) => page.choose({ [name]: value }, done, name) }));
    }
    this.fit = el("button", { type: "button", class: "ss-button ss-worded", hidden: true,
      onclick: () => page.choose({ ...fitted(this.runs, SPANS), n: this.runs[0].n }, true, "fit") }, "Fit to the recorded runs");
    this.controls.append(el("div", { class: "app-cost-sliders" }, ...[...this.sliders.values()].map(({ node }) => node)), this.fit);
  }

  async ask() {
    this.isAsked = true;
    this.runs = await this.page.windows() ?? [];
    this.isAsked = this.runs.length > 0;
    this.fit.hidden = !this.isAsked;
    if (this.isAsked) this.page.draw();
  }

  /** @param {Cost} page */
  show({ compared, choices }) {
    if (!this.isAsked) this.ask();
    for (const [name, control] of this.sliders) control.show(choices[name]);
    const costs = compared.map(passCost);
    const says = compared.map((curve, at) => ({ look: LOOKS[at], words: `${curveName(curve)}: ${windowVerdict(costs[at], choices, SPANS)}` }));
    this.draw({
      says: [...says, ...this.runs.length ? [this.comparison(choices)] : []],
      charts: [this.tokens(choices), this.speeds(choices, compared, costs)],
      table: () => this.table(choices, compared, costs),
      notes: ["A pass reads 2 W (N − 1) tokens. Left out: searching and filling the pool, and that longer texts make passes dearer. "
        + "The paper’s own fit, for LLaMA-2-Chat 7B on MT-Bench: α = 42.5%, f = 3.1."],
    });
  }

  /** @param {LookaheadModel} model */
  comparison(model) {
    const [{ model: name, n }] = this.runs;
    if (model.n !== n) return `The recorded runs (${name}) have N = ${n}.`;
    return `For the ${this.runs.length} recorded runs (${name}, one prompt) the formula is off by at most ${whole(worstError(model, this.runs))}.`;
  }

  /** @param {LookaheadModel} model */
  tokens(model) {
    const recorded = this.runs.map((run) => ({ x: run.window, y: recordedTokens(run), measured: true, press: () => this.page.play(run.id, 1),
      says: `recorded with W = ${run.window}, N = ${run.n}: ${recordedTokens(run).toFixed(2)} tokens per step` }));
    const formula = WINDOWS.map((window) => ({ x: window, y: tokensPerStep(model, window), measured: false,
      says: `formula, W = ${window}: ${tokensPerStep(model, window).toFixed(2)} tokens per step` }));
    const high = Math.max(...[...recorded, ...formula].map(({ y }) => y));
    return {
      figure: {
        says: "Tokens per step by the columns of the window, by the formula and as recorded.", height: HEIGHT, x: AXIS,
        y: { label: "tokens per step", low: 0, high: high * 1.04, ticks: roundTicks(0, high) },
        series: [{ name: "formula", look: LOOKS[0], line: true, points: formula }, { name: "recorded", look: RECORDED_LOOK, points: recorded }],
      },
      entries: [{ name: "the formula", look: LOOKS[0], measured: false, line: true },
        ...recorded.length ? [{ name: "recorded runs: press one to see it", look: RECORDED_LOOK, measured: true }] : []],
    };
  }

  /**
   * @param {LookaheadModel} model
   * @param {Curve[]} compared
   * @param {PassCost[]} costs
   */
  speeds(model, compared, costs) {
    const series = compared.map((curve, at) => ({ name: curveName(curve), look: LOOKS[at], line: true,
      points: WINDOWS.map((window) => ({ x: window, y: windowSpeedUp(costs[at], model, window), measured: isMeasured(curve, rowsOf(model, window)) }))
        .filter(({ y }) => !Number.isNaN(y))
        .map((point) => ({ ...point, says: `${curveName(curve)}, W = ${point.x}: ${point.y.toFixed(2)} times as fast` })) }));
    const high = Math.max(1.5, ...series.flatMap(({ points }) => points.map(({ y }) => y)));
    return {
      figure: {
        says: "Speed-up over one token a pass by the columns of the window, on each machine.", height: HEIGHT, level: 1, x: AXIS,
        y: { label: "speed-up over one token a pass", low: 0, high: high * 1.04, ticks: roundTicks(0, high) }, series,
      },
      entries: [...compared.map((curve, at) => ({ name: curveName(curve), look: LOOKS[at], measured: true, line: true })),
        { name: "interpolated between two measured passes", look: LOOKS[0], measured: false }],
      level: "as fast as one token a pass",
    };
  }

  /**
   * @param {LookaheadModel} model
   * @param {Curve[]} compared
   * @param {PassCost[]} costs
   */
  table(model, compared, costs) {
    const windows = [...new Set([...this.runs.map(({ window }) => window), ...WINDOWS])];
    return {
      opens: this.runs.length, // whose rows come first
      columns: ["W", "recorded", "formula", "tokens a pass reads", ...compared.map((curve) => `${curveName(curve)}: speed-up`)],
      more: false,
      rows: windows.map((window) => {
        const run = this.runs.find((each) => each.window === window);
        return [window, run ? known(recordedTokens(run)) : null, known(tokensPerStep(model, window)), rowsOf(model, window),
          ...costs.map((cost) => known(windowSpeedUp(cost, model, window)))];
      }),
    };
  }
}
