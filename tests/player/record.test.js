import assert from "node:assert/strict";
import test from "node:test";

import { bigAcceptance, findStep } from "../../assets/player/stream/jumps.js";
import { RunRecord } from "../../assets/player/stream/record.js";
import { sameSpot, spot } from "../../assets/player/stream/spot.js";
import { FATE, feed, pack, playLine, run, stepLine } from "./runs.js";

const { ROOT, ACCEPTED, REJECTED, CORRECTION, BONUS } = FATE;

// A chain of three guesses behind the root, of which one holds; then the target's own token.
const CHAIN = { token: [5, 6, 7, 8], parent: [-1, 0, 1, 2], fate: [ROOT, ACCEPTED, REJECTED, REJECTED] };
const STEP = { nodes: CHAIN, emitted: [6, 9], emitted_fates: [ACCEPTED, CORRECTION], accepted: 1, drafted: 3 };

test("lines may come in any pieces", () => {
  const whole = [playLine(), stepLine(), stepLine({ k: 1 })].map((line) => JSON.stringify(line)).join("\n") + "\n\n";
  const record = new RunRecord();
  const kinds = new Set();
  for (const letter of whole) for (const kind of record.feed(letter)) kinds.add(kind);
  assert.deepEqual([...kinds], ["play", "step"]);
  assert.equal(record.last, 1);
  assert.equal(record.reader.rest, "");
});

test("what has no line end yet waits for the rest", () => {
  const record = new RunRecord();
  const line = JSON.stringify(playLine());
  assert.equal(record.feed(line).size, 0);
  assert.equal(record.play, null);
  assert.throws(() => record.head, /has not begun/);
  record.feed("\n");
  assert.equal(record.head.header.label, "Lookahead");
});

test("a line that is no JSON is an error, and no step", () => {
  const record = run({});
  assert.throws(() => record.feed("{\n"), SyntaxError);
  assert.equal(record.last, -1);
});

test("lines of other kinds are for other readers", () => {
  const record = run({});
  for (const kind of ["host", "__proto__", "constructor", "toString", "reset", "add", null, 7]) feed(record, { kind });
  assert.equal(record.last, -1);
  assert.equal(record.head.header.label, "Lookahead");
});

test("another run takes the place of the one before", () => {
  const record = run({}, stepLine(), { kind: "end", finish: "length" });
  const { version } = record;
  feed(record, playLine({ header: { label: "Another" } }));
  assert.deepEqual([record.last, record.end, record.live], [-1, null, true]);
  assert.equal(record.head.header.label, "Another");
  assert.equal(record.version, version + 1);
});

test("texts differ from how they are shown, and unknown tokens have their number", () => {
  const record = run({}, { kind: "texts", texts: { 1: "\n", 2: "<script>" }, shown: { 1: "↵" } });
  assert.deepEqual([record.raw(1), record.visible(1)], ["\n", "↵"]);
  assert.deepEqual([record.raw(2), record.visible(2)], ["<script>", "<script>"]);
  assert.equal(record.visible(3), "#3");
});

test("strings go on from where they were; a number without one is empty", () => {
  const record = run({}, { kind: "strings", strings: ["a"] }, { kind: "strings", strings: ["b"] });
  assert.deepEqual([0, 1, 2, "itself"].map((given) => record.string(given)), ["a", "b", "", "itself"]);
});

test("parts that come again stand for themselves wherever they are", () => {
  const part = { x: [1, 2], deep: { y: 3 } };
  const record = run({}, { kind: "values", values: ["first", part] },
    stepLine({ views: { tree: { same: 1 }, mask: { data: [{ same: 0 }, { z: { same: 1 } }] } } }));
  assert.deepEqual(record.steps[0].views, { tree: part, mask: { data: ["first", { z: part }] } });
});

test("a thin step is filled, and never thinned again by its own line", () => {
  const record = run({}, stepLine({ thin: true }));
  assert.equal(record.partial, true);
  assert.equal(record.nodes(0), null);
  assert.throws(() => record.nodesAt(0), /not known/);
  feed(record, stepLine(STEP));
  feed(record, stepLine({ thin: true }));
  assert.deepEqual([record.partial, record.nodes(0).count], [false, 4]);
});

test("only so many filled steps are kept: the oldest is thin again", () => {
  const count = 60;
  const record = run({}, ...Array.from({ length: count }, (_, k) => stepLine({ k, thin: true })));
  for (let k = 0; k < count; k += 1) feed(record, stepLine({ k, ...STEP }));
  const thin = record.steps.filter((step) => step.thin).map(({ k }) => k);
  assert.deepEqual(thin, Array.from({ length: count - 48 }, (_, k) => k));
  assert.equal(record.nodes(0), null);
});

test("a step's nodes are those of its last line", () => {
  const record = run({}, stepLine(STEP));
  assert.equal(record.nodes(0).count, 4);
  feed(record, stepLine({ ...STEP, nodes: { token: [5], parent: [-1], fate: [ROOT] } }));
  assert.equal(record.nodes(0).count, 1);
});

