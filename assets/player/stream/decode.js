// Decodes the stream's encodings to plain values. viz/stream/encode.py encodes, and decodes for notebooks, where no
// script runs.
import { cutText, escapeMarkup } from "./escape.js";
import { seenNodes, treeEdges } from "./tree.js";

/** @import { Nodes, Numbers, Packed, Scope, Typed, Value } from "../types.d.ts" */

/**
 * @typedef {Packed | number[]} Codes
 * @typedef {{ left?: Codes, quiet?: number, window?: number, rows?: number }} Closure
 * @typedef {{ node: string, from?: number, to?: number, cut?: number }} Column
 * @typedef {{ edges: string, from?: number, to?: number }} Edges
 * @typedef {Packed | Column | Edges | { tokens: Codes, cut?: number } | { fates: Codes } | { symbols: Codes }
 *   | { closure: Closure } | { strings: Packed | (number | string)[] }} Encoded
 */

const KINDS = {
  i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, f4: Float32Array,
};

/** @param {string} text */
const bytes = (text) => {
  const raw = atob(text);
  const array = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) array[i] = raw.charCodeAt(i);
  return array;
};

/**
 * Return a packed array as a typed array.
 * @param {Packed} packed
 * @returns {Typed}
 */
const typed = ({ dtype, bdata }) => new KINDS[dtype](bytes(bdata).buffer);

/**
 * Return a packed array as a typed array; a short array may be plain.
 * @param {Packed | number[]} packed
 */
export const unpack = (packed) => (Array.isArray(packed) ? packed : typed(packed));

/**
 * @param {Packed} packed
 * @returns {packed is Packed & { shape: string }}
 */
const isMatrix = (packed) => packed.shape !== undefined;

/**
 * Return a packed matrix as an array of its rows.
 * @param {Packed & { shape: string }} packed
 */
const unpackRows = (packed) => {
  const flat = typed(packed);
  const [rows, columns] = String(packed.shape).split(",").map(Number);
  return Array.from({ length: rows }, (_, row) => flat.subarray(row * columns, (row + 1) * columns));
};

/**
 * Return the mask of a step, a row for each of its nodes or for the first `rows`: a column of the left is seen where the
 * row's depth is below that column's number; after these columns a row sees itself and its ancestors, no farther
 * back than the sliding window. 0 means not seen, else the row's fate and one.
 * @param {Closure} encoded
 * @param {Nodes} nodes
 * @param {Scope} scope
 */
const closure = ({ left, quiet = 0, window = Infinity, rows }, nodes, scope) => {
  const limits = left ? unpack(left) : [];
  const count = Math.min(rows ?? nodes.count, nodes.count);
  return Array.from({ length: count }, (_, row) => {
    const line = new Uint8Array(limits.length + count);
    for (let at = 0; at < limits.length; at += 1) {
      if (nodes.depth[row] < limits[at]) line[at] = quiet;
    }
    const seen = scope.seen(nodes.fate[row]) + 1;
    for (const node of seenNodes(nodes, row, window)) line[limits.length + node] = seen;
    return line;
  });
};

/**
 * @param {Numbers} ids
 * @param {number | undefined} longest
 * @param {Scope} scope
 */
const texts = (ids, longest, scope) =>
  Array.from(ids, (id) => (id < 0 ? "" : escapeMarkup(cutText(scope.text(id), longest))));

/**
 * Return a column over the step's own nodes.
 * @param {Column} encoded
 * @param {Nodes} nodes
 * @param {Scope} scope
 */
const column = ({ node, from = 0, to, cut }, nodes, scope) => {
  if (node === "id") return Array.from({ length: (to ?? nodes.count) - from }, (_, i) => from + i);
  if (node === "depth") return Array.from(nodes.depth.slice(from, to));
  if (node === "row") return nodes.row.slice(from, to);
  const part = (node === "token" ? nodes.token : nodes.fate).slice(from, to);
  return node === "token" ? texts(part, cut, scope) : fates(part, node === "symbol", scope);
};

/**
 * @param {Numbers} codes
 * @param {boolean} marks whether as markers
 * @param {Scope} scope
 */
const fates = (codes, marks, scope) => {
  const seen = codes.map((fate) => scope.seen(fate));
  return marks ? Array.from(seen, (fate) => scope.symbol(fate)) : seen;
};

/**
 * Return the values of an encoding; undefined where an object is none.
 * @param {Encoded} value
 * @param {Scope} scope
 */
const encoded = (value, scope) => {
  const { nodes } = scope;
  if ("bdata" in value) return isMatrix(value) ? unpackRows(value) : typed(value);
  if ("node" in value && nodes) return column(value, nodes, scope);
  if ("edges" in value && nodes) return treeEdges(value, nodes);
  if ("tokens" in value) return texts(unpack(value.tokens), value.cut, scope);
  if ("fates" in value) return fates(unpack(value.fates), false, scope);
  if ("symbols" in value) return fates(unpack(value.symbols), true, scope);
  if ("closure" in value && nodes) return closure(value.closure, nodes, scope);
  if (!("strings" in value)) return undefined;
  const given = Array.isArray(value.strings) ? value.strings : unpack(value.strings);
  return Array.from(given, (each) => escapeMarkup(typeof each === "string" ? each : scope.string(each)));
};

/**
 * Return plain values for plotly.
 * @param {Value} value
 * @param {Scope} scope
 * @returns {Value}
 */
export const resolve = (value, scope) => {
  if (typeof value === "string") return value.startsWith("$") ? scope.colour(value.slice(1)) : value;
  if (Array.isArray(value)) return value.map((part) => resolve(part, scope));
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  const decoded = encoded(/** @type {Encoded} */ (value), scope);
  if (decoded !== undefined) return decoded;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, resolve(part, scope)]));
};
