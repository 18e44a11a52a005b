import assert from "node:assert/strict";
import test from "node:test";

import { forkIn, forkQuery } from "../../assets/page/fork.js";
import { choiceAt } from "../../assets/player/text/what_if.js";
import { FATE, run, stepLine } from "./runs.js";

const { ROOT, ACCEPTED, REJECTED, CORRECTION, EXPLORED, TWIN } = FATE;

// Behind the root an accepted guess with a rejected one, whose own child is rejected too; a twin, and a window's cell.
const NODES = {
  token: [5, 6, 7, 8, 6, 9], parent: [-1, 0, 1, 2, 0, 0], fate: [ROOT, ACCEPTED, REJECTED, REJECTED, TWIN, EXPLORED],
};
const record = run({}, stepLine({ nodes: NODES, emitted: [6, 9], emitted_fates: [ACCEPTED, CORRECTION], accepted: 1 }));

/** @param {number} node */
const at = (node, own = false) => choiceAt(record, { step: 0, node, own });

test("a rejected guess can be gone on with, and its place be written otherwise", () => {
  assert.deepEqual(at(2), { guess: true, keep: 1 });
});

test("behind a rejected guess there is no place in the text", () => {
  assert.deepEqual(at(3), { guess: true, keep: null });
});

test("what was written already is no other way", () => {
  assert.deepEqual(at(1), { guess: false, keep: 0 });
  assert.deepEqual(at(4), { guess: false, keep: 0 });
  assert.deepEqual(at(1, true), { guess: false, keep: 1 });
});

test("the root and what is only explored have no choice", () => {
  for (const node of [0, 5]) assert.deepEqual(at(node), { guess: false, keep: null });
});

test("the fields of an address hold any text", () => {
  for (const fork of [{ step: 3, node: 4 }, { step: 3, keep: 0, text: " a&b=<i>#\u{1F600}" }]) {
    const query = forkQuery(fork);
    assert.equal(forkIn(new URLSearchParams(`run=x&${query}&step=9`)), query);
  }
  assert.equal(forkIn(new URLSearchParams("run=x&force=a")), "");
});
