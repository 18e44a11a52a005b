// Tables whose rows are the step's nodes, from the columns that the record has of them.
import { isAnswered, isJudged } from "../stream/fates.js";

/** @import { Player } from "../player.js" */
/** @import { RunRecord } from "../stream/record.js" */
/** @import { CellValue, Nodes, Rows, Seen, TableRow, View } from "../types.d.ts" */

export const MOST_ROWS = 1000;

/**
 * The columns of the step's nodes. The target's answers stay hidden until it has given them.
 * @typedef {{ player: Player, record: RunRecord, k: number, nodes: Nodes, answered: boolean, judged: boolean }} Known
 * @type {{ [column: string]: (known: Known, node: number) => CellValue }}
 */
const NODES = {
  token: ({ record, nodes }, node) => record.visible(nodes.token[node]),
  number: (_, node) => node,
  depth: ({ nodes }, node) => nodes.depth[node],
  parent: ({ nodes }, node) => (node ? nodes.parent[node] : null),
  place: ({ record, k, nodes }, node) => record.steps[k].start - 1 + nodes.depth[node],
  source: ({ nodes }, node) => nodes.source[node] ?? "",
  fate: ({ player, record, nodes, judged }, node) => player.fate(record.seenFate(nodes.fate[node], judged)).label,
  q: ({ nodes }, node) => nodes.q?.[node],
  choice: ({ record, nodes, answered }, node) => (answered && nodes.choice ? record.visible(nodes.choice[node]) : null),
  readers: ({ nodes }, node) => nodes.readers[node],
  sees: ({ record, k }, node) => record.sees(k, node),
};

/**
 * Return rows of nodes, each of which can be pinned.
 * @param {Player} player
 * @param {View} view
 * @param {Seen} at
 * @param {number[]} chosen
 * @returns {TableRow[]}
 */
const rowsOf = (player, view, at, chosen) => {
  const { record } = player;
  const nodes = record.nodes(at.step);
  if (!nodes) return [];
  const known = { player, record, k: at.step, nodes, answered: isAnswered(at), judged: isJudged(at) };
  return chosen.slice(0, MOST_ROWS).map((node) =>
    ({ node, cells: view.columns.map(([, name]) => NODES[name](known, node)) }));
};

/**
 * @param {Player} player
 * @param {Seen} at
 */
const allNodes = ({ record }, at) => Array.from(record.nodes(at.step)?.token ?? [], (_, node) => node);

/**
 * Return a row for every node.
 * @param {Player} player
 * @param {View} view
 * @param {Seen} at
 * @returns {Rows}
 */
export const nodeRows = (player, view, at) => {
  const nodes = allNodes(player, at);
  return { rows: rowsOf(player, view, at, nodes), count: nodes.length };
};

/**
 * Return the rows of the attention mask: first the text that is still unread, chunk by chunk, then a row for every node.
 * @param {Player} player
 * @param {View} view
 * @param {Seen} at
 * @returns {Rows}
 */
export const queryRows = (player, view, at) => {
  const { record } = player;
  const { sees, most } = view.base.table ?? {};
  /** @type {TableRow[]} */
  const unread = (record.steps[at.step].views?.[view.name]?.unread ?? []).map(([name, first, last]) =>
    ({ cells: ["text", `${first} to ${last}`, player.fate(record.fates.prompt).label, sees, name, null] }));
  const nodes = allNodes(player, at);
  const rows = [...unread, ...rowsOf(player, view, at, nodes.slice(0, most))];
  return { rows: nodes.length ? rows : [], count: nodes.length ? unread.length + nodes.length : 0 };
};

/**
 * Return the rows of the tree: its nodes, and after the accepted path the target's own token.
 * @param {Player} player
 * @param {View} view
 * @param {Seen} at
 * @returns {Rows}
 */
export const branchRows = (player, view, at) => {
  const { record } = player;
  const nodes = record.nodes(at.step);
  if (!nodes) return { rows: [] };
  const rows = rowsOf(player, view, at, allNodes(player, at).filter((node) => nodes.row[node] !== null));
  const own = record.emitted(at.step).findLast((token) => token.own);
  if (!own || !isJudged(at)) return { rows };
  const { token, fate, node } = own;
  const written = [record.visible(token), null, nodes.depth[node] + 1, node, "the target itself"];
  return { rows: [...rows, { cells: [...written, player.fate(fate).label, null, null] }] };
};
