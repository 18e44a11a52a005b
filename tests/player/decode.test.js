import assert from "node:assert/strict";
import test from "node:test";

import { overlay } from "../../assets/player/charts/frames.js";
import { resolve, unpack } from "../../assets/player/stream/decode.js";
import { cutText, escapeMarkup, unescapeMarkup } from "../../assets/player/stream/escape.js";
import { LruCache } from "../../assets/player/stream/lru_cache.js";
import { nodeColumns } from "../../assets/player/stream/nodes.js";
import { FATE, pack, run, stepLine } from "./runs.js";

const TEXTS = { 1: "a", 2: "<b>&", 3: "👩‍🚀 is long" };

const scope = ({ judged = true, ...more } = {}) => ({
  seen: (fate) => run({}).seenFate(fate, judged), nodes: null, text: (id) => TEXTS[id] ?? `#${id}`, string: (given) => ["zero", "one & two"][given] ?? "",
  colour: (name) => `colour of ${name}`, symbol: (fate) => `symbol ${fate}`, ...more,
});

// Root 0 with children 1 and 2, and 3 after 1; the path is 0, 1.
const NODES = {
  token: [9, 1, 2, 3], parent: [-1, 0, 0, 1], fate: [FATE.ROOT, FATE.ACCEPTED, FATE.REJECTED, FATE.EXPLORED],
  row: [0, 0, 1, -1],
};
const nodes = () => nodeColumns(stepLine({ nodes: NODES }), run({}));

test("every kind of number comes back as it was packed", () => {
  const kinds = { i1: [-128, 127], u1: [0, 255], i2: [-32768, 32767], u2: [0, 65535], i4: [-(2 ** 31), 2 ** 31 - 1] };
  for (const [dtype, values] of Object.entries(kinds)) assert.deepEqual([...unpack(pack(values, dtype))], values, dtype);
  const floats = unpack(pack([0.5, Number.NaN, -Infinity], "f4"));
  assert.deepEqual([...floats], [0.5, Number.NaN, -Infinity]);
  assert.deepEqual([...unpack(pack([], "i4"))], []);
});

test("short arrays may stand as they are", () => assert.deepEqual(unpack([3, 1]), [3, 1]));

test("an unknown kind of number, or no base64, is an error and no picture", () => {
  assert.throws(() => unpack({ dtype: "f8", bdata: "" }), TypeError);
  assert.throws(() => unpack({ dtype: "u1", bdata: "!" }), { name: "InvalidCharacterError" });
});

test("a matrix is an array of its rows", () => {
  const rows = resolve(pack([1, 2, 3, 4, 5, 6], "u1", "2,3"), scope());
  assert.deepEqual(rows.map((row) => [...row]), [[1, 2, 3], [4, 5, 6]]);
});

test("texts of tokens are escaped, cut by letters, and empty for none", () => {
  assert.deepEqual(resolve({ tokens: pack([1, 2, -1, 7]) }, scope()), ["a", "&lt;b&gt;&amp;", "", "#7"]);
  assert.deepEqual(resolve({ tokens: [3], cut: 4 }, scope()), ["👩‍🚀…"]);
});

test("until they are judged, guesses are only guesses", () => {
  const fates = { fates: pack([FATE.ACCEPTED, FATE.REJECTED, FATE.MATCHED, FATE.EXPLORED, FATE.ROOT], "u1") };
  assert.deepEqual([...resolve(fates, scope())], [2, 3, 4, 5, 1]);
  assert.deepEqual([...resolve(fates, scope({ judged: false }))], [0, 0, 0, 5, 1]);
  assert.deepEqual(resolve({ symbols: [FATE.ACCEPTED] }, scope({ judged: false })), ["symbol 0"]);
});

test("strings come by their numbers or for themselves, and are escaped", () => {
  assert.deepEqual(resolve({ strings: [1, "<i>", 99] }, scope()), ["one &amp; two", "&lt;i&gt;", ""]);
  assert.deepEqual(resolve({ strings: pack([0], "u2") }, scope()), ["zero"]);
});

