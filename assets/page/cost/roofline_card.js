// The card of the roofline by GPUs' data sheets, for models and batches that were not measured here.
import { el } from "../../player/dom/elements.js";
import { Card } from "./card.js";
import { roundTicks } from "./chart.js";
import { menu, slider } from "./controls.js";
import { curveName, passCost } from "./curves.js";
import { known } from "./draft_card.js";
import { bestDraft, speedUp } from "./drafting.js";
import { RECORDED_LOOK, powersOfTwo } from "./passes_card.js";
import { BATCHES, BITS, CONTEXTS, DEVICES, SHAPES, chosenDevice, fits, gigabytes, rooflineCost, rooflineSentences } from "./roofline.js";

/** @import { Control } from "./controls.js" */
/** @import { Cost } from "./cost.js" */
/** @import { Curve } from "./types.d.ts" */

const HEIGHT = 280;
const MOST_TOKENS = 512;

const count = (/** @type {number} */ value) => value.toLocaleString("en");

export class RooflineCard extends Card {
  /** @param {Cost} page */
  constructor(page) {
    super("Larger models, other GPUs, more texts at once", "projected", "The roofline: a pass takes as long as reading its bytes or computing its "
      + "operations, whichever is longer. The draft is the one of the sliders above.",
    ["draft", "share", "accept", "keep", "gpu", "model", "bits", "context", "batch"]);
    this.gpu = menu("GPU", (value) => page.choose({ gpu: value }, true, "gpu"));
    this.gpu.fill([{ name: "", options: DEVICES.map(({ id, name }) => [id, name]) }]);
    this.model = slider({ label: "Model size", values: SHAPES.map((_, at) => at), words: (at) => SHAPES[at].name,
      changed: (at, done) => page.choose({ model: SHAPES[at].id }, done, "model") });
    /** @type {{ [name in "bits" | "context" | "batch"]: Control }} */
    this.sliders = {
      bits: slider({ label: "Bits of a weight", values: BITS, words: String, changed: (bits, done) => page.choose({ bits }, done, "bits") }),
      context: slider({ label: "Tokens of each text", values: CONTEXTS, words: count, changed: (context, done) => page.choose({ context }, done, "context") }),
      batch: slider({ label: "Batch: texts at once", values: BATCHES, words: String, changed: (batch, done) => page.choose({ batch }, done, "batch") }),
    };
    this.controls.append(el("div", { class: "app-cost-fields" }, this.gpu.node),
      el("div", { class: "app-cost-sliders" }, this.model.node, ...Object.values(this.sliders).map(({ node }) => node)));
  }

  /** @param {Cost} page */
  show({ choices, curves }) {
    const { device, shape } = chosenDevice(choices);
    this.gpu.show(device.id);
    this.model.show(SHAPES.indexOf(shape));
    for (const name of /** @type {const} */ (["bits", "context", "batch"])) this.sliders[name].show(choices[name]);
    const cost = rooflineCost(device, shape, choices);
    const batches = BATCHES.map((batch) => {
      const at = rooflineCost(device, shape, { ...choices, batch });
      return { batch, speedup: speedUp(at, choices), best: bestDraft(at, choices) };
    });
    const measured = curves.find(({ device: name, model, context, dtype }) => device.name.startsWith(name) && model === shape.id
      && context === choices.context && dtype === "bfloat16" && choices.bits === 16 && choices.batch === 1);
    const tokens = powersOfTwo(MOST_TOKENS).map(([value]) => value);
    const highest = Math.max(2, ...tokens.map(cost), ...(measured ? measured.rows.map(passCost(measured)) : []));
    const fastest = Math.max(1.5, ...batches.map(({ speedup }) => speedup));
    const says = [...rooflineSentences(device, shape, choices, choices), ...(measured ? [beside(measured, cost)] : [])];
    this.draw({
      says: [says.slice(0, 3).join(" "), ...says.slice(3)],
      charts: [{
        figure: {
          says: says[0], height: HEIGHT, level: 1, chosen: choices.draft + 1,
          x: { label: "T, tokens of each text that a pass reads", low: 1, high: MOST_TOKENS, log: true, ticks: powersOfTwo(MOST_TOKENS) },
          y: { label: "c(T), in passes over one token", low: 0, high: highest * 1.04, ticks: roundTicks(0, highest) },
          series: [{ name: "roofline", look: 0, line: true, points: tokens.map((each) => ({ x: each, y: cost(each), measured: false,
            says: `T = ${each} costs ${cost(each).toFixed(2)} passes over one token (projected)` })) },
          ...(measured ? [{ name: "measured", look: RECORDED_LOOK, points: measured.rows.map((each) => ({ x: each, y: passCost(measured)(each),
            measured: true, says: `T = ${each} costs ${passCost(measured)(each).toFixed(2)} (measured)` })) }] : [])],
        },
        entries: [{ name: "projected: c(T) by the roofline", look: 0, measured: false, line: true },
          ...(measured ? [{ name: `measured: ${curveName(measured)}`, look: RECORDED_LOOK, measured: true }] : [])],
        level: "a pass over one token",
      }, {
        figure: {
          says: says.slice(1, 3).join(" "), height: HEIGHT, level: 1, chosen: choices.batch,
          x: { label: "batch: texts at once", low: 1, high: BATCHES[BATCHES.length - 1], log: true, ticks: BATCHES.map((batch) => [batch, String(batch)]) },
          y: { label: "speed-up over one token a pass", low: 0, high: fastest * 1.04, ticks: roundTicks(0, fastest) },
          series: [{ name: "speed-up", look: 0, line: true, points: batches.map(({ batch, speedup }) => ({ x: batch, y: speedup, measured: false,
            says: `a batch of ${batch}: ${speedup.toFixed(2)} times as fast (projected)` })) }],
        },
        entries: [{ name: "projected: speed-up of the draft", look: 0, measured: false, line: true }],
        level: "as fast as one token a pass; below it speculation loses",
      }],
      table: () => ({
        columns: ["Batch", "Speed-up of this draft", "Best draft length", "Its speed-up", "Weights and texts, GB"], more: false,
        rows: batches.map(({ batch, speedup, best }) => [batch, known(speedup), best.draft || "do not speculate", known(best.speedup),
          `${gigabytes(shape, { ...choices, batch })}${fits(device, shape, { ...choices, batch }) ? "" : " (does not fit)"}`]),
      }),
      notes: [`${device.name}, by NVIDIA's data sheet: ${device.bytesPerSecond / 1e12} TB/s, ${device.operationsPerSecond / 1e12} TFLOP/s (dense bfloat16), `
        + `${device.memory / 1e9} GB. Weights of fewer bits are read as such and multiplied in bfloat16; keys and values have 16 bits.`,
      "Left out: launching kernels, drafting's own memory and batch, and that no device reaches its data sheet. Measured passes cost more than the roofline says."],
    });
  }
}

/**
 * Return what was measured beside the roofline.
 * @param {Curve} curve
 * @param {(tokens: number) => number} cost
 */
const beside = (curve, cost) => {
  const most = curve.rows[curve.rows.length - 1];
  return `Measured there: a pass over ${most} tokens costs ${passCost(curve)(most).toFixed(2)} times as much as one over a single token; the roofline says ${cost(most).toFixed(2)}.`;
};
