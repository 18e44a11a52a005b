// Numbers and tables of the Debug page.
import assert from "node:assert/strict";
import test from "node:test";

import { measuredText, metricText } from "../../assets/page/debug/table.js";

test("one of something is not plural", () => {
  assert.deepEqual(measuredText({ value: 1, low: 1, high: 1, unit: "tokens" }), { number: "1", interval: "1 to 1", unit: "token" });
  assert.equal(measuredText({ value: 1, low: null, high: null, unit: "guesses" }).unit, "guess");
  assert.equal(measuredText({ value: 1.001, low: 0.9, high: 1.1, unit: "rows per token" }).unit, "rows per token");
});

test("a number and its interval have as many digits as sentences", () => {
  const words = (value, low, high, unit = "times") => Object.values(measuredText({ value, low, high, unit })).slice(0, 2);
  assert.deepEqual(words(4.85, 4.541, 5.199), ["4.85", "4.54 to 5.20"]);
  assert.deepEqual(words(0.52, 0.4512, 0.581), ["0.52", "0.45 to 0.58"]);
  assert.deepEqual(words(8.48, 6.78, 10.41), ["8.48", "6.78 to 10.41"]);
  assert.deepEqual(words(1572.1, 467.3, 2715.7), ["1,572.1", "467.3 to 2,715.7"]);
  assert.deepEqual(words(0.0312, null, null), ["0.031", ""]);
  assert.deepEqual(words(0.918, 0.9, 1, "share"), ["91.8%", "90.0% to 100.0%"]);
});

test("a share is shown per cent with its interval, and a token's id as it is", () => {
  const columns = ["source", "share", "low", "high", "token", "steps"];
  const cells = ["draft", 0.0597, 0.04, 0.08123, 1110, 1110];
  assert.deepEqual(cells.map((value, place) => metricText(columns, place, value)), ["draft", "6.0%", "4.0%", "8.1%", "1110", "1,110"]);
  assert.equal(metricText(["w", "tokens per step", "low", "high", "acceptance rate"], 3, 2.5), "2.5");
  assert.equal(metricText(["w", "share", "steps", "low", "high"], 4, 0.9588), "95.9%");
  assert.equal(metricText(columns, 1, null), "–");
});
