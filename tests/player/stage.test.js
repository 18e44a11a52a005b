// The stage's scenes as the player reads them: what is seen in a phase, and where.
import assert from "node:assert/strict";
import { test } from "node:test";
import { COLUMN, GUTTER, ROW, linkPath } from "../../assets/player/stage/links.js";
import { PHASES } from "../../assets/player/stream/fates.js";
import { pieceId, zoomed } from "../../assets/player/stage/focus.js";
import { sceneAt } from "../../assets/player/stage/scene.js";
import { FATE } from "./runs.js";

const zone = (name, columns, fed = false) => ({ name, title: name, columns, rows: 2, fed });
const base = {
  zones: [zone("text", 13, true), zone("pool", 4)], title: 0.9,
  wide: { columns: 13, rows: 6, places: [[0, 0], [9, 3]] },
  narrow: { columns: 8, rows: 6, places: [[-5, 0], [4, 3]] },
};
const ALWAYS = PHASES.length;
const when = (kind, since, until = ALWAYS) => (ALWAYS * kind + since) * (ALWAYS + 1) + until;
// A piece of the text, one that goes into the text at "commit", and one that is there from "accept" on.
const scene = {
  pieces: {
    id: [11, 12, 13], text: ["a", "&lt;b&gt;", ""], x: [2, 0, 1], y: [0, 1, 0], fate: [9, 0, 7], nodes: [-1, 1, 2],
    when: [when(0, 0), when(1, 0), when(1, 3)], origin: [0, 1, 0],
  },
  some: { note: [[1], ["&amp;"]], share: [[1], [0.5]], faint: [[0], [1]], slot: [[0, 1], [when(0, 1, 4), ALWAYS]],
    turn: [[2], [1.5]] },
  moves: [[1], [4], [0], [12], [0]],
  links: { from: [0, 1], to: [1, 2], when: [when(1, 0, 1), when(2, 0)] },
  words: { text: ["said", "later"], x: [0, 1], y: [0, 0], when: [when(1, 0, 3), when(1, 3)], side: [1, 2], loud: [0, 1] },
  frames: { text: ["box"], x: [0], y: [0], when: [when(1, 1)], wide: [2], high: [1], loud: [1] },
};

test("a piece stands in its zone, and goes where it is moved to from that phase on", () => {
  const before = sceneAt(scene, base, "propose", base.wide).pieces;
  assert.deepEqual([...before.keys()], [11, 12]);
  assert.deepEqual([before.get(12).x, before.get(12).y], [9, 3 + 0.9 + 1]);
  const after = sceneAt(scene, base, "commit", base.wide).pieces;
  assert.deepEqual([after.get(12).x, after.get(12).y], [12, 0.9]);
  assert.deepEqual([...after.keys()], [11, 12, 13]);
});

test("a piece has what it has: its origin by id, a note, a share, and is read only where the target reads", () => {
  const { pieces } = sceneAt(scene, base, "commit", base.wide);
  const [a, b, c] = [11, 12, 13].map((id) => pieces.get(id));
  assert.deepEqual([a.origin, b.origin, c.origin], [null, 11, null]);
  assert.deepEqual([b.text, b.note, b.share, a.faint, b.faint], ["<b>", "&", 0.5, true, false]);
  assert.deepEqual([a.fed, b.fed, c.fed], [false, true, false]); // a shows no node, c stands in the pool
});

test("a piece has a turn when it is new, and none afterwards", () => {
  const turn = (phase) => sceneAt(scene, base, phase, base.wide).pieces.get(13).turn;
  assert.deepEqual(["accept", "commit"].map(turn), [1.5, 0]);
});

test("a piece has its slot of the cache for as long as it is given", () => {
  const cached = (phase) => [11, 12].map((id) => sceneAt(scene, base, phase, base.wide).pieces.get(id).cached);
  assert.deepEqual(PHASES.map(cached),
    [[false, true], [true, true], [true, true], [true, true], [false, true]]);
});

