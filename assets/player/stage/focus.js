// The focus that a host sets on the stage: it is outlined in all phases, and always drawn.
import { isJudged } from "../stream/fates.js";
import { plural } from "../text/words.js";

/** @import { Player } from "../player.js" */
/** @import { Nodes, Phase, SceneLink, SceneWord, StageBase, StageFloor, StagePiece, Where } from "../types.d.ts" */

/**
 * @typedef {object} Focus
 * @property {Set<number>} ids of pieces
 * @property {Set<number>} numbers of nodes of the step
 * @property {number} step
 * @property {Phase} phase
 * @property {Nodes} nodes
 * @property {boolean} sampled
 * @property {(token: number) => string} text
 * @property {(fate: number) => number} seen
 */

const ROOT = 2; // columns of the text before its guesses that are seen: its last tokens
const POLYNOMIAL = 0xEDB88320; // of CRC-32, as in Python's zlib

/**
 * Return the id of the piece with a name, as viz/stage/scene.py makes it.
 * @param {string} name
 */
export const pieceId = (name) => {
  let crc = -1;
  for (const byte of new TextEncoder().encode(name)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (POLYNOMIAL & -(crc & 1));
  }
  return ((crc ^ -1) >>> 0) - 2 ** 31;
};

/**
 * Return what is in focus at the step on the screen; null where nothing is.
 * @param {Player} player
 * @returns {Focus | null}
 */
export const focusOf = ({ record, state }) => {
  const { step, phase } = state;
  const nodes = record.nodes(step);
  if (!state.focus.length || !nodes) return null;
  /** @type {Set<number>} */
  const ids = new Set(), numbers = new Set();
  for (const name of state.focus.map(String)) {
    const [, node, position] = /^n?(\d{1,4})$|^place:(\d{1,7})$/.exec(name) ?? [];
    if (node !== undefined && step === state.focused && Number(node) < nodes.count) numbers.add(Number(node));
    if (node !== undefined) continue;
    ids.add(pieceId(position === undefined ? name : `t${position}`));
    const depth = Number(position) - (record.steps[step].start - 1);
    nodes.depth.forEach((each, number) => each === depth && number && numbers.add(number));
  }
  const sampled = Number(record.head.header.sampling?.temperature ?? 0) > 0;
  return { ids, numbers, step, phase, nodes, sampled, text: (token) => record.visible(token),
    seen: (fate) => record.seenFate(fate, isJudged(state)) };
};

/**
 * @param {Focus | null} focus
 * @param {StagePiece} piece
 */
export const isFocused = (focus, { id, node }) => Boolean(focus && (focus.ids.has(id) || (node >= 0 && focus.numbers.has(node))));

/**
 * Draw guesses in focus that had no room: each takes the place of the last row that nothing in focus is in.
 * @param {{ pieces: StagePiece[], links: SceneLink[], words: SceneWord[] }} scene all pieces, also those that are not seen
 * @param {Focus} focus
 * @param {StageBase} base
 * @param {(zone: number, x: number, y: number) => Where} where
 */
export const unfold = ({ pieces: all, links, words }, focus, base, where) => {
  exchange(all, focus);
  const zone = base.zones.findIndex(({ name }) => name === "guesses");
  const { nodes, numbers } = focus;
  const top = zone < 0 ? NaN : where(zone, 0, 0).y;
  if (Number.isNaN(top)) return;
  const inZone = () => all.filter((piece) => piece.seen && !piece.spare && piece.zone === zone && piece.node > 0);
  const drawn = new Map(all.filter(({ seen, node, zone: its }) => seen && node >= 0 && (its === zone || !node)).map((piece) => [piece.node, piece]));
  for (const node of [...numbers].sort((a, b) => a - b)) {
    if (drawn.has(node) || !node || nodes.explored.has(node) || nodes.depth[node] > base.zones[zone].columns) continue;
    if (all.some((piece) => piece.seen && piece.node === node && !piece.faint)) continue; // it has gone into the text
    const branch = branchTo(node, nodes, drawn);
    const [above] = branch, before = drawn.get(above);
    const row = before && before.zone === zone && isFocused(focus, before) && !inZone().some(({ x, y }) => y === before.y && x > before.x)
      ? before.y : freeRow(inZone(), focus, base.zones[zone].rows, top);
    const numbered = words.findIndex(({ x, y }) => x >= where(zone, 0, 0).x && Math.abs(y - row) < 0.01); // of what was here
    if (numbered >= 0) words.splice(numbered, 1);
    for (const piece of inZone()) if (piece.y === row && piece.x >= where(zone, nodes.depth[branch[1]] - 1, 0).x) piece.seen = false;
    for (let i = 1; i < branch.length; i += 1) {
      const piece = pieceOf(branch[i], focus, zone, { x: where(zone, nodes.depth[branch[i]] - 1, 0).x, y: row });
      const from = drawn.get(branch[i - 1]);
      if (from) links.push(/** @type {SceneLink} */ ({ from, to: piece, kind: "tree" }));
      piece.origin = from?.id ?? null;
      all.push(piece);
      drawn.set(branch[i], piece);
    }
  }
  recount(words, nodes, new Set(inZone().map(({ node }) => node)));
};

