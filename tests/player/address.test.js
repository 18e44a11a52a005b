// What an address names that its run does not have.
import assert from "node:assert/strict";
import { test } from "node:test";
import { lacking, misspelt, unknownFields, unraced, unread } from "../../assets/page/address.js";

const record = {
  last: 12, nodes: (k) => (k === 7 ? null : { count: 11 }), spot: (k, node) => (node <= 11 ? { step: k, node } : null),
};
const said = (query) => lacking(new URLSearchParams(query), record, (view) => view === "mask")
  .map((sentence) => sentence.replace(" in the address was left out", ""));

test("what a run has is followed without a word", () => {
  for (const query of ["", "step=12&node=11&view=mask", "branch=12n10", "branch=3k2&force=x", "step=7&node=99"]) {
    assert.deepEqual(said(query), []); // the nodes of step 7 are not known
  }
});

test("a step, a node, a view and a branch that a run lacks are named once each", () => {
  assert.deepEqual(said("step=13&node=99"), ["Step 13: the last step of this run is 12."]);
  assert.deepEqual(said("step=3&node=99&view=nosuch"),
    ["Node 99: the last node of step 3 is 10.", "View nosuch: this run has no such view."]);
  assert.deepEqual(said("branch=99n99"), ["Branch 99n99: the last step of this run is 12."]);
  assert.deepEqual(said("branch=3n99"), ["Branch 3n99: the last node of step 3 is 10."]);
  assert.deepEqual(said("branch=13k1&force=x"), ["Branch 13k1: the last step of this run is 12."]);
});

test("what is misspelt is left to the server, which says so", () => {
  assert.deepEqual(said("step=9999&node=x&view=<b>&branch=1x1"), []);
});

test("a tab without a server to read its address says what is misspelt in it", () => {
  const names = (query) => misspelt(new URLSearchParams(query)).map((sentence) => sentence.split("'")[1]);
  assert.deepEqual(names("step=3&node=0&phase=accept&view=mask&lesson=x"), []);
  assert.deepEqual(names("step=9999&node=-1&phase=later&view=<b>"), ["step", "node", "phase", "view"]);
  assert.deepEqual(names("screen=admin"), ["screen"]);
});

test("the Run tab of a page without a form says what it cannot use", () => {
  const names = (query) => unread(new URLSearchParams(query)).map((sentence) => sentence.split(" in the address")[0]);
  assert.deepEqual(names("run=x&step=3&node=0&view=mask&beside=y&__theme=dark"), []);
  assert.deepEqual(names("screen=run&run=x&step=-1&model=pocket&p.W=3"), ["'step'", "'model', 'p.W'"]);
  assert.deepEqual(names("screen=debug&f.method=jacobi"), []); // its own tab says it
});

test("the Race tab of a page without a form says what it cannot use", () => {
  assert.deepEqual(unraced(new URLSearchParams("screen=race&__theme=dark")), []);
  assert.deepEqual(unraced(new URLSearchParams("run=x&methods=jacobi")), []); // the Run tab says it
  const [sentence] = unraced(new URLSearchParams("screen=race&methods=jacobi,rest&model=pocket"));
  assert.match(sentence, /^'methods', 'model' in the address were left out: this page runs no races/);
});

test("fields that a tab does not know are named, as many as a sentence may hold", () => {
  const named = (query) => unknownFields(new URLSearchParams(query), ["lesson"]);
  assert.deepEqual(named("screen=learn&lesson=x&__theme=dark&utm_source=3"), []);
  assert.deepEqual(named("foo=1&foo=2"), ["'foo' in the address was left out: this page has no such settings."]);
  assert.deepEqual(named("a=1&b=2&c=3&d=4"),
    ["'a', 'b', 'c' and 1 more in the address were left out: this page has no such settings."]);
});