test("what stands outside of its zone or of a narrow stage is not seen", () => {
  const narrow = sceneAt(scene, base, "propose", base.narrow).pieces;
  assert.equal(narrow.has(11), false); // column 2 of a text that is seen from column 5 on
  assert.equal(narrow.get(12).x, 4);
  const far = { ...scene, moves: [[1], [0], [1], [3.5], [0]] };
  assert.equal(sceneAt(far, base, "propose", base.wide).pieces.has(12), false); // it would stick out of the pool
});

test("links need both of their ends, words and frames their phase", () => {
  const { links, words, frames } = sceneAt(scene, base, "propose", base.wide);
  assert.deepEqual(links.map(({ from, to, kind }) => [from.id, to.id, kind]), [[11, 12, "match"]]);
  assert.deepEqual(words, [{ text: "said", x: 9, y: 3.9, side: "left", loud: false }]);
  assert.deepEqual(frames, []);
  const later = sceneAt(scene, base, "accept", base.wide);
  assert.deepEqual(later.links.map(({ kind }) => kind), ["flow"]);
  assert.deepEqual(later.words.map(({ text, side, loud }) => [text, side, loud]), [["later", "middle", true]]);
  assert.deepEqual(later.frames.map(({ text, wide, high }) => [text, wide, high]), [["box", 2, 1]]);
});

test("a gauge is a frame that is filled up to a share; other frames are not filled", () => {
  const gauges = { ...scene.frames, text: ["", ""], x: [0, 1], y: [0, 0], when: [when(1, 1), when(1, 1)], wide: [1, 1],
    high: [1, 1], loud: [0, 0], filled: [0.25, -1], limit: [0.6, 0] };
  const of = (frames) => sceneAt({ ...scene, frames }, base, "verify", base.wide).frames.map(({ filled, limit }) => [filled, limit]);
  assert.deepEqual(of(gauges), [[0.25, 0.6], [-1, 0]]);
  assert.deepEqual(of(scene.frames), [[-1, 0]]);
});

test("a step without links, words or frames has none", () => {
  const { links, words, frames } = sceneAt({ pieces: scene.pieces }, base, "commit", base.wide);
  assert.deepEqual([links, words, frames], [[], [], []]);
});

test("a line leaves and reaches boxes at their edges", () => {
  const at = (x, y) => ({ x, y });
  const ends = (kind, from, to) => linkPath({ kind, from, to }).match(/-?\d+(\.\d+)?/g).map(Number);
  const tree = ends("tree", at(0, 0), at(1, 2));
  const middle = (ROW - GUTTER) / 2;
  assert.deepEqual([tree[0], tree[1]], [COLUMN - GUTTER, middle].map((n) => Math.round(100 * n) / 100));
  assert.deepEqual(tree.slice(-2), [COLUMN, 2 * ROW + middle].map((n) => Math.round(100 * n) / 100));
  assert.deepEqual(ends("flow", at(0, 0), at(1, 2)), tree);
  const down = ends("match", at(0, 0), at(2, 3));
  assert.equal(down[1], Math.round(100 * (ROW - GUTTER)) / 100); // out of the lower edge
  assert.equal(down.at(-1), Math.round(100 * 3 * ROW) / 100); // into the upper one
});

test("a piece has the id that Python gives to its name", () => {
  assert.deepEqual(["t56", "g4.3"].map(pieceId), [1093815985, -1879034416]);
});

test("the target's own token is beside a guess in one phase only", () => {
  const answers = { ...scene, some: { answer: [[1], ["&lt;other"]] } };
  assert.deepEqual(PHASES.map((phase) => sceneAt(answers, base, phase, base.wide).pieces.get(12).answer), ["", "", "<other", "", ""]);
});

