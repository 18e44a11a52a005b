// Rows of nodes.
import { isJudged, seenFate } from "../stream/fates.js";
import { sees } from "../text/explain.js";
import { sourceWords } from "../text/words.js";

/** @import { Player } from "../player.js" */
/** @import { RunRecord } from "../stream/record.js" */
/** @import { CellValue, Nodes, TableRow, View } from "../types.d.ts" */

export const MOST_ROWS = 1000;

/**
 * The columns of the step's nodes. What the target said is not told before it has.
 * @typedef {{ player: Player, record: RunRecord, k: number, nodes: Nodes, judged: boolean }} Known
 * @type {{ [column: string]: (known: Known, node: number) => CellValue }}
 */
const NODES = {
  token: ({ record, nodes }, node) => record.visible(nodes.token[node]),
  number: (_, node) => node,
  depth: ({ nodes }, node) => nodes.depth[node],
  parent: ({ nodes }, node) => (node ? nodes.parent[node] : null),
  place: ({ record, k, nodes }, node) => record.steps[k].start - 1 + nodes.depth[node],
  source: ({ record, nodes }, node) => sourceWords(record, nodes.source[node] ?? ""),
  fate: ({ player, nodes, judged }, node) => player.fate(seenFate(nodes.fate[node], judged)).label,
  q: ({ nodes }, node) => nodes.q?.[node],
  choice: ({ record, nodes, judged }, node) => (judged && nodes.choice ? record.visible(nodes.choice[node]) : null),
  sees: ({ record, k }, node) => sees(record, k, node).join(". "),
};

/**
 * Rows of nodes, each of which can be pinned.
 * @param {Player} player
 * @param {View} view
 * @param {number[]} chosen
 * @returns {TableRow[]}
 */
export const nodeRows = (player, view, chosen) => {
  const { record, state } = player;
  const nodes = record.nodes(state.step);
  if (!nodes) return [];
  const known = { player, record, k: state.step, nodes, judged: isJudged(state) };
  const names = view.columns.map(([, where]) => where.split(".")[1]);
  return chosen.slice(0, MOST_ROWS).map((node) => ({ node, cells: names.map((name) => NODES[name](known, node)) }));
};

/** @param {Player} player */
export const allNodes = ({ record, state }) => Array.from(record.nodes(state.step)?.token ?? [], (_, node) => node);
