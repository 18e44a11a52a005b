import assert from "node:assert/strict";
import test from "node:test";

import { pairPatch } from "../../assets/player/charts/pair.js";
import { FATE } from "../../assets/player/stream/fates.js";
import { run, stepLine } from "./runs.js";

const { ROOT, ACCEPTED, REJECTED, CORRECTION, EXPLORED } = FATE;
const WORDS = Object.fromEntries(["greedy", "sampled", "residual", "copied", "untried", "cut", "typical", "explored",
  "none", "own"].map((kind) => [kind, `${kind}: {fate} {p} {best} {keep}`]));
const DETAIL = {
  target: 0, draft: 1, names: 2, marks: 3, say: 4, rows: 4, ranks: ["first", "second"],
  words: { ...WORDS, rank: "guess {rank} of {count}", missed: "none of {count}", liked: "the {rank}, q {q}",
    unliked: "not among the best{count}" },
};
// A draft model's chain: 6 was accepted, 7 rejected, and 8 behind it never tried. The target wrote 9 instead of 7.
const NODES = {
  token: [5, 6, 7, 8], parent: [-1, 0, 1, 2], fate: [ROOT, ACCEPTED, REJECTED, REJECTED], choice: [6, 9, 1, 1],
  p: [NaN, 0.8, 0.25, 0.5], q: [NaN, 0.5, 0.5, 0.5],
};
const STEP = { nodes: NODES, emitted: [6, 9], emitted_fates: [ACCEPTED, CORRECTION], accepted: 1 };
const TOP = [[[6, 0.8], [3, 0.1]], [[9, 0.6], [7, 0.25]], [[1, 0.9]], [[1, 1]]];

const record = ({ header = {}, step = STEP, top = TOP, distribution = undefined } = {}) =>
  run({ header }, stepLine(step), { kind: "detail", k: 0, top, ...(distribution && { draft_top: distribution }) });

const pinned = (known, node, more = {}) => pairPatch(known, DETAIL, 0, { step: 0, node, ...more });
const said = (known, node, more) => pinned(known, node, more).data[DETAIL.say].text;
const SAMPLED = { header: { sampling: { temperature: 1 } } };

test("bars: the likeliest first, the guess and what was taken among them, and the drafter's where it had a share", () => {
  const { data } = pinned(record(), 2);
  assert.deepEqual(data[DETAIL.names].text, ["#9", "#7"]);
  assert.deepEqual(data[DETAIL.target], { x: [0.6, 0.25], customdata: [-1, 2] });
  assert.deepEqual(data[DETAIL.draft], { x: [0.5], y: [1.2], customdata: [2] });
  assert.deepEqual(data[DETAIL.marks], { x: [1.17, 1.1], y: [0, 1], sign: ["diamond", "symbol-3"] });
});

test("a guess that is not among the best has its bar all the same, and no more rows than fit", () => {
  const top = [[[1, 0.3], [2, 0.2], [3, 0.1], [4, 0.05], [10, 0.04]], ...TOP.slice(1)];
  const { data } = pinned(record({ top }), 1);
  assert.deepEqual(data[DETAIL.names].text, ["#6", "#1", "#2", "#3"]);
  assert.deepEqual(data[DETAIL.target].x, [0.8, 0.3, 0.2, 0.1]);
});

test("the drafter's own best tokens come with its distribution", () => {
  const known = record({ distribution: [[[6, 0.5, 0.8], [4, 0.4, 0.01]], [[7, 0.5, 0.25], [9, 0.2, 0.6]], [], []] });
  const { data } = pinned(known, 1);
  assert.deepEqual(data[DETAIL.names].text, ["#6", "#3", "#4"]);
  assert.deepEqual(data[DETAIL.draft].x, [0.5, 0.4]);
  assert.equal(said(known, 1)[1], "the first, q 0.500");
  assert.equal(said(known, 2)[1], "the second, q 0.200");
  const other = record({ distribution: [[], [[7, 0.5, 0.25], [4, 0.2, 0.1]], [], []] });
  assert.equal(said(other, 2)[1], "not among the best 2");
});

test("without a distribution, what was taken has its rank among the guesses", () => {
  assert.equal(said(record(), 1)[1], "guess 1 of 1");
  assert.equal(said(record(), 2)[1], "none of 1");
});

test("why a guess held or not", () => {
  assert.equal(said(record(), 1)[0], "greedy: accepted 0.800 0.800 1.000");
  assert.equal(said(record(SAMPLED), 1)[0], "sampled: accepted 0.800 0.800 1.000");
  assert.equal(said(record(SAMPLED), 2)[0], "residual: rejected 0.250 0.600 0.500");
  assert.equal(said(record(SAMPLED), 3)[0], "untried: rejected 0.500 0.900 1.000");
  const copied = record({ ...SAMPLED, step: { ...STEP, nodes: { ...NODES, q: undefined } } });
  assert.equal(said(copied, 1)[0], "copied: accepted 0.800 0.800 0.800");
  const typical = record({ header: { ...SAMPLED.header, lossless: false } });
  assert.equal(said(typical, 2)[0], "typical: rejected 0.250 0.600 0.500");
  const cell = { ...NODES, fate: [ROOT, ACCEPTED, EXPLORED, EXPLORED] };
  assert.equal(said(record({ ...SAMPLED, step: { ...STEP, nodes: cell } }), 2)[0], "explored:  0.250 0.600 0.500");
});

test("a guess behind the end of a run was never written", () => {
  const cut = record({ ...SAMPLED, step: { ...STEP, emitted: [6], emitted_fates: [ACCEPTED] } });
  assert.match(said(cut, 2)[0], /^cut: /);
});

test("the root, and a node of a light record, are no guesses with shares", () => {
  assert.match(said(record(), 0)[0], /^none: /);
  const light = record({ step: { ...STEP, nodes: { ...NODES, p: undefined, q: undefined } } });
  assert.match(said(light, 1)[0], /^none: /);
  assert.deepEqual(pinned(light, 2).data[DETAIL.target].x, [0.6, 0.25]);
});

test("the target's own token is no guess, but has its place", () => {
  const { data } = pinned(record(), 1, { own: true });
  assert.match(data[DETAIL.say].text[0], /^own: /);
  assert.deepEqual(data[DETAIL.names].text, ["#9", "#7"]);
  assert.deepEqual(data[DETAIL.marks].sign, ["diamond"]);
});

test("nothing is drawn where the alternatives or the node are not known", () => {
  const known = record();
  assert.equal(pinned(known, 4), null);
  assert.equal(pairPatch(run({}, stepLine(STEP)), DETAIL, 0, { step: 0, node: 1 }), null);
  assert.equal(pairPatch(known, DETAIL, 7, { step: 7, node: 0 }), null);
  assert.equal(pinned(record({ top: [] }), 1), null);
});

test("token texts are escaped, and cut where the picture has no room", () => {
  const hostile = record();
  hostile.texts.set(9, "<img src=x onerror=alert(1)>");
  assert.equal(pinned(hostile, 2).data[DETAIL.names].text[0], "&lt;img src=x on…");
});