/**
 * Put rows in focus that had no room into the place of others: of the last ones above them that nothing in focus is in.
 * @param {StagePiece[]} pieces
 * @param {Focus} focus
 */
const exchange = (pieces, focus) => {
  const followed = new Set(pieces.filter((piece) => piece.seen && isFocused(focus, piece)).map(({ id }) => id));
  /** @param {StagePiece} piece */
  const wanted = ({ id, origin }) => followed.has(id) || (origin !== null && followed.has(origin));
  /** @type {Map<string, StagePiece[]>} */
  const rows = new Map();
  for (const piece of pieces.filter(({ seen }) => seen)) {
    const key = `${piece.zone}/${piece.y}`;
    rows.set(key, [...(rows.get(key) ?? []), piece]);
  }
  for (const row of rows.values()) {
    const [{ zone, y, spare }] = row;
    if (!spare || !row.some(wanted)) continue;
    const above = [...rows.values()].filter((other) => other[0].zone === zone && other[0].y < y && !other[0].spare && !other.some(wanted));
    const last = above.at(-1);
    if (!last) continue;
    const place = last[0].y;
    for (const piece of last) Object.assign(piece, { spare: true, y });
    for (const piece of row) Object.assign(piece, { spare: false, y: place });
  }
};

/**
 * Return the way from the nearest node that is drawn to a node.
 * @param {number} node
 * @param {Nodes} nodes
 * @param {Map<number, StagePiece>} drawn
 */
const branchTo = (node, { parent }, drawn) => {
  const branch = [node];
  while (branch[0] > 0 && !(branch.length > 1 && drawn.has(branch[0]))) branch.unshift(parent[branch[0]]);
  return branch;
};

/**
 * Return the row that guesses in focus may have: an empty one, or the last one that can be spared.
 * @param {StagePiece[]} pieces
 * @param {Focus} focus
 * @param {number} rows
 * @param {number} top
 */
const freeRow = (pieces, focus, rows, top) => {
  const used = [...new Set(pieces.map(({ y }) => y))].sort((a, b) => b - a);
  if (!used.length) return top;
  if (used[0] - top + 2 <= rows - 0.25) return used[0] + 1; // above the words on how many more there are
  const kept = new Set(focus.nodes.path);
  return used.find((row) => !pieces.some((piece) => piece.y === row && (kept.has(piece.node) || isFocused(focus, piece)))) ?? used[0];
};

/**
 * @param {number} node
 * @param {Focus} focus
 * @param {number} zone
 * @param {Where} where
 * @returns {StagePiece}
 */
const pieceOf = (node, { step, phase, nodes, sampled, text, seen }, zone, where) => ({
  id: pieceId(`g${step}.${node}`), text: text(nodes.token[node]), node, ...where, zone, origin: null, note: "", share: -1,
  answer: phase === "answers" && nodes.choice && !sampled ? text(nodes.choice[nodes.parent[node]]) : "",
  fate: seen(nodes.fate[node]), faint: false, copied: false, turn: 0, fed: true, seen: true, spare: false,
  cached: ["verify", "answers", "accept"].includes(phase),
});

/**
 * Update the number of guesses that are not shown.
 * @param {SceneWord[]} words
 * @param {Nodes} nodes
 * @param {Set<number>} seen
 */
const recount = (words, { fate, explored }, seen) => {
  const hidden = [...fate.keys()].filter((node) => node && !explored.has(node) && !seen.has(node)).length;
  for (const word of words) {
    if (/^and [\d,]+ guess(es)? more$/.test(word.text)) word.text = `and ${plural(hidden, "guess", "guesses")} more`;
  }
};

/**
 * Return a floor that shows some zones alone, one below another in the order of their names, and as far to the right as
 * they are: so guesses stay below the text, of which the end is seen. Null where it has none of them.
 * @param {StageBase} base
 * @param {string[]} names
 * @param {number} [most] columns: of wider zones the right end is seen
 * @returns {StageFloor | null}
 */
export const zoomed = ({ zones, title }, names, most = Infinity) => {
  const chosen = zones.filter(({ name }) => names.includes(name));
  if (!chosen.length) return null;
  const others = chosen.filter(({ name }) => name !== "text");
  const wide = Math.max(...(others.length ? others : chosen).map((zone) => zone.columns));
  const text = chosen.find(({ name }) => name === "text");
  const columns = Math.min(most, text && others.length ? Math.min(text.columns, wide + ROOT) : wide);
  let rows = 0;
  /** @type {([x: number, y: number] | null)[]} */
  const places = zones.map(() => null);
  for (const name of new Set(["text", ...names])) {
    const zone = chosen.find((each) => each.name === name);
    if (!zone) continue;
    places[zones.indexOf(zone)] = [columns - zone.columns, rows];
    rows += zone.rows + title;
  }
  return { columns, rows, places };
};

