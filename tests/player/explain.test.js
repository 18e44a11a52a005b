import assert from "node:assert/strict";
import test from "node:test";

import { FATE } from "../../assets/player/stream/fates.js";
import { explain, sees } from "../../assets/player/text/explain.js";
import { compact, fillTemplate, finishWords, milliseconds, plural, probability, sourceWords } from "../../assets/player/text/words.js";
import { run, stepLine } from "./runs.js";

const { ROOT, ACCEPTED, REJECTED, EXPLORED } = FATE;
const MASK = {
  subject: "{token} ({id}) at {place}: {parts}. {reason}", join: ", ", last: " and ", cut: "…", itself: "itself",
  text: "text {first}-{last}", window: "window {first}-{last} of {window}", root: "root only", nothing: "nothing of {window}",
  begins: "no text", level: "row 0 to {column}: {cells}", above: "above: {cells}", before: "before: {cells}",
  "reason.root": "R", "reason.row 0": "R0", "reason.column": "RC", "reason.chain": "CHAIN", "reason.guess": "GUESS",
};
const SOURCES = ["start", "draft", "window:0,1", "window:0,2", "window:1,2", "window:99999,1"];

const record = (nodes, { header = {}, start = 4, words = { mask: MASK } } = {}) =>
  run({ header, words }, { kind: "strings", strings: SOURCES }, stepLine({ nodes, start }));

const CHAIN = { token: [5, 6, 7], parent: [-1, 0, 1], fate: [ROOT, ACCEPTED, REJECTED], source: [0, 1, 1] };

test("a chain is read like a text", () => {
  const chain = record(CHAIN);
  assert.equal(explain(chain, 0, 0), "#5 (5) at 3: text 0-2 and itself. R");
  assert.equal(explain(chain, 0, 1), "#6 (6) at 4: text 0-3 and itself. CHAIN");
  assert.equal(explain(chain, 0, 2), "#7 (7) at 5: text 0-3, before: #6 and itself. CHAIN");
});

test("a guess beside others sees none of them", () => {
  const tree = record({ token: [5, 6, 7], parent: [-1, 0, 0], fate: [ROOT, ACCEPTED, REJECTED], source: [0, 1, 1] });
  assert.deepEqual(sees(tree, 0, 2), ["text 0-3 and itself", "GUESS"]);
});

test("cells of a window see row 0 and their own column", () => {
  // Cells (0,1), (0,2) and (1,2): row 0 is a text, and a column goes on from it.
  const nodes = { token: [5, 6, 7, 8], parent: [-1, 0, 1, 2], fate: [ROOT, EXPLORED, EXPLORED, EXPLORED], source: [0, 2, 3, 4] };
  const window = record(nodes);
  assert.deepEqual(sees(window, 0, 2), ["text 0-3, row 0 to 1: #6 and itself", "R0"]);
  assert.deepEqual(sees(window, 0, 3), ["text 0-3, row 0 to 2: #6 #7 and itself", "RC"]);
  const strange = record({ ...nodes, source: [0, 5, 5, 5] }); // no cell: its numbers are too long to be one
  assert.deepEqual(sees(strange, 0, 2), ["text 0-3, before: #6 and itself", "CHAIN"]);
});

test("a sliding window ends the text, and the guess, behind it", () => {
  const said = (window, node, start = 4) => sees(record(CHAIN, { header: { window }, start }), 0, node)[0];
  assert.equal(said(3, 0), "window 1-2 of 3 and itself");
  assert.equal(said(3, 1), "window 2-3 of 3 and itself");
  assert.equal(said(2, 1), "root only and itself");
  assert.equal(said(2, 2), "nothing of 2, before: #6 and itself");
  assert.equal(said(1, 2), "nothing of 1 and itself");
  assert.equal(said(null, 0, 1), "no text and itself");
});

test("long guesses are cut", () => {
  const count = 12;
  const nodes = {
    token: Array.from({ length: count }, (_, i) => i), parent: Array.from({ length: count }, (_, i) => i - 1),
    fate: [ROOT, ...Array(count - 1).fill(ACCEPTED)], source: Array(count).fill(1),
  };
  assert.match(sees(record(nodes), 0, count - 1)[0], /before: #1 #2 #3 #4 #5 #6 #7 #8… and/);
});

test("nothing is said where nodes or words are not known", () => {
  assert.equal(explain(record(undefined), 0, 0), "");
  assert.deepEqual(sees(record(CHAIN, { words: {} }), 0, 0), []);
  assert.equal(explain(record(CHAIN, { words: null }), 0, 0), "");
});

test("a token's text is put in once, and no template is read in it", () => {
  const hostile = record(CHAIN);
  hostile.texts.set(6, "{reason} $& <b>");
  assert.equal(explain(hostile, 0, 1), "{reason} $& <b> (6) at 4: text 0-3 and itself. CHAIN");
});

test("sources are named in words where the stream has some for them", () => {
  const known = run({ words: { sources: { pool: "from the pool", cell: "row {0}, column {1}" } } });
  assert.equal(sourceWords(known, "pool"), "from the pool");
  assert.equal(sourceWords(known, "cell:2,5"), "row 2, column 5");
  for (const source of ["cell:2", "pool:1", "other", "", "constructor", "__proto__:1"]) {
    assert.equal(sourceWords(known, source), source);
  }
  assert.equal(sourceWords(run({ words: null }), "pool"), "pool");
});

test("unknown places of a template stay empty, those that all objects have too", () => {
  assert.equal(fillTemplate("{a}{b}{constructor}{__proto__}.", { a: 0 }), "0.");
});

test("numbers in words", () => {
  assert.deepEqual([999, 1500, 134_515_008, 7.24e9].map(compact), ["999", "1.5 k", "135 M", "7.24 B"]);
  assert.deepEqual([0, 0.5, 0.0005].map(probability), ["0.000", "0.500", "5.0e-4"]);
  assert.deepEqual([plural(1, "guess", "guesses"), plural(2, "guess", "guesses"), plural(0, "row")],
    ["1 guess", "2 guesses", "0 rows"]);
  assert.deepEqual([0.26, 12.3, 1234].map(milliseconds), ["0.3 ms", "12 ms", "1.23 s"]);
  assert.deepEqual(["torn", "constructor", null].map(finishWords), ["was torn off", "constructor", "ended"]);
});
