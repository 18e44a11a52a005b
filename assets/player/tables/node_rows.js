// Rows of nodes.
import { isJudged, seenFate } from "../stream/fates.js";
import { sees } from "../text/explain.js";
import { sourceWords } from "../text/words.js";

export const MOST_ROWS = 1000;

// The columns of the step's nodes. What the target said is not told before it has.
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

// Rows of nodes, each of which can be pinned.
export const nodeRows = (player, view, chosen) => {
  const { record, state } = player;
  const told = { player, record, k: state.step, nodes: record.nodes(state.step), judged: isJudged(state) };
  const names = view.columns.map(([, where]) => where.split(".")[1]);
  return chosen.slice(0, MOST_ROWS).map((node) => ({ node, cells: names.map((name) => NODES[name](told, node)) }));
};

export const allNodes = ({ record, state }) => Array.from(record.nodes(state.step)?.token ?? [], (_, node) => node);
