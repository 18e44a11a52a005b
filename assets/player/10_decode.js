"use strict";
// How the stream's encodings become plain values: the counterpart of viz/encode.py.
{
  const S = (globalThis.Specscope ??= {});

  const KINDS = {
    i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, f4: Float32Array,
  };

  S.FATE = {
    PROPOSED: 0, ROOT: 1, ACCEPTED: 2, REJECTED: 3, MATCHED: 4, EXPLORED: 5, CORRECTION: 6, BONUS: 7, INSPIRED: 8,
    PROMPT: 9,
  };
  S.PHASES = ["propose", "verify", "accept", "commit"];

  S.judged = ({ phase }) => S.PHASES.indexOf(phase) >= S.PHASES.indexOf("accept");

  // Until the target has judged them, guesses are only guesses.
  const JUDGEMENTS = new Set([S.FATE.ACCEPTED, S.FATE.REJECTED, S.FATE.MATCHED]);
  S.seenFate = (fate, judged) => (!judged && JUDGEMENTS.has(fate) ? S.FATE.PROPOSED : fate);

  const bytes = (text) => {
    const raw = atob(text);
    const found = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i += 1) found[i] = raw.charCodeAt(i);
    return found;
  };

  // A packed array as a typed array, a matrix as an array of typed rows; a short array may stand as it is.
  S.unpack = (packed) => {
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
    const limits = left ? S.unpack(left) : [];
    const count = Math.min(rows ?? nodes.count, nodes.count);
    return Array.from({ length: count }, (_, row) => {
      const line = new Uint8Array(limits.length + count);
      limits.forEach((limit, column) => {
        if (nodes.depth[row] < limit) line[column] = quiet;
      });
      const seen = S.seenFate(nodes.fate[row], judged) + 1;
      for (const node of S.seenNodes(nodes, row, window)) line[limits.length + node] = seen;
      return line;
    });
  };

  // Plotly reads a little markup in texts; a token's text must not be read so.
  S.escape = (text) => text.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);

  S.unescape = (text) => text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

  S.cut = (text, longest) => {
    const letters = longest ? Array.from(text) : text;
    return longest && letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : text;
  };

  const texts = (ids, longest, scope) =>
    Array.from(ids, (id) => (id < 0 ? "" : S.escape(S.cut(scope.text(id), scope.whole ? 0 : longest))));

  // A column over the step's own nodes.
  const column = ({ node, from = 0, to, cut: longest }, scope) => {
    if (node === "id") return Array.from({ length: (to ?? scope.nodes.count) - from }, (_, i) => from + i);
    if (node === "depth") return Array.from(scope.nodes.depth.slice(from, to));
    if (node === "row") return S.treeRows(scope.nodes).slice(from, to);
    const part = (node === "token" ? scope.nodes.token : scope.nodes.fate).slice(from, to);
    return node === "token" ? texts(part, longest, scope) : fates(part, node === "symbol", scope);
  };

  const fates = (codes, marks, scope) => {
    const seen = codes.map((fate) => S.seenFate(fate, scope.judged));
    return marks ? Array.from(seen, scope.symbol) : seen;
  };

  const encoded = (value, scope) => {
    if ("bdata" in value) return S.unpack(value);
    if ("node" in value && scope.nodes) return column(value, scope);
    if ("edges" in value && scope.nodes) return S.treeEdges(value, scope.nodes);
    if ("tokens" in value) return texts(S.unpack(value.tokens), value.cut, scope);
    if ("fates" in value) return fates(S.unpack(value.fates), false, scope);
    if ("symbols" in value) return fates(S.unpack(value.symbols), true, scope);
    if ("closure" in value && scope.nodes) return closure(value.closure, scope);
    if (!("strings" in value)) return undefined;
    const plain = (told) => (typeof told === "string" ? told : scope.string(told));
    return Array.from(S.unpack(value.strings), (told) => S.escape(plain(told)));
  };

  // Plain values for plotly. `scope`: {text(id), string(number), colour(name), symbol(fate), judged, nodes}.
  S.resolve = (value, scope) => {
    if (typeof value === "string") return value.startsWith("$") ? scope.colour(value.slice(1)) : value;
    if (Array.isArray(value)) return value.map((part) => S.resolve(part, scope));
    if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
    const known = encoded(value, scope);
    if (known !== undefined) return known;
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, S.resolve(part, scope)]));
  };

  // `patch` over `base` without touching either; "marker.color" reaches into "marker".
  S.overlay = (base, patch) => {
    const merged = { ...base };
    for (const [name, value] of Object.entries(patch ?? {})) {
      const dot = name.indexOf(".");
      if (dot > 0) {
        const [outer, inner] = [name.slice(0, dot), name.slice(dot + 1)];
        merged[outer] = S.overlay(merged[outer] ?? {}, { [inner]: value });
      } else if (isPlain(value) && isPlain(merged[name])) {
        merged[name] = S.overlay(merged[name], value);
      } else {
        merged[name] = value;
      }
    }
    return merged;
  };

  const isPlain = (value) =>
    value !== null && typeof value === "object" && !Array.isArray(value) && !ArrayBuffer.isView(value);

  // The few things last used, at most `size` of them.
  S.Kept = class {
    constructor(size) {
      this.size = size;
      this.entries = new Map();
    }

    get(key, make) {
      let value = this.entries.get(key);
      if (value === undefined) value = make();
      else this.entries.delete(key);
      this.entries.set(key, value);
      if (this.entries.size > this.size) this.entries.delete(this.entries.keys().next().value);
      return value;
    }

    clear() {
      this.entries.clear();
    }
  };
}
