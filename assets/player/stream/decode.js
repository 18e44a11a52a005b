// How the stream's encodings become plain values: the counterpart of viz/encode.py.
import { cutText, escapeMarkup } from "./escape.js";
import { seenFate } from "./fates.js";
import { seenNodes, treeEdges, treeRows } from "./tree.js";

const KINDS = {
  i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, f4: Float32Array,
};

const bytes = (text) => {
  const raw = atob(text);
  const found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) found[i] = raw.charCodeAt(i);
  return found;
};

// A packed array as a typed array, a matrix as an array of typed rows; a short array may stand as it is.
export const unpack = (packed) => {
  if (Array.isArray(packed)) return packed;
  const { dtype, bdata, shape } = packed;
  const flat = new KINDS[dtype](bytes(bdata).buffer);
  if (!shape) return flat;
  const [rows, columns] = String(shape).split(",").map(Number);
  return Array.from({ length: rows }, (_, row) => flat.subarray(row * columns, (row + 1) * columns));
};

// The mask of a step, a row for each of its nodes or for the first `rows`: a column of the left is seen where the
// row's depth is below that column's number; behind these columns a row sees itself and its ancestors, no farther
// back than the sliding window. 0 means not seen, else the row's fate and one.
const closure = ({ left, quiet, window = Infinity, rows }, { nodes, judged }) => {
  const limits = left ? unpack(left) : [];
  const count = Math.min(rows ?? nodes.count, nodes.count);
  return Array.from({ length: count }, (_, row) => {
    const line = new Uint8Array(limits.length + count);
    limits.forEach((limit, column) => {
      if (nodes.depth[row] < limit) line[column] = quiet;
    });
    const seen = seenFate(nodes.fate[row], judged) + 1;
    for (const node of seenNodes(nodes, row, window)) line[limits.length + node] = seen;
    return line;
  });
};

const texts = (ids, longest, scope) =>
  Array.from(ids, (id) => (id < 0 ? "" : escapeMarkup(cutText(scope.text(id), scope.whole ? 0 : longest))));

// A column over the step's own nodes.
const column = ({ node, from = 0, to, cut: longest }, scope) => {
  if (node === "id") return Array.from({ length: (to ?? scope.nodes.count) - from }, (_, i) => from + i);
  if (node === "depth") return Array.from(scope.nodes.depth.slice(from, to));
  if (node === "row") return treeRows(scope.nodes).slice(from, to);
  const part = (node === "token" ? scope.nodes.token : scope.nodes.fate).slice(from, to);
  return node === "token" ? texts(part, longest, scope) : fates(part, node === "symbol", scope);
};

const fates = (codes, marks, scope) => {
  const seen = codes.map((fate) => seenFate(fate, scope.judged));
  return marks ? Array.from(seen, scope.symbol) : seen;
};

const encoded = (value, scope) => {
  if ("bdata" in value) return unpack(value);
  if ("node" in value && scope.nodes) return column(value, scope);
  if ("edges" in value && scope.nodes) return treeEdges(value, scope.nodes);
  if ("tokens" in value) return texts(unpack(value.tokens), value.cut, scope);
  if ("fates" in value) return fates(unpack(value.fates), false, scope);
  if ("symbols" in value) return fates(unpack(value.symbols), true, scope);
  if ("closure" in value && scope.nodes) return closure(value.closure, scope);
  if (!("strings" in value)) return undefined;
  const plain = (told) => (typeof told === "string" ? told : scope.string(told));
  return Array.from(unpack(value.strings), (told) => escapeMarkup(plain(told)));
};

// Plain values for plotly. `scope`: {text(id), string(number), colour(name), symbol(fate), judged, nodes}.
export const resolve = (value, scope) => {
  if (typeof value === "string") return value.startsWith("$") ? scope.colour(value.slice(1)) : value;
  if (Array.isArray(value)) return value.map((part) => resolve(part, scope));
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  const known = encoded(value, scope);
  if (known !== undefined) return known;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, resolve(part, scope)]));
};
