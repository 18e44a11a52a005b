import assert from "node:assert/strict";
import { test } from "node:test";
import { withTerms } from "../../assets/player/text/glossary.js";

globalThis.document = /** @type {any} */ ({
  createElement: () => ({ words: [], setAttribute() {}, addEventListener() {}, append(word) { this.words.push(word); } }),
});
const parts = (sentence) => withTerms(sentence, null).map((part) => (typeof part === "string" ? part : part.words));

test("a term is explained where it is first met, in whatever form", () => {
  assert.deepEqual(parts("Step 3: the target read 4 tokens, the target's own."),
    ["", ["Step"], " 3: the ", ["target"], " read 4 ", ["tokens"], ", the target's own."]);
});

test("texts of tokens, and words that only look like a term, are left alone", () => {
  for (const sentence of ["It wrote 'the target of steps', (' pass').", "Passengers, mytoken, target-like", ""]) {
    assert.deepEqual(parts(sentence), [sentence]);
  }
});
