import assert from "node:assert/strict";
import { test } from "node:test";
import { RunRecord } from "../../assets/player/stream/record.js";
import { specialWord } from "../../assets/player/text/special.js";
import { joinedText, partsOf } from "../../assets/player/text/tokens.js";
import { feed, playLine } from "./runs.js";

const texts = (...raws) => partsOf(raws).map(({ text }) => text);

test("a character that several tokens spell stands whole at the last, and the others lend", () => {
  assert.deepEqual(partsOf(["An ", "<0xF0><0x9F>", "<0x90>", "<0x8A>", "!"]), [
    { text: "An ", lends: false }, { text: "", lends: true }, { text: "", lends: true }, { text: "🐊", lends: false },
    { text: "!", lends: false }]);
  assert.deepEqual(texts("<0xE2><0x82><0xAC><0xF0><0x9F>", "<0x90><0x8A><0x20>"), ["€", "🐊 "]);
  assert.deepEqual(texts("<0x0A>", "a"), ["\n", "a"]);
});

test("bytes that spell nothing stand as bytes", () => {
  assert.deepEqual(texts("<0xF0><0x9F>", "a"), ["⟨F09F⟩", "a"]);
  assert.deepEqual(texts("<0x8A>", "<0xED><0xA0><0x80>"), ["⟨8A⟩", "⟨EDA080⟩"]);
  assert.deepEqual(texts("<0xF0>", "<0xE2><0x82><0xAC>"), ["⟨F0⟩", "€"]);
});

test("marks, and what is joined to an emoji, stand with what they belong to", () => {
  assert.deepEqual(texts("cafe", "\u0301", " x"), ["caf", "e\u0301", " x"]);
  assert.deepEqual(texts("न", "म", "े"), ["न", "", "मे"]);
  assert.deepEqual(texts("👨", "\u200d", "👩", "!"), ["", "", "👨\u200d👩", "!"]);
  assert.deepEqual(texts("🇩", "🇪"), ["", "🇩🇪"]);
  assert.deepEqual(texts("a", "\u0301".repeat(40)), ["a", "\u0301".repeat(40)], "a hostile one stays apart");
});

test("special tokens are known by their names, and only whole ones", () => {
  const record = new RunRecord();
  const named = { 5: "<|im_start|>", 6: "</s>", 7: "<|tool|>", 8: "a <s>", 9: "s", 10: "<0xE2><0x82>", 11: "<0xAC>" };
  feed(record, playLine({ header: { end_tokens: [6] } }), { kind: "texts", texts: named });
  assert.match(specialWord(record, 5), /begins a message/);
  assert.equal(specialWord(record, 6), "ends the text");
  assert.match(specialWord(record, 7), /format/);
  assert.deepEqual([8, 9].map((id) => specialWord(record, id)), ["", ""]);
  assert.equal(joinedText(record, [9, 10, 11]), "s€");
});