test("every emitted token has the node that it was guessed or decided at", () => {
  const record = run({}, stepLine(STEP));
  assert.deepEqual(record.emitted(0), [
    { token: 6, place: 0, fate: ACCEPTED, node: 1, own: false, position: 4 },
    { token: 9, place: 1, fate: CORRECTION, node: 1, own: true, position: 5 },
  ]);
  assert.equal(record.own(0).token, 9);
});

test("a run that was cut within a step has no token of the target's own", () => {
  const record = run({}, stepLine({ ...STEP, emitted: [6], emitted_fates: [ACCEPTED] }));
  assert.equal(record.own(0), undefined);
  assert.throws(() => record.ownAt(0), /no token of its own/);
  assert.equal(record.spot(0, 4), null);
});

test("without nodes an emitted token is known, but not where it came from", () => {
  const record = run({}, stepLine({ emitted: [9], emitted_fates: [BONUS] }));
  assert.deepEqual(record.emitted(0).map(({ token, node }) => [token, node]), [[9, -1]]);
  assert.equal(record.own(0), undefined);
});

test("a number means a node or, behind the last, the target's own token; nothing else", () => {
  const record = run({}, stepLine(STEP));
  assert.deepEqual(record.spot(0, 3), { step: 0, node: 3 });
  assert.deepEqual(record.spot(0, 4), { step: 0, node: 1, own: true });
  for (const number of [-1, 5, 1.5, NaN, Infinity, "1", null, undefined]) assert.equal(record.spot(0, number), null);
  assert.equal(record.spot(7, 0), null);
  for (const number of [0, 3, 4]) assert.equal(record.number(record.spot(0, number)), number);
});

test("spots are the same where they mean the same", () => {
  assert.ok(sameSpot(spot(1, 2), { step: 1, node: 2, own: false }));
  assert.ok(sameSpot(null, null));
  assert.ok(!sameSpot(spot(1, 2), spot(1, 2, true)));
  assert.ok(!sameSpot(spot(1, 2), null));
});

test("a run lives until it ends, fails or is waited for no more", () => {
  const record = new RunRecord();
  assert.equal(record.live, false);
  feed(record, { kind: "state", what: "queued", sentence: "Waiting." });
  assert.equal(record.state.what, "queued");
  feed(record, playLine(), stepLine());
  assert.deepEqual([record.live, record.state], [true, null]);
  feed(record, { kind: "end", finish: "length", check: null, speedup: null });
  assert.equal(record.live, false);
  feed(record, { kind: "check", check: { say: "Lossless." }, speedup: 1.5 });
  feed(record, { kind: "check", check: null, speedup: null });
  assert.deepEqual([record.check.say, record.speedup], ["Lossless.", 1.5]);
  const failed = run({}, { kind: "fault", sentence: "It broke." });
  assert.deepEqual([failed.live, failed.fault], [false, "It broke."]);
});

test("details come by step: what each node sees, and what views show when it is pinned", () => {
  const top = [[[6, 0.9]], []];
  const views = { pair: [{ data: [{ same: 0 }], about: 0 }, { data: [{ same: 0 }], about: 1 }] };
  const details = { kind: "detail", k: 0, top, views, values: [{ x: [0.5] }], words: ["a", "b"], sees: [1, 0] };
  const nodes = { token: [5, 6], parent: [-1, 0], fate: [FATE.ROOT, FATE.ACCEPTED] };
  const record = run({}, stepLine({ nodes, views: { pair: { data: [], about: 1 }, mask: { data: [] } } }), details);
  assert.deepEqual([record.details.get(0).top, record.sees(0, 0), record.sees(0, 1), record.sees(1, 0)], [top, "b", "a", ""]);
  const [pair, mask] = [{ name: "pair", pinned: true }, { name: "mask", pinned: false }];
  assert.deepEqual(record.patch(pair, 0, { step: 0, node: 0 }), { data: [{ x: [0.5] }], about: 0 });
  assert.deepEqual(record.patch(pair, 0, { step: 1, node: 0 }), { data: [], about: 1 });
  assert.deepEqual(record.patch(pair, 0), { data: [], about: 1 });
  assert.deepEqual(record.patch(mask, 0, { step: 0, node: 0 }), { data: [] });
  assert.equal(record.patch(mask, 1), undefined);
});

test("views that leave out what most leave out have it empty", () => {
  const record = run({ views: [{ name: "tree", label: "Tree", kind: "plot", look_for: "", base: { data: [] } }] });
  assert.deepEqual([record.view("tree").nodes, record.view("tree").columns], [[], []]);
  assert.equal(record.view("mask"), undefined);
});

test("jumps find the nearest step on their side", () => {
  const record = run({}, stepLine({ k: 0 }), stepLine({ k: 1, accepted: 4, emitted_fates: [CORRECTION] }),
    stepLine({ k: 2, branch: true }), stepLine({ k: 3, accepted: 1, prompt: pack([]) }));
  assert.equal(findStep(record, 0, 1, "rejection"), 1);
  assert.equal(findStep(record, 1, 1, "rejection"), -1);
  assert.equal(findStep(record, 3, -1, "branch"), 2);
  assert.equal(findStep(record, 1, 1, "hit"), 3);
  assert.equal(bigAcceptance(record), 3);
  assert.equal(bigAcceptance(run({})), 2);
});
