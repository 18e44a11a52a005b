// What is said of two runs in step.
import assert from "node:assert/strict";
import { test } from "node:test";
import { verdict } from "../../assets/page/beside.js";

const run = (steps, W = 15) => ({
  play: {}, end: {}, steps: Array(steps).fill({ emitted: [7] }),
  head: { header: { method: "lookahead", label: "Lookahead", model: { name: "m" }, params: { W } } },
});

test("steps are compared, or said to be as many", () => {
  assert.match(verdict(run(8), run(8)), /^The same settings: 8 steps as before, /);
  assert.match(verdict(run(8), run(6, 4)), /^W 15 → 4: 6 steps instead of 8, /);
});
