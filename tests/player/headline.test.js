import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { credibleSpeedup, doubtSentence, headline, slowSentence } from "../../assets/player/race/headline.js";
import { rowsPerToken } from "../../assets/player/race/results.js";

const IDS = [5, 6, 7, 8];
const lane = (label, passes, time, ids = IDS, plain = false) => ({ label, plain, passes, ids, time, words: `${time} ms` });
const PLAIN = lane("Autoregressive", 4, 400, IDS, true);
const words = (...all) => headline(all).words;

test("who finished first is named by the clock, and the fewest passes as a second fact", () => {
  const found = headline([lane("REST", 3, 90), lane("Medusa", 2, 1200), PLAIN, lane("Jacobi", 4, 500)]);
  assert.deepEqual(found, {
    words: "REST finished first, in 90 ms; autoregressive decoding took 400 ms.",
    passes: "It wrote the same text. Medusa needed the fewest passes: 2 instead of 4.",
  });
});

test("one lane may have both", () => {
  assert.deepEqual(headline([PLAIN, lane("Medusa", 2, 136)]), {
    words: "Medusa finished first, in 136 ms; autoregressive decoding took 400 ms.",
    passes: "It wrote the same text in fewer passes: 2 instead of 4.",
  });
  const { passes } = headline([PLAIN, lane("Medusa", 2, 136), lane("REST", 3, 200)]);
  assert.equal(passes, "It wrote the same text in the fewest passes: 2 instead of 4.");
});

test("autoregressive decoding may win, and does not hide that others needed fewer passes", () => {
  assert.deepEqual(headline([PLAIN, lane("Medusa", 2, 900), lane("Jacobi", 4, 500)]), {
    words: "Autoregressive finished first, in 400 ms: no method was faster.",
    passes: "Medusa needed the fewest passes: 2 instead of 4.",
  });
  const { passes } = headline([PLAIN, lane("Jacobi", 4, 500)]);
  assert.equal(passes, "No method needed fewer passes than the 4 of autoregressive decoding.");
});

test("lanes that finish together share the place", () => {
  assert.equal(words(PLAIN, lane("Medusa", 2, 90), lane("REST", 3, 90), lane("Jacobi", 4, 90)),
    "Medusa, REST and Jacobi finished first, in 90 ms each.");
  assert.equal(words(PLAIN, { ...lane("Medusa", 2, 399.6), words: PLAIN.words }),
    "Autoregressive and Medusa finished first, in 400 ms each.");
});

test("the same text is said only of the same tokens, and a shorter text is told", () => {
  assert.ok(words(PLAIN, lane("Medusa", 2, 100, [5, 6, 7, 9])).endsWith("took 400 ms, but wrote another text."));
  assert.ok(words(PLAIN, lane("Medusa", 2, 100, [5])).endsWith(", but wrote 4 tokens instead of 1."));
  assert.ok(words(PLAIN, lane("Medusa", 2, 100, [...IDS, 9])).endsWith(", but wrote 4 tokens instead of 5."));
});

test("a clock that was not measured only says what would be", () => {
  const lanes = [PLAIN, lane("Medusa", 2, 136)];
  assert.match(headline(lanes, "passes").words, /^If every pass cost the same, Medusa would finish first, in /);
  assert.match(headline(lanes, "measured").words, /^With passes as measured on an \S+ GPU, Medusa would finish first, in /);
  assert.match(headline(lanes, "projected").words, /^Projected for an H100 GPU, Medusa would finish first, in /);
  assert.match(headline(lanes, "passes").words, /; autoregressive decoding would take 400 ms\.$/);
});

test("without autoregressive decoding the first is still the first", () => {
  assert.deepEqual(headline([lane("Medusa", 2, 100), lane("REST", 3, 90)]), {
    words: "REST finished first, in 90 ms.", passes: "Medusa needed the fewest passes: 2 instead of 3.",
  });
  assert.equal(headline([lane("Medusa", 3, 100), lane("REST", 3, 90)]).passes, "Each needed 3 passes.");
});

test("one lane that came to its end has won nothing", () => {
  assert.match(words(PLAIN), /^Only Autoregressive finished/);
  assert.equal(words(), "No run finished.");
});

test("a speedup above the tokens per step is a measuring error", () => {
  const cases = JSON.parse(readFileSync(join(process.argv[1], "../../metrics/speedups.json"), "utf8")); // Python's too
  for (const [speedup, tokens] of [...cases["measuring errors"], [NaN, 2], [Infinity, 2]]) {
    assert.equal(credibleSpeedup(speedup, tokens), null, `${speedup} with ${tokens}`);
  }
  for (const [speedup, tokens] of cases.credible) assert.equal(credibleSpeedup(speedup, tokens), speedup);
});

test("a time that is a measuring error is no finding without that reason", () => {
  const doubt = doubtSentence({ label: "Medusa", speedup: 1.304, tokensPerStep: 1.2 });
  assert.ok(doubt.startsWith("1.30× the speed") && doubt.includes("more than Medusa can reach with 1.20 tokens per step"));
  assert.equal(words(PLAIN, { ...lane("Medusa", 3, 300), doubt }),
    `Medusa finished first, in 300 ms; autoregressive decoding took 400 ms. ${doubt}`);
  assert.ok(!words(PLAIN, lane("REST", 2, 200), { ...lane("Medusa", 3, 300), doubt }).includes(doubt));
});

test("a slow lane's sentence multiplies out", () => {
  const sentence = slowSentence({
    label: "N-Grammys", speedup: 0.4, cost: 5, plainMs: 2.31, model: "pocket", processor: "AMD EPYC",
  });
  const parts = ["N-Grammys ran at 0.40×", "wrote 2.00 tokens", "as much as 5.00 ", "only 2.3 ms, the first step included, with pocket on AMD EPYC,"];
  for (const part of parts) assert.ok(sentence.includes(part), part);
  assert.ok(!sentence.includes("this CPU")); // a recording is another machine's
});

test("rows per token leave out the prompt, as on the Debug page: one token at a time is 1", () => {
  const step = (fed, ...emitted) => ({ fed, emitted });
  assert.equal(rowsPerToken([step(40, 5), step(1, 6), step(1, 7)]), 1);
  assert.equal(rowsPerToken([step(40, 5), step(5, 6, 7), step(4, 8)]), 3);
  assert.equal(rowsPerToken([step(40, 5)]), null);
});