test("colours, lists, numbers and nothing pass through a patch of any depth", () => {
  const patch = { marker: { color: "$ink", size: [1, null, { deep: "$x" }] }, name: "plain", on: false };
  const expected = { marker: { color: "colour of ink", size: [1, null, { deep: "colour of x" }] }, name: "plain", on: false };
  assert.deepEqual(resolve(patch, scope()), expected);
  const typed = Float32Array.of(1);
  assert.equal(resolve(typed, scope()), typed);
});

test("columns over the step's own nodes", () => {
  const own = scope({ nodes: nodes() });
  assert.deepEqual(resolve({ node: "id", from: 1 }, own), [1, 2, 3]);
  assert.deepEqual(resolve({ node: "depth" }, own), [0, 1, 1, 2]);
  assert.deepEqual(resolve({ node: "token", to: 2 }, own), ["#9", "a"]);
  assert.deepEqual(resolve({ node: "row" }, own), [0, 0, 1, null]);
  assert.deepEqual([...resolve({ node: "fate", from: 1 }, own)], [2, 3, 5]);
  assert.deepEqual(resolve({ node: "symbol", from: 1, to: 3 }, own), ["symbol 2", "symbol 3"]);
  assert.deepEqual(resolve({ edges: "depth", from: 0, to: 3 }, own), [null, null, null, 0, 1, null, 0, 1, null]);
});

test("a view's base knows no nodes: their columns stay as they are", () => {
  assert.deepEqual(resolve({ node: "depth" }, scope()), { node: "depth" });
});

test("the mask: the text to the left by its limits, then a node's ancestors and itself", () => {
  const seen = (closure, judged = true) =>
    resolve({ closure }, scope({ nodes: nodes(), judged })).map((row) => [...row]);
  assert.deepEqual(seen({}), [[2, 0, 0, 0], [3, 3, 0, 0], [4, 0, 4, 0], [6, 6, 0, 6]]);
  assert.deepEqual(seen({ rows: 2 }, false), [[2, 0], [1, 1]]);
  assert.deepEqual(seen({ left: [1, 9], quiet: 7, window: 2 })[3], [0, 7, 0, 6, 0, 6]);
  assert.deepEqual(seen({ left: [1, 9], quiet: 7 })[0], [7, 7, 2, 0, 0, 0]);
});

test("names of a patch cannot reach into what all objects share", () => {
  const hostile = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}');
  resolve(hostile, scope());
  overlay({}, resolve(hostile, scope()));
  assert.equal({}.polluted, undefined);
  assert.equal(Object.prototype.polluted, undefined);
});

test("a patch lies over its base and touches neither", () => {
  const base = { marker: { color: "red", size: 3 }, x: [1, 2], line: { width: 1 } };
  const patch = { marker: { color: "blue" }, x: [9], line: { dash: "dot" }, fresh: 1 };
  const before = structuredClone([base, patch]);
  const expected = { marker: { color: "blue", size: 3 }, x: [9], line: { width: 1, dash: "dot" }, fresh: 1 };
  assert.deepEqual(overlay(base, patch), expected);
  assert.deepEqual([base, patch], before);
  assert.deepEqual(overlay(base, null), base);
});

test("escaping takes markup away and can be undone", () => {
  for (const text of ["<b>bold</b>", "a & b &amp; c", "&lt;", ""]) {
    assert.doesNotMatch(escapeMarkup(text), /[<>]/);
    assert.equal(unescapeMarkup(escapeMarkup(text)), text);
  }
});

test("texts are cut between letters, and only where they are longer", () => {
  assert.equal(cutText("abcd", 4), "abcd");
  assert.equal(cutText("abcde", 4), "abc…");
  assert.equal(cutText("😀😀😀", 2), "😀…");
  assert.equal(cutText("abc", 0), "abc");
  assert.equal(cutText("abc"), "abc");
});

test("a cache lets go of what was used longest ago", () => {
  const cache = new LruCache(2);
  const made = [];
  const get = (key) => cache.get(key, () => made.push(key));
  for (const key of ["a", "b", "a", "c", "a", "b"]) get(key);
  assert.deepEqual(made, ["a", "b", "c", "b"]);
  cache.delete("b");
  get("b");
  assert.equal(made.length, 5);
  cache.clear();
  assert.equal(cache.entries.size, 0);
});
