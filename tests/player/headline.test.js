import assert from "node:assert/strict";
import { test } from "node:test";
import { headline, slowSentence } from "../../assets/player/race/headline.js";

const IDS = [5, 6, 7, 8];
const lane = (label, passes, ms, ids = IDS, plain = false) => ({ label, plain, passes, ids, ms });
const PLAIN = lane("Autoregressive", 4, 400, IDS, true);

test("two lanes need no name, and the times are measured ones", () => {
  assert.deepEqual(headline([PLAIN, lane("Medusa", 2, 136.4)]),
    { words: "2 passes instead of 4, the same text.", times: "136 ms instead of 400 ms" });
});

test("of several lanes the one with the fewest passes is named, wherever it stands", () => {
  const found = headline([lane("REST", 3, 90), lane("Medusa", 2, 1200), PLAIN, lane("Jacobi", 4, 500)]);
  assert.deepEqual(found, { words: "Medusa: 2 passes instead of 4, the same text.", times: "1.20 s instead of 400 ms" });
});

test("the same text is said only of the same tokens", () => {
  for (const ids of [[5, 6, 7], [5, 6, 7, 9], [...IDS, 9]]) {
    assert.equal(headline([PLAIN, lane("Medusa", 2, 100, ids)])?.words, "2 passes instead of 4.");
  }
});

test("where nothing was won, that is said", () => {
  assert.equal(headline([PLAIN, lane("Jacobi", 4, 500)])?.words,
    "No method needed fewer passes than the 4 of autoregressive decoding.");
});

test("without autoregressive decoding, or without another lane, there is none", () => {
  assert.equal(headline([PLAIN]), null);
  assert.equal(headline([lane("Medusa", 2, 100), lane("REST", 3, 100)]), null);
  assert.equal(headline([]), null);
});

test("a slow lane's sentence multiplies out", () => {
  const words = slowSentence({
    label: "N-Grammys", speedup: 0.4, cost: 5, plainMs: 2.31, model: "pocket", device: "cpu",
  });
  const parts = ["N-Grammys ran at 0.40×", "wrote 2.00 tokens", "as much as 5.00 ", "only 2.3 ms with pocket on this CPU"];
  for (const part of parts) assert.ok(words.includes(part), part);
});
