import assert from "node:assert/strict";
import test from "node:test";

import { moved, sentence } from "../../assets/page/landscape.js";

/** @type {[rows: number, columns: number]} */
const SIZE = [3, 5];

test("arrows lead to the neighbours, Home and End to the ends of the row", () => {
  assert.deepEqual(moved("ArrowRight", [1, 2], SIZE), [1, 3]);
  assert.deepEqual(moved("ArrowLeft", [1, 2], SIZE), [1, 1]);
  assert.deepEqual(moved("ArrowDown", [1, 2], SIZE), [2, 2]);
  assert.deepEqual(moved("ArrowUp", [1, 2], SIZE), [0, 2]);
  assert.deepEqual(moved("Home", [1, 2], SIZE), [1, 0]);
  assert.deepEqual(moved("End", [1, 2], SIZE), [1, 4]);
});

test("no key leads out of the table", () => {
  assert.deepEqual(moved("ArrowLeft", [0, 0], SIZE), [0, 0]);
  assert.deepEqual(moved("ArrowUp", [0, 0], SIZE), [0, 0]);
  assert.deepEqual(moved("ArrowDown", [2, 4], SIZE), [2, 4]);
  assert.deepEqual(moved("ArrowRight", [2, 4], SIZE), [2, 4]);
});

test("other keys are left to the page", () => {
  for (const key of ["a", "Tab", " ", "PageDown", "constructor"]) assert.equal(moved(key, [1, 2], SIZE), null);
});

test("a cell is said in the server's words", () => {
  const row = { label: "Medusa", settings: "", mean: "1.00", accepted: [2], signs: ["2"], words: ["no guess; the step writes 'a'"] };
  assert.equal(sentence(row, { text: "a", own: true, words: "token 1 of 1, 'a'" }, 0),
    "Medusa at token 1 of 1, 'a': no guess; the step writes 'a'.");
});
