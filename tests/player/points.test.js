import assert from "node:assert/strict";
import test from "node:test";

import { pointsOf, towards } from "../../assets/page/debug/points.js";

const figure = (data, yaxis = {}) => ({ data, layout: { yaxis } });
const walk = (points, ...keys) => keys.reduce((from, key) => towards(points, from, key) ?? from, points[0]);
const named = ({ row, second }) => `${second ? "B" : "A"}${row}`;
const BARS = [{ type: "bar", customdata: [0, 1, 2], meta: 0 }, { type: "bar", customdata: [0, 1], meta: 1 }];

test("the bars of two selections are walked as they stand side by side", () => {
  const points = pointsOf(figure(BARS));
  const right = ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"];
  assert.deepEqual(right.map((_, count) => named(walk(points, ...right.slice(0, count)))), ["A0", "B0", "A1", "B1"]);
  assert.equal(named(walk(points, ...right)), "A2");
  assert.equal(towards(points, points[0], "ArrowUp"), null);
});

test("lying bars are walked downwards, the first on top", () => {
  const points = pointsOf(figure(BARS, { autorange: "reversed" }));
  assert.equal(named(walk(points, "ArrowDown", "ArrowDown")), "A1");
  assert.equal(named(walk(points, "ArrowDown", "ArrowUp")), "A0");
});

test("lines are walked along, and from one to the other below it", () => {
  const lines = [{ type: "scatter", customdata: [0, 1], meta: 0 }, { type: "scatter", customdata: [0, 1], meta: 1 }];
  const points = pointsOf(figure([{ type: "scatter", x: [0, 1] }, ...lines])); // the first stands for no rows
  assert.equal(named(walk(points, "ArrowRight", "ArrowDown")), "B1");
  assert.deepEqual(points.map(({ curve }) => curve), [1, 1, 2, 2]);
});

test("cells are walked over gaps, from panel to panel, straight ahead first", () => {
  const cells = (meta) => ({ type: "heatmap", customdata: [[0, null, 1], [null, 2, null]], meta });
  const points = pointsOf(figure([cells(0), cells(1)]));
  assert.equal(named(walk(points, "ArrowRight")), "A1");
  assert.equal(named(walk(points, "ArrowRight", "ArrowRight")), "B0");
  assert.equal(named(walk(points, "ArrowUp")), "A2");
  assert.deepEqual(walk(points, "ArrowUp").at, [1, 1]);
  assert.equal(named(walk(points, "End")), "B2");
  assert.equal(named(walk(points, "End", "Home")), "A0");
  assert.equal(towards(points, points[0], "constructor"), null);
});
