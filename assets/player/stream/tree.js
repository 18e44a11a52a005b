// The tree of a step: who sees whom, and where each node stands in a picture of it.
import { FATE } from "./fates.js";

/** @import { Nodes } from "../types.d.ts" */

/**
 * The guesses for the place behind a node, every token once: the counterpart of siblings in viz/fates.py.
 * @param {Nodes} nodes
 * @param {number} node
 * @returns {number[]}
 */
export const siblings = (nodes, node) => {
  /** @type {Map<number, number>} */
  const found = new Map();
  for (let guess = 1; guess < nodes.count; guess += 1) {
    const here = nodes.place[nodes.parent[guess]] === nodes.place[node] && nodes.fate[guess] !== FATE.EXPLORED;
    const stands = !found.has(nodes.token[guess]) || nodes.fate[guess] === FATE.ACCEPTED;
    if (here && stands) found.set(nodes.token[guess], guess);
  }
  return [...found.values()];
};

/**
 * The nodes that a node sees in its step, root first: itself and its ancestors, as far back as a sliding window.
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
 * The row of every node in a picture: a first child goes on in its parent's row, every other one begins a row, in the
 * order of the draft. Explored nodes, and what hangs off them, have none. The counterpart of viz/tree_layout.py.
 * @param {Nodes} nodes
 * @returns {(number | null)[]}
 */
export const treeRows = (nodes) => {
  if (nodes.row) return nodes.row;
  /** @type {(number | null)[]} */
  const rows = new Array(nodes.count).fill(null);
  /** @type {[node: number, row: number | null][]} */
  const waiting = [[0, 0]];
  let last = 0;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [node, row] = next;
    rows[node] = row === null ? (last += 1) : row;
    const [first, ...rest] = nodes.children[node].filter((child) => nodes.fate[child] !== FATE.EXPLORED);
    for (const child of rest.reverse()) waiting.push([child, null]);
    if (first !== undefined) waiting.push([first, rows[node]]);
  }
  nodes.row = rows;
  return rows;
};

/**
 * Lines from parents to nodes, as plotly wants them: from, to, and a gap.
 * @param {{ edges: string, from?: number, to?: number }} encoded
 * @param {Nodes} nodes
 * @returns {(number | null)[]}
 */
export const treeEdges = ({ edges, from = 0, to }, nodes) => {
  const rows = treeRows(nodes);
  const places = edges === "depth" ? nodes.depth : rows;
  /** @type {(number | null)[]} */
  const drawn = [];
  for (let node = from; node < Math.min(to ?? nodes.count, nodes.count); node += 1) {
    const known = node > 0 && rows[node] !== null;
    drawn.push(...(known ? [places[nodes.parent[node]], places[node], null] : [null, null, null]));
  }
  return drawn;
};
