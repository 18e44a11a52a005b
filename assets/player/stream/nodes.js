// The nodes of a step as columns.
import { resolve } from "./decode.js";

/** @import { Nodes, Numbers, Scope, StepLine } from "../types.d.ts" */
/** @import { RunRecord } from "./record.js" */

/** @type {Scope} */
const RAW = { text: String, string: String, colour: String, symbol: String, seen: Number };

/**
 * Return the nodes of a step as columns, with what follows from their parents; null for a step that carries none.
 * @param {StepLine} step
 * @param {Pick<RunRecord, "string" | "fates">} record
 * @returns {Nodes | null}
 */
export const nodeColumns = (step, record) => {
  const columns = step.nodes;
  if (!columns) return null;
  /** @param {unknown} encoded @returns {Numbers} */
  const numbers = (encoded) => /** @type {Numbers} */ (resolve(encoded, RAW));
  /** @param {unknown} encoded */
  const recorded = (encoded) => (encoded ? numbers(encoded) : null);
  /** @param {unknown} encoded */
  const strings = (encoded) => Array.from(recorded(encoded) ?? [], (number) => record.string(number));
  const [token, parent, fate] = [numbers(columns.token), numbers(columns.parent), numbers(columns.fate)];
  const count = token.length;
  const depth = new Int16Array(count);
  const path = [0], explored = new Set();
  for (let node = 1; node < count; node += 1) {
    depth[node] = depth[parent[node]] + 1;
    if (fate[node] === record.fates.accepted) path.push(node);
    else if (fate[node] === record.fates.explored) explored.add(node);
  }
  path.sort((a, b) => depth[a] - depth[b]);
  const row = Array.from(recorded(columns.row) ?? depth.map(() => 0), (each) => (each < 0 ? null : each));
  return {
    token, parent, fate, count, depth, path, explored, row,
    choice: recorded(columns.choice), p: recorded(columns.p), q: recorded(columns.q), u: recorded(columns.u),
    source: strings(columns.source), readers: strings(columns.readers),
    inspired: new Set(recorded(columns.inspired) ?? []),
  };
};
