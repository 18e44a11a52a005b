// The nodes of a step as columns.
import { resolve } from "./decode.js";
import { FATE } from "./fates.js";

/** @import { Nodes, Numbers, Scope, StepLine } from "../types.d.ts" */
/** @import { RunRecord } from "./record.js" */

/** @type {Scope} */
const RAW = { text: String, string: String, colour: String, symbol: String, judged: true };

/**
 * Return the nodes of a step as columns, with what follows from their parents; null for a step that carries none.
 * @param {StepLine} step
 * @param {Pick<RunRecord, "string">} record
 * @returns {Nodes | null}
 */
export const nodeColumns = (step, record) => {
  const columns = step.nodes;
  if (!columns) return null;
  /** @param {unknown} encoded @returns {Numbers} */
  const numbers = (encoded) => /** @type {Numbers} */ (resolve(encoded, RAW));
  /** @param {unknown} encoded */
  const known = (encoded) => (encoded ? numbers(encoded) : null);
  /** @param {unknown} encoded */
  const strings = (encoded) => Array.from(known(encoded) ?? [], (number) => record.string(number));
  const [token, parent, fate] = [numbers(columns.token), numbers(columns.parent), numbers(columns.fate)];
  const count = token.length;
  const depth = new Int16Array(count);
  const path = [0];
  for (let node = 1; node < count; node += 1) {
    depth[node] = depth[parent[node]] + 1;
    if (fate[node] === FATE.ACCEPTED) path.push(node);
  }
  path.sort((a, b) => depth[a] - depth[b]);
  const row = Array.from(known(columns.row) ?? depth.map(() => 0), (each) => (each < 0 ? null : each));
  return {
    token, parent, fate, count, depth, path, row,
    choice: known(columns.choice), p: known(columns.p), q: known(columns.q),
    source: strings(columns.source), readers: strings(columns.readers),
    inspired: new Set(known(columns.inspired) ?? []),
    place: places(token, parent),
  };
};

/**
 * Return for every node the first node with the same tokens from the root to it: both are one position in the text.
 * @param {Numbers} token
 * @param {Numbers} parent
 */
const places = (token, parent) => {
  /** @type {Map<string, number>} */
  const known = new Map();
  /** @type {number[]} */
  const found = [];
  for (let node = 0; node < token.length; node += 1) {
    const way = node ? `${found[parent[node]]},${token[node]}` : "";
    const first = known.get(way) ?? node;
    known.set(way, first);
    found.push(first);
  }
  return found;
};