test("zones that are shown alone lie one below another, and the others are away", () => {
  const plan = zoomed(base, ["pool"]);
  assert.deepEqual(plan, { columns: 4, rows: 2.9, places: [null, [0, 0]] });
  const { pieces, words } = sceneAt(scene, base, "propose", plan);
  assert.deepEqual([[...pieces.keys()], words.map(({ text, x, y }) => [text, x, y])], [[12], [["said", 0, 0.9]]]);
  const both = zoomed(base, ["pool", "text"]);
  assert.deepEqual(both.places, [[6 - 13, 0], [2, 2.9]]); // guesses stay below the text, whose last tokens are seen
  assert.equal(zoomed(base, ["elsewhere"]), null);
  const three = { ...base, zones: [...base.zones, zone("guesses", 3, true)] };
  assert.deepEqual(zoomed(three, ["guesses", "pool"]).places, [null, [0, 2.9], [1, 0]]); // in the order that was asked for
});

// A root with three guesses, the first of which is accepted; the third has a guess behind it that nothing had room for.
const tree = {
  token: [0, 1, 2, 3, 4], parent: [-1, 0, 0, 0, 3], fate: [1, 2, 3, 3, 3], depth: [0, 1, 1, 1, 2], path: [0, 1], count: 5,
  choice: [1, 7, 8, 9, 6], explored: new Set(),
};
const crowd = {
  zones: [zone("text", 13, true), zone("guesses", 3, true)], title: 0.9,
  wide: { columns: 13, rows: 6, places: [[0, 0], [9, 3]] },
};
const few = {
  pieces: { id: [20, 21, 22], text: ["r", "a", "b"], x: [8, 0, 0], y: [0, 0, 1], fate: [1, 0, 0], nodes: [0, 1, 2], when: [when(0, 0), when(1, 0), when(1, 0)] },
  words: { text: ["and 2 guesses more", "0.5"], x: [0, 1], y: [1.75, 1], when: [when(1, 0), when(1, 0)], side: [0, 0], loud: [0, 0] },
};
const focusOn = (...numbers) => ({
  ids: new Set(), numbers: new Set(numbers), step: 4, phase: "answers", nodes: tree, sampled: false, text: (token) => `w${token}`,
  seen: () => FATE.PROPOSED,
});

test("a guess in focus that had no room takes a row that can be spared, with the way to it", () => {
  const at = (focus) => {
    const { pieces, links, words } = sceneAt(few, crowd, "answers", crowd.wide, focus);
    const shown = [...pieces.values()].filter(({ node }) => node > 0).map(({ node, x, y, text, answer }) => [node, x - 9, Math.round(y - 3.9), text, answer]);
    return [shown, links.map(({ from, to }) => [from.node, to.node]), words.map(({ text }) => text)];
  };
  assert.deepEqual(at(null), [[[1, 0, 0, "a", ""], [2, 0, 1, "b", ""]], [], ["and 2 guesses more", "0.5"]]);
  assert.deepEqual(at(focusOn(4)), [[[1, 0, 0, "a", ""], [3, 0, 1, "w3", "w1"], [4, 1, 1, "w4", "w9"]], [[0, 3], [3, 4]], ["and 1 guess more"]]);
  assert.deepEqual(at(focusOn(2)), at(null)); // is drawn already
});

test("a row in focus that had no room changes places with the last one above it", () => {
  const rows = {
    pieces: { id: [30, 31, 32], text: ["cell", "a", "b"], x: [0, 0, 0], y: [0, 0, 3], fate: [5, 5, 5], nodes: [2, -1, -1],
      when: [when(0, 0), when(1, 0), when(1, 0)], origin: [0, 0, 1] },
    some: { spare: [[2], [1]] },
  };
  const at = (focus) => [...sceneAt(rows, base, "propose", base.wide, focus).pieces.values()].map(({ text, y }) => [text, y]);
  assert.deepEqual(at(null), [["cell", 0.9], ["a", 3.9]]);
  assert.deepEqual(at(focusOn(2)), [["cell", 0.9], ["b", 3.9]]); // it comes out of the cell that is followed
});
