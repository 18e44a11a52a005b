// Trees of k chains of w guesses: what N-Grammys writes with them, what they cost, and what is left of that.
import { el } from "../../player/dom/elements.js";
import { Card } from "./card.js";
import { countedHow, curveName } from "./curves.js";

/** @import { Cost } from "./cost.js" */
/** @import { Curve, TreeGrid, WrittenGrid } from "./types.d.ts" */

/**
 * @typedef {object} TreeCell a tree of k chains of w guesses
 * @property {number} k
 * @property {number} w
 * @property {number} cost in passes over one token
 * @property {number | null} wrote tokens of a step; null where none were counted
 * @property {number | null} speed in tokens of autoregressive decoding in the same time
 * @property {boolean} noisy
 */

/**
 * Return the cells, a line for each k.
 * @param {TreeGrid} trees
 * @param {WrittenGrid | undefined} written
 * @returns {TreeCell[][]}
 */
export const cellsOf = ({ k, w, costs, noisy }, written) => k.map((chains, row) => w.map((guesses, column) => {
  const wrote = written?.tokens_per_step[written.k.indexOf(chains)]?.[written.w.indexOf(guesses)] ?? null;
  const cost = costs[row][column];
  return { k: chains, w: guesses, cost, wrote, speed: wrote && wrote / cost,
    noisy: noisy.some(([first, second]) => first === chains && second === guesses) };
}));

/** @param {TreeCell} cell */
const treeName = ({ k, w }) => `k ${k}, w ${w}`;

/**
 * Return in sentences which tree pays most, and what the largest does.
 * @param {TreeCell[][]} cells
 * @param {Curve} curve
 */
export const treeSentences = (cells, curve) => {
  const all = cells.flat(), last = all[all.length - 1], counted = all.filter(({ speed }) => speed !== null);
  if (!counted.length) {
    return [`${curveName(curve)}: a pass over the largest tree, ${treeName(last)}, costs ${last.cost.toFixed(2)} passes over one token. `
      + "What N-Grammys writes with this model was not counted."];
  }
  const best = counted.reduce((one, other) => (Number(other.speed) > Number(one.speed) ? other : one));
  const told = (/** @type {TreeCell} */ cell) => `${Number(cell.wrote).toFixed(2)} tokens per step at ${cell.cost.toFixed(2)} times the cost, `
    + `${Number(cell.speed).toFixed(2)}× autoregressive decoding`;
  const most = `The largest tree, ${treeName(last)}: ${told(last)}.`;
  if (Number(best.speed) <= 1) return [`${curveName(curve)}: no tree pays here. The best, ${treeName(best)}: ${told(best)}.`, most];
  return [`${curveName(curve)}: ${treeName(best)} pays most: ${told(best)}.`, ...(best === last ? [] : [most])];
};

/**
 * Return whose trees are shown: the first of the compared passes for which they were measured, else of all.
 * @param {Curve[]} compared the chosen one first
 * @param {Curve[]} curves
 */
export const curveWithTrees = (compared, curves) => [...compared, ...curves].find(({ trees }) => trees);

/**
 * Say that points can be pressed, where there are runs.
 * @param {{ [tree: string]: string }} runs
 */
export const pressable = (runs) => (Object.keys(runs).length ? ["Press a tree to see a recorded run with it, of pocket on one prompt."] : []);

export class TreesCard extends Card {
  /** @param {Cost} page */
  constructor(page) {
    super("Trees of k chains of w guesses", "projected", "A larger tree writes slightly more tokens per step, but every guess makes the pass costlier. Both were measured. "
      + "A cell has the speed-up, their ratio, and below it tokens per step / cost. Drafting is left out: it costs this method almost nothing.", ["curve", "with"]);
    this.box.remove(); // the grid is a table itself
    this.page = page;
    this.grid = el("div", { class: "app-cost-trees" });
    this.plots.replaceWith(this.grid);
  }

  /** @param {Cost} page */
  show({ curve: chosen, compared, curves, written }) {
    const curve = curveWithTrees(compared, curves), trees = curve?.trees;
    this.node.hidden = !trees;
    if (!curve || !trees) return;
    const counted = written.ngrammys[curve.model];
    const cells = cellsOf(trees, counted);
    const runs = this.page.treeRuns.ngrammys;
    this.grid.replaceChildren(gridTable(cells, trees.w, (cell) => {
      const run = runs[`k${cell.k}-w${cell.w}`];
      return run ? () => this.page.play(run, 1) : null;
    }));
    const others = curves.filter((other) => other.trees && other !== curve).map(curveName);
    const elsewhere = curve === chosen ? [] : [`No trees were measured for ${curveName(chosen)}: these are of another choice.`];
    const also = others.length ? [`Trees were also measured for ${others.join("; ")}.`] : [];
    const doubt = cells.flat().some(({ noisy }) => noisy) ? ["~ The middle half of these times lies more than 15% apart."] : [];
    if (trees.noisy.some(([, guesses]) => !guesses)) doubt.push("So does that of the pass over one token, by which all are divided.");
    const source = counted ? [countedHow(counted)] : [];
    this.draw({ says: [...elsewhere, ...treeSentences(cells, curve)], charts: [], table: () => ({ columns: [], rows: [], more: false }), notes: [...pressable(runs), ...source, ...also, ...doubt] });
  }
}

/**
 * @param {TreeCell[][]} cells
 * @param {number[]} w
 * @param {(cell: TreeCell) => (() => void) | null} opens
 */
const gridTable = (cells, w, opens) => el("table", { class: "ss-table", "aria-label": "Speed-up, tokens per step and cost by k and w" },
  el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "k \\ w"), ...w.map((guesses) => el("th", { scope: "col" }, String(guesses))))),
  el("tbody", {}, ...cells.map((line) => el("tr", {}, el("th", { scope: "row" }, String(line[0].k)), ...line.map((cell) => treeCell(cell, opens(cell)))))));

/**
 * @param {TreeCell} cell
 * @param {(() => void) | null} open
 */
const treeCell = (cell, open) => {
  const { cost, wrote, speed, noisy } = cell, mark = noisy ? "~" : "";
  const words = wrote === null || speed === null ? [`${mark}${cost.toFixed(2)} passes`]
    : [el("strong", {}, `${mark}${speed.toFixed(2)}×`), el("small", {}, `${wrote.toFixed(2)}/${cost.toFixed(2)}`)];
  return el("td", { class: speed && speed > 1 ? "app-cost-pays" : "" },
    ...(open ? [el("button", { type: "button", title: `A recorded run with ${treeName(cell)}`, onclick: open }, ...words)] : words));
};
