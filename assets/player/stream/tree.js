// The tree of a step: which nodes a node sees, and the lines between them.
/** @import { Nodes } from "../types.d.ts" */

/**
 * Return the nodes that a node sees in its step, root first: itself and its ancestors, as far back as a sliding window.
 * @param {Pick<Nodes, "parent" | "depth">} nodes
 * @param {number} node
 * @param {number | null} [window]
 * @returns {number[]}
 */
export const seenNodes = (nodes, node, window) => {
  /** @type {number[]} */
  const seen = [];
  for (let at = node; at >= 0; at = nodes.parent[at]) {
    if (!window || nodes.depth[node] - nodes.depth[at] < window) seen.unshift(at);
  }
  return seen;
};

/**
 * Return lines from parents to nodes, as plotly wants them: from, to, and a gap.
 * @param {{ edges: string, from?: number, to?: number }} encoded
 * @param {Nodes} nodes
 * @returns {(number | null)[]}
 */
export const treeEdges = ({ edges, from = 0, to }, nodes) => {
  const { row } = nodes;
  const places = edges === "depth" ? nodes.depth : row;
  /** @type {(number | null)[]} */
  const drawn = [];
  for (let node = from; node < Math.min(to ?? nodes.count, nodes.count); node += 1) {
    const hasEdge = node > 0 && row[node] !== null;
    drawn.push(...(hasEdge ? [places[nodes.parent[node]], places[node], null] : [null, null, null]));
  }
  return drawn;
};
