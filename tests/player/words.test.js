import assert from "node:assert/strict";
import test from "node:test";

import { about, ownSettings } from "../../assets/player/text/status.js";
import { compact, finishWords, milliseconds, modelName, ordinal, plural, probability } from "../../assets/player/text/words.js";

test("numbers in words", () => {
  assert.deepEqual([999, 1500, 134_515_008, 7.24e9].map(compact), ["999", "1.5 k", "135 M", "7.24 B"]);
  assert.deepEqual([0, 0.5, 0.0005].map(probability), ["0.000", "0.500", "5.0e-4"]);
  assert.deepEqual([plural(1, "guess", "guesses"), plural(2, "guess", "guesses"), plural(0, "row")],
    ["1 guess", "2 guesses", "0 rows"]);
  assert.deepEqual([0.26, 12.3, 1234].map(milliseconds), ["0.3 ms", "12 ms", "1.23 s"]);
  assert.deepEqual([1, 2, 3, 4, 11, 12, 13, 21, 111].map(ordinal),
    ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "111th"]);
  assert.deepEqual(["torn", "constructor", null].map(finishWords), ["was interrupted", "constructor", "ended"]);
});

test("a model is called as in the page's menu, another one by its own name", () => {
  assert.equal(modelName("smollm2"), "SmolLM2 135M");
  assert.equal(modelName("pocket"), "pocket");
});

test("a run's settings are called as on the form, those of an unknown method by their own names", () => {
  const labels = { max_ngram: "Longest suffix (n)", temperature: "Temperature" };
  const header = { params: { max_ngram: 5, stop_at_end: true, toString: 2 }, sampling: { temperature: 0.5 }, labels, lossless: true,
    prompt_length: 3 };
  assert.equal(about({}, header), "Longest suffix (n) 5, toString 2 · Temperature 0.5 · 3 prompt tokens");
  assert.equal(about({}, { ...header, labels: undefined, sampling: {} }), "max_ngram 5, toString 2 · greedy · 3 prompt tokens");
});

test("runs of one method are told apart by the settings in which they differ, as short as these can be", () => {
  const labels = { W: "Window size (W)", N: "N-gram size (N)", drop: "Drop" };
  const run = (params, method = "lookahead") => ({ method, params, labels });
  const [one, other] = [run({ W: 4, N: 5, drop: "late" }), run({ W: 7, N: 5, drop: "early" })];
  assert.deepEqual([one, other].map((header) => ownSettings(header, [one, other, run({ N: 3 }, "jacobi")])),
    ["W 4, Drop late", "W 7, Drop early"]);
  assert.equal(ownSettings(one, [one, run({}, "jacobi")]), "");
});
