import assert from "node:assert/strict";
import test from "node:test";

import { fateCounts } from "../../assets/player/stream/fates.js";
import { nodeColumns } from "../../assets/player/stream/nodes.js";
import { seenNodes, treeEdges } from "../../assets/player/stream/tree.js";
import { FATE, run, stepLine } from "./runs.js";

const { ROOT, ACCEPTED, REJECTED, MATCHED, EXPLORED } = FATE;

const columns = (nodes) => nodeColumns(stepLine({ nodes }), { string: (number) => `source ${number}`, fates: run({}).fates });

// 0 ─ 1 ─ 3 ─ 5
//   └ 2 ─ 4      (2 guesses the same token as 1, 4 the same as 3); 6 is a cell of the window behind 0
const TREE = {
  token: [9, 10, 10, 11, 11, 12, 13], parent: [-1, 0, 0, 1, 2, 3, 0],
  fate: [ROOT, ACCEPTED, MATCHED, ACCEPTED, MATCHED, REJECTED, EXPLORED],
};

test("what follows from the parents", () => {
  const nodes = columns({ ...TREE, source: [0, 1, 1, 2, 2, 3, 4], inspired: [5] });
  assert.equal(nodes.count, 7);
  assert.deepEqual([...nodes.depth], [0, 1, 1, 2, 2, 3, 1]);
  assert.deepEqual(nodes.path, [0, 1, 3]);
  assert.deepEqual(nodes.source.slice(0, 2), ["source 0", "source 1"]);
  assert.deepEqual([...nodes.inspired], [5]);
  assert.deepEqual([nodes.p, nodes.q, nodes.choice], [null, null, null]);
});

test("a step without nodes has none", () => assert.equal(nodeColumns(stepLine(), { string: String }), null));

test("the path is in the order of depth, whatever the order of the draft", () => {
  // The second guess of the chain was drafted first, as a cell of a window may be.
  const nodes = columns({ token: [1, 2, 3, 4], parent: [-1, 0, 1, 0], fate: [ROOT, ACCEPTED, ACCEPTED, REJECTED] });
  assert.deepEqual(nodes.path, [0, 1, 2]);
  const root = columns({ token: [1], parent: [-1], fate: [ROOT] });
  assert.deepEqual(root.path, [0]);
});

test("a node sees its ancestors, as far back as a sliding window", () => {
  const nodes = columns(TREE);
  assert.deepEqual(seenNodes(nodes, 5), [0, 1, 3, 5]);
  assert.deepEqual(seenNodes(nodes, 5, null), [0, 1, 3, 5]);
  assert.deepEqual(seenNodes(nodes, 5, 2), [3, 5]);
  assert.deepEqual(seenNodes(nodes, 5, 1), [5]);
  assert.deepEqual(seenNodes(nodes, 5, Infinity), [0, 1, 3, 5]);
  assert.deepEqual(seenNodes(nodes, 0, 1), [0]);
});

test("rows of the picture come from the stream; a chain has one", () => {
  assert.deepEqual(columns({ ...TREE, row: [0, 0, 1, 0, 1, 0, -1] }).row, [0, 0, 1, 0, 1, 0, null]);
  assert.deepEqual(columns({ token: [1, 2], parent: [-1, 0], fate: [ROOT, REJECTED] }).row, [0, 0]);
});

test("a node without a row has no edge", () => {
  const nodes = columns({ token: [1, 2, 3], parent: [-1, 0, 1], fate: [ROOT, EXPLORED, EXPLORED], row: [0, -1, -1] });
  assert.deepEqual(treeEdges({ edges: "row" }, nodes), Array(9).fill(null));
});

test("edges lead from a parent to its node, with a gap", () => {
  const nodes = columns({ ...TREE, row: [0, 0, 1, 0, 1, 0, -1] });
  assert.deepEqual(treeEdges({ edges: "depth", from: 3, to: 5 }, nodes), [1, 2, null, 1, 2, null]);
  assert.deepEqual(treeEdges({ edges: "row", from: 2, to: 3 }, nodes), [0, 1, null]);
  assert.deepEqual(treeEdges({ edges: "row", from: 6 }, nodes), [null, null, null]);
  assert.equal(treeEdges({ edges: "row", to: 99 }, nodes).length, 21);
});

test("a deep chain is no recursion", () => {
  const count = 20_000;
  const nodes = columns({
    token: Array.from({ length: count }, (_, i) => i), parent: Array.from({ length: count }, (_, i) => i - 1),
    fate: [ROOT, ...Array(count - 1).fill(ACCEPTED)],
  });
  assert.equal(nodes.path.length, count);
  assert.ok(nodes.row.every((row) => row === 0));
  assert.equal(seenNodes(nodes, count - 1).length, count);
});

test("fates are counted as they are seen", () => {
  const nodes = columns(TREE);
  const judged = { [ROOT]: 1, [ACCEPTED]: 2, [MATCHED]: 2, [REJECTED]: 1, [EXPLORED]: 1 };
  assert.deepEqual(Object.fromEntries(fateCounts(nodes, Number)), judged);
  assert.deepEqual(Object.fromEntries(fateCounts(nodes, (fate) => run({}).seenFate(fate, false))), { [ROOT]: 1, [FATE.PROPOSED]: 5, [EXPLORED]: 1 });
});
