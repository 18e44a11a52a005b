import assert from "node:assert/strict";
import { test } from "node:test";
import {
  clockOf, durationWords, FREE_ROWS, GPU, gpuMs, meanStep, measuredMs, MODEL, paceSentence, slowing, timeWords,
} from "../../assets/player/race/pace.js";
import { MEASURED } from "../../assets/player/race/measured.js";

/** A step of which the draft and the pass took so long, and the whole a millisecond more. */
const step = (draft, forward, fed = 1) => ({ ms: [draft, forward, 0, 0, draft + forward + 1], fed });

const PLAIN = [step(0.1, 40, 30), step(0.1, 9), step(0.1, 11)]; // later passes take ten milliseconds

test("a pass on the GPU reads 14 GB in 4.18 ms, or computes longer than that", () => {
  assert.equal(MODEL.parameters * MODEL.bytesPerParameter, 14e9);
  assert.ok(Math.abs(gpuMs(1) - 4.17910) < 1e-4); // 14e9 / 3.35e12
  assert.equal(gpuMs(1), gpuMs(295));
  assert.ok(Math.abs(gpuMs(590) - 8.35187) < 1e-4); // 590 * 2 * 7e9 / 989e12
  assert.equal(FREE_ROWS, 295); // 989 / 3.35, whatever the size of the model
  assert.ok(gpuMs(FREE_ROWS + 1) > gpuMs(FREE_ROWS));
});

test("the recorded clock is the record's", () => {
  assert.equal(clockOf("recorded", PLAIN)(step(2, 12, 6)), 15);
});

test("every pass counts as one, and drafting as the share of a plain pass", () => {
  const clock = clockOf("passes", PLAIN), unit = meanStep(PLAIN);
  assert.ok(Math.abs(unit - 11.1) < 1e-9);
  assert.ok(Math.abs(clock(step(0, 12, 6)) - unit) < 1e-9);
  assert.ok(Math.abs(clock(step(0, 500, 900)) - unit) < 1e-9);
  assert.ok(Math.abs(clock(step(5, 12, 6)) - 1.5 * unit) < 1e-9);
  assert.equal(timeWords("passes", 1.5 * unit, PLAIN), "1.5 passes");
  assert.equal(durationWords("passes", 1.5 * unit, PLAIN), "the time of 1.5 passes");
  for (const words of [timeWords, durationWords]) assert.equal(words("projected", 1500, PLAIN), "1.50 s");
});

test("autoregressive decoding drafts nothing", () => {
  const clock = clockOf("passes", PLAIN, false);
  const total = PLAIN.reduce((sum, each) => sum + clock(each), 0);
  assert.equal(timeWords("passes", total, PLAIN), "3.0 passes");
});

test("on the GPU rows are free up to a limit, and drafting is not", () => {
  const clock = clockOf("projected", PLAIN);
  assert.equal(clock(step(0, 12, 60)), gpuMs(1));
  assert.equal(clock(step(0, 12, 590)), gpuMs(590));
  assert.ok(Math.abs(clock(step(2.5, 12, 6)) - 1.25 * gpuMs(1)) < 1e-9);
});

test("passes take what they took on the measured device", () => {
  const { rows, milliseconds } = MEASURED;
  rows.forEach((count, i) => assert.ok(Math.abs(measuredMs(count) - milliseconds[i]) < 1e-9, String(count)));
  assert.ok(Math.abs(measuredMs(12) - (measuredMs(8) + measuredMs(16)) / 2) < 1e-9);
  assert.ok(Math.abs(measuredMs(3 * 128 + 8) - (3 * measuredMs(128) + measuredMs(8))) < 1e-9);
  assert.equal(clockOf("measured", PLAIN)(step(2.5, 12, 8)), measuredMs(8) + 0.25 * measuredMs(1));
  const words = paceSentence("measured", "an autoregressive pass");
  for (const part of [MEASURED.device, MEASURED.date, `1 row in ${measuredMs(1).toFixed(2)} ms`, "1,024 tokens"]) {
    assert.ok(words.includes(part), part);
  }
  assert.ok(!words.includes("rojected"));
});

test("without times nothing is divided by zero", () => {
  const none = [{ ms: [0, 0, 0, 0, 0], fed: 1 }];
  for (const pace of ["passes", "measured", "projected"]) assert.ok(Number.isFinite(clockOf(pace, none)(none[0])), pace);
  assert.equal(timeWords("passes", 3, none), "3.0 passes");
});

test("short races are slowed to about six seconds, long ones are not", () => {
  assert.deepEqual([0, 367, 1500, 3000, 5000, 60_000].map(slowing), [1, 16, 4, 2, 1, 1]);
});

test("what is assumed is said, with the numbers that are used", () => {
  const words = paceSentence("projected", "an autoregressive pass");
  for (const part of ["Projected, not measured", "4.18 ms", "T / 295", "3.35 TB/s", "989 TFLOP/s", GPU.name, MODEL.name,
    "drafting", "share of an autoregressive pass"]) assert.ok(words.includes(part), part);
  assert.ok(paceSentence("passes", "an average pass").includes("share of an average pass"));
  assert.equal(paceSentence("recorded", ""), "");
});
