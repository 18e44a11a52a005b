// Layers of cells: which the page draws itself, and what they are to plotly.
import assert from "node:assert/strict";
import { test } from "node:test";
import { asTrace, drawnHere, halvesOf, nodesOf, placeholders, symbolOf } from "../../assets/player/charts/layers.js";

const squares = { layer: "squares", x: [0], y: [1], size: 20, opacity: 0.3, fate: [1], text: ["a"], font: 9, ink: "red" };
const signs = { layer: "signs", x: [0], y: [1], yaxis: "y3", size: 6, colour: "black", stroke: 2 };
const layout = { xaxis: { range: [0, 1] }, yaxis: { range: [0, 1] }, yaxis3: { range: [0, 1] } };
const bars = { type: "bar", x: [1], y: [1], customdata: [4], marker: { size: [7, 8] } };
const view = (data, nodes, more = {}) => ({ nodes, base: { data, layout: { ...layout, ...more } } });

test("the page draws every layer whose axes have a range", () => {
  assert.deepEqual([...drawnHere(view([bars, squares, signs], [null, "points", null]))], [1, 2]);
  assert.deepEqual([...drawnHere(view([squares, signs], ["points", null], { yaxis3: { autorange: true } }))], [0]);
  assert.deepEqual([...drawnHere(view([squares], ["points"], { xaxis: undefined }))], []);
});

test("squares beside bars that are pointed at stay with plotly, as one pointer cannot find both", () => {
  assert.deepEqual([...drawnHere(view([bars, squares, signs], ["points", "points", null]))], [2]);
  const silent = { ...bars, hoverinfo: "skip" };
  assert.deepEqual([...drawnHere(view([silent, squares, signs], ["points", "points", null]))], [1, 2]);
});

test("one empty trace holds each pair of axes, and the other parts are hidden", () => {
  const held = placeholders(view([squares, signs, squares, bars], []), new Set([0, 1, 2]));
  assert.deepEqual([...held.keys()], [0, 1, 2]);
  assert.deepEqual([held.get(0).mode, held.get(0).yaxis, held.get(1).yaxis], ["none", undefined, "y3"]);
  assert.deepEqual(held.get(2), { type: "scatter", visible: false });
});

test("a sign is named, or counted among the layer's signs", () => {
  const named = { ...signs, sign: ["x", "star-open"] };
  const counted = { ...signs, sign: new Uint8Array([1, 0, 9]), signs: ["circle", "x"] };
  assert.deepEqual([symbolOf(named, 1), symbolOf(signs, 0)], ["star-open", "circle"]);
  assert.deepEqual([0, 1, 2].map((i) => symbolOf(counted, i)), ["x", "circle", ""]);
});

test("plotly gets squares of fates in bands of one colour each", () => {
  const { marker, mode, textposition, textfont } = asTrace({ ...squares, nodes: [3] }, ["white", "green"]);
  assert.deepEqual(marker.colorscale, [[0, "white"], [0.5, "white"], [0.5, "green"], [1, "green"]]);
  assert.deepEqual([marker.color, marker.cmin, marker.cmax], [[1], -0.5, 1.5]);
  assert.deepEqual([mode, textposition, textfont], ["markers+text", "middle center", { size: 9, color: "red" }]);
  const plain = asTrace({ ...squares, colour: "blue", font: undefined }, []);
  assert.deepEqual([plain.mode, plain.marker.color, plain.marker.colorscale], ["markers", "blue", undefined]);
});

test("plotly gets labels as text and signs as markers, on the axis of the layer", () => {
  const label = { layer: "labels", x: [0], y: [0], text: ["w"], side: "left", font: 11, ink: "grey" };
  assert.deepEqual([asTrace(label, []).mode, asTrace(label, []).textposition], ["text", "middle left"]);
  const { marker, yaxis, hoverinfo } = asTrace({ ...signs, sign: ["x"] }, []);
  assert.deepEqual([yaxis, hoverinfo, marker.symbol, marker.line], ["y3", "skip", ["x"], { width: 2, color: "black" }]);
});

test("nodes and sizes are read off either kind of part", () => {
  assert.deepEqual([nodesOf({ ...squares, nodes: [5] }), nodesOf(bars)], [[5], [4]]);
  const axes = [{ d2p: (x) => 40 * x }, { d2p: (y) => 100 - 30 * y }];
  const parts = [squares, bars, { x: [] }, { ...squares, span: [0.9, 0.8] }];
  assert.deepEqual(parts.map((part) => halvesOf(part, 1, axes)), [[10, 10], [4, 4], [4, 4], [18, 12]]);
});

test("plotly gets wide cells as bars around their places", () => {
  const wide = asTrace({ ...squares, x: [2, 3], span: [0.5, 0.75], nodes: [3, 4] }, ["white", "green"]);
  assert.deepEqual([wide.type, wide.orientation, wide.base, wide.x], ["bar", "h", [1.75, 2.75], [0.5, 0.5]]);
  assert.deepEqual([wide.y, wide.width, wide.offset, wide.customdata], [[1], 0.75, -0.375, [3, 4]]);
  assert.deepEqual([wide.mode, wide.marker.symbol, wide.marker.color, wide.marker.cmax], [undefined, undefined, [1], 1.5]);
});
