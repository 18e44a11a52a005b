// Trees of Medusa's heads: the tokens, the cost and the speed-up of a step, by the size of its tree.
import { modelName } from "../../player/text/words.js";
import { Card } from "./card.js";
import { roundTicks } from "./chart.js";
import { countedHow, curveName, isMeasured, mostTokens, passCost } from "./curves.js";
import { powersOfTwo } from "./passes_card.js";
import { pressable } from "./trees_card.js";

/** @import { Cost } from "./cost.js" */
/** @import { Curve, WrittenSizes } from "./types.d.ts" */

/**
 * @typedef {object} HeadTree a tree of so many guesses
 * @property {number} size
 * @property {number} wrote tokens of a step
 * @property {number} expected the same, from the accuracies of the heads
 * @property {number} cost of a step, in passes over one token
 * @property {number} speed in tokens of autoregressive decoding in the same time
 * @property {boolean} measured whether a pass over as many tokens was
 */

const HEIGHT = 280;

/**
 * Return the trees whose passes were measured, or lie between two that were: a pass reads the guesses and the token before them.
 * @param {Curve} curve
 * @param {WrittenSizes} written
 * @returns {HeadTree[]}
 */
export const headTrees = (curve, { sizes, tokens_per_step, expected }) => {
  const cost = passCost(curve), heads = curve.heads ?? 0;
  return sizes.flatMap((size, at) => {
    if (size + 1 > mostTokens(curve)) return [];
    const [wrote, step] = [tokens_per_step[at], cost(size + 1) + heads];
    return [{ size, wrote, expected: expected[at], cost: step, speed: wrote / step, measured: isMeasured(curve, size + 1) }];
  });
};

/** @param {number} size */
const treeName = (size) => `a tree of ${size} ${size === 1 ? "guess" : "guesses"}`;

/**
 * Return in sentences which size pays most, and what the largest tree does.
 * @param {HeadTree[]} trees
 * @param {Curve} curve
 * @param {string} model whose heads wrote
 */
export const headSentences = (trees, curve, model) => {
  const where = curveName(curve) + (model === curve.model ? "" : `, if heads write what ${modelName(model)}'s do`);
  const best = trees.reduce((one, other) => (other.speed > one.speed ? other : one)), largest = trees[trees.length - 1];
  const told = (/** @type {HeadTree} */ { wrote, cost, speed }) =>
    `${wrote.toFixed(2)} tokens per step at ${cost.toFixed(2)} times the cost, ${speed.toFixed(2)}× autoregressive decoding`;
  const most = `The largest tree counted, ${largest.size} guesses: ${told(largest)}.`;
  const first = best.speed > 1 ? `${where}: ${treeName(best.size)} pays most: ${told(best)}.`
    : `${where}: no tree pays here. The best, ${treeName(best.size)}: ${told(best)}.`;
  return best === largest ? [first] : [first, most];
};

export class HeadsCard extends Card {
  /** @param {Cost} page */
  constructor(page) {
    super("Trees of Medusa's heads", "projected", "The larger a tree, the less often an added guess is accepted; yet the pass reads every guess. "
      + "The tokens were counted, the passes measured; the speed-up is their ratio.", ["curve"], (row) => this.opens(this.sizes[row])?.());
    this.page = page;
    /** @type {number[]} of the trees in the table */
    this.sizes = [];
  }

  /**
   * Return what opens a recorded run with a tree of so many guesses.
   * @param {number} size
   */
  opens(size) {
    const run = this.page.treeRuns.medusa[size];
    return run ? () => this.page.play(run, 1) : undefined;
  }

  /** @param {Cost} page */
  show({ curve, written }) {
    const counted = written.medusa[curve.model] ?? written.medusa.smollm2, trees = counted ? headTrees(curve, counted) : [];
    if (!counted || !trees.length) {
      const lacks = counted ? "Passes over two tokens and more were not measured on this machine." : "What Medusa's heads write was not counted.";
      this.draw({ says: [lacks], charts: [], table: () => ({ columns: [], rows: [], more: false }), notes: [] });
      return;
    }
    this.sizes = trees.map(({ size }) => size);
    const most = trees[trees.length - 1].size, high = Math.max(...trees.flatMap(({ wrote, expected, speed }) => [wrote, expected, speed]));
    const says = headSentences(trees, curve, counted.model);
    /** @param {(tree: HeadTree) => number} y @param {(tree: HeadTree) => boolean} measured @param {string} words */
    const points = (y, measured, words) => trees.map((tree) => ({ x: tree.size, y: y(tree), measured: measured(tree), press: this.opens(tree.size),
      says: `${treeName(tree.size)}: ${y(tree).toFixed(2)} ${words}` }));
    this.draw({
      says,
      charts: [{
        figure: {
          says: says.join(" "), height: HEIGHT, level: 1,
          x: { label: "guesses of a tree", low: 1, high: 2 ** Math.ceil(Math.log2(most)), log: true, ticks: powersOfTwo(most) },
          y: { label: "tokens per step, and times autoregressive decoding", low: 0, high: high * 1.04, ticks: roundTicks(0, high) },
          series: [
            { name: "tokens per step", look: 0, line: true, points: points(({ wrote }) => wrote, () => true, "tokens per step") },
            { name: "expected", look: 1, line: true, points: points(({ expected }) => expected, () => false, "tokens per step expected") },
            { name: "speed-up", look: 2, line: true, points: points(({ speed }) => speed, () => false, "times autoregressive decoding") },
          ],
        },
        entries: [{ name: "tokens per step, counted", look: 0, measured: true, line: true },
          { name: "tokens per step, expected as if heads erred independently", look: 1, measured: false, line: true },
          { name: "speed-up, projected", look: 2, measured: false, line: true }],
        level: "autoregressive decoding",
      }],
      table: () => ({ opens: trees.filter(({ size }) => this.opens(size)).length, columns: ["guesses", "tokens per step", "expected", "cost", "speed-up"], more: false,
        rows: trees.map(({ size, wrote, expected, cost, speed }) => [size, ...[wrote, expected, cost, speed].map((each) => Number(each.toFixed(3)))]) }),
      notes: [...pressable(this.page.treeRuns.medusa), countedHow(counted), ...notes(curve, counted, trees)],
    });
  }
}

/**
 * @param {Curve} curve
 * @param {WrittenSizes} counted
 * @param {HeadTree[]} trees
 */
const notes = (curve, counted, trees) => [
  ...(counted.model === curve.model ? [] : [`What heads of ${modelName(curve.model)} write was not counted: these are ${modelName(counted.model)}'s.`]),
  curve.heads === null ? "What the heads themselves take was not measured on this machine, and is left out."
    : `The heads themselves take as long as ${curve.heads.toFixed(2)} passes over one token; measured with a small tree.`,
  ...(trees.every(({ measured }) => measured) ? [] : ["A pass reads one token more than its tree has guesses; "
    + "where passes over as many were not measured, the cost is read off the line between two that were."]),
];
