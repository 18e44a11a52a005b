import assert from "node:assert/strict";
import { test } from "node:test";
import { RunRecord } from "../../assets/player/stream/record.js";
import { conclusion, exampleStep } from "../../assets/player/text/conclusion.js";
import { feed, playLine, stepLine } from "./runs.js";

const run = (...lines) => {
  const record = new RunRecord();
  feed(record, playLine(), ...lines);
  return record;
};
const STEPS = [stepLine({ emitted: [4, 5], emitted_fates: [2, 7] }), stepLine({ k: 1, emitted: [6], emitted_fates: [7] })];

test("a run comes to its passes, its tokens and its speed", () => {
  const end = { kind: "end", finish: "length", summary: { tokens_per_second: 101.7 }, check: null, speedup: null };
  const record = run(...STEPS, end);
  assert.equal(conclusion(record), "2 passes wrote 3 tokens: 1.50 a pass, 102 tokens/s.");
  feed(record, { kind: "check", check: null, speedup: 1.624 });
  assert.match(conclusion(record), / 1\.62× the speed of autoregressive decoding\.$/);
});

test("where no time was measured, none is said; a run without a token comes to nothing", () => {
  const end = { kind: "end", finish: "torn", summary: {}, check: null, speedup: null };
  assert.equal(conclusion(run(stepLine({ emitted: [6], emitted_fates: [7] }), end)), "1 pass wrote 1 token: 1.00 a pass.");
  assert.equal(conclusion(run(end)), "");
});

test("the example is the step that was named, unless it wrote less than the average", () => {
  const steps = [[0, 1], [2, 3], [4, 5], [4, 5]].map(([accepted, length], k) => ({ k, accepted, emitted: Array(length).fill(4) }));
  assert.equal(exampleStep({ steps }, 3), 3);
  assert.equal(exampleStep({ steps }, 1), 2); // 3 tokens, where the average is 3.5
  assert.equal(exampleStep({ steps }, null), 2);
  assert.equal(exampleStep({ steps }, 9), 2);
  assert.equal(exampleStep({ steps: steps.slice(0, 1) }, 0), -1);
});
