// Reads a step's scene at one phase: what is shown, and where on the stage. viz/stage/scene.py describes the columns.
import { PHASES } from "../stream/fates.js";
import { unescapeMarkup } from "../stream/escape.js";
import { unfold } from "./focus.js";

/** @import { Focus } from "./focus.js" */
/** @import { Phase, Scene, SceneColumns, SceneLink, SceneWord, StageBase, StageFloor, StagePiece, Where } from "../types.d.ts" */

/** @type {SceneLink["kind"][]} */
const LINKS = ["tree", "match", "flow", "diagonal", "against"];
/** @type {SceneWord["side"][]} */
const SIDES = ["right", "left", "middle"];
const SINCE = PHASES.length + 1, ZONE = PHASES.length * SINCE; // what a "when" consists of
const SLACK = 0.01; // columns by which a piece may be beyond its zone: sums of halves and thirds are not exact

/**
 * @param {SceneColumns} columns a step's scene, decoded
 * @param {StageBase} base
 * @param {Phase} phase
 * @param {StageFloor} plan
 * @param {Focus | null} [focus]
 * @returns {Scene}
 */
export const sceneAt = (columns, base, phase, plan, focus = null) => {
  const at = PHASES.indexOf(phase);
  /** @type {(zone: number, x: number, y: number) => Where} */
  const where = (zone, x, y) => {
    const [left, top] = plan.places[zone] ?? [NaN, NaN]; // not shown
    return { x: left + x, y: top + base.title + y };
  };
  const pieces = piecesAt(columns, where, base, plan.columns, at);
  const words = placed(columns.words, where, at).map(({ i, ...place }) => ({
    ...place, side: SIDES[columns.words?.side[i] ?? 0], loud: Boolean(columns.words?.loud[i]),
  }));
  /** @type {SceneLink[]} */
  const links = [];
  if (focus) unfold({ pieces, links, words }, focus, base, where);
  return {
    pieces: new Map(pieces.filter(({ seen, spare }) => seen && !spare).map((piece) => [piece.id, piece])),
    links: [...linksAt(columns.links, pieces, at), ...links],
    words,
    frames: placed(columns.frames, where, at).map(({ i, ...place }) => ({
      ...place, wide: columns.frames?.wide[i] ?? 0, high: columns.frames?.high[i] ?? 0,
      loud: Boolean(columns.frames?.loud[i]), filled: columns.frames?.filled?.[i] ?? -1, limit: columns.frames?.limit?.[i] ?? 0,
    })),
  };
};

/**
 * Decode a "when": a zone or a kind, whether that is seen at a phase, and whether for the first time.
 * @param {number} when
 * @param {number} at
 */
const placeAndTime = (when, at) => {
  const since = Math.floor((when % ZONE) / SINCE);
  return { kind: Math.floor(when / ZONE), seen: since <= at && at < when % SINCE, fresh: since === at };
};

/**
 * @param {SceneColumns} columns
 * @param {(zone: number, x: number, y: number) => Where} where
 * @param {StageBase} base
 * @param {number} most columns of the stage
 * @param {number} at
 * @returns {StagePiece[]} all of them, also those that are not seen
 */
const piecesAt = ({ pieces: columns, some = {}, moves }, where, base, most, at) => {
  const moved = movedTo(moves, at);
  const [shares, notes, faint, copied, slots, judged, turns, answers, spares] =
    [some.share, some.note, some.faint, some.copied, some.slot, some.judged, some.turn, some.answer, some.spare].map(byNumber);
  const answered = at === PHASES.indexOf("answers");
  return Array.from(columns.id, (id, i) => {
    const { kind, seen, fresh } = placeAndTime(columns.when[i], at);
    const [zone, x, y] = moved.get(i) ?? [kind, columns.x[i], columns.y[i]];
    const place = where(zone, x, y);
    const inside = x > -SLACK && x + 1 < base.zones[zone].columns + SLACK;
    return {
      id, text: unescapeMarkup(columns.text[i]), node: columns.nodes[i], ...place,
      fate: Number(judged.get(i) ?? columns.fate[i]),
      origin: columns.origin?.[i] ? columns.id[columns.origin[i] - 1] : null, note: unescapeMarkup(String(notes.get(i) ?? "")),
      answer: answered ? unescapeMarkup(String(answers.get(i) ?? "")) : "", zone, spare: spares.has(i),
      share: Number(shares.get(i) ?? -1), faint: faint.has(i), copied: copied.has(i),
      turn: fresh ? Number(turns.get(i) ?? 0) : 0,
      cached: placeAndTime(Number(slots.get(i) ?? 0), at).seen,
      fed: base.zones[zone].fed && columns.nodes[i] >= 0,
      seen: seen && inside && place.x > -SLACK && place.x + 1 < most + SLACK,
    };
  });
};

/**
 * Return what some pieces have, by their numbers.
 * @param {[ArrayLike<number>, ArrayLike<number | string>] | undefined} given
 */
const byNumber = (given) => new Map(given ? Array.from(given[0], (number, i) => [number, given[1][i]]) : []);

/**
 * Return where pieces have gone up to a phase, by their numbers.
 * @param {SceneColumns["moves"]} moves
 * @param {number} at
 */
const movedTo = (moves, at) => {
  /** @type {Map<number, [zone: number, x: number, y: number]>} */
  const moved = new Map();
  const [pieces, phases, zones, xs, ys] = moves ?? [[], [], [], [], []];
  for (let i = 0; i < pieces.length; i += 1) {
    if (phases[i] <= at) moved.set(pieces[i], [zones[i], xs[i], ys[i]]);
  }
  return moved;
};

/**
 * @param {SceneColumns["links"]} links
 * @param {StagePiece[]} pieces
 * @param {number} at
 * @returns {SceneLink[]}
 */
const linksAt = (links, pieces, at) => {
  if (!links) return [];
  return Array.from(links.from, (from, i) => ({ from: pieces[from], to: pieces[links.to[i]], ...placeAndTime(links.when[i], at) }))
    .filter(({ from, to, seen }) => seen && from.seen && to.seen)
    .map(({ from, to, kind }) => ({ from, to, kind: LINKS[kind] ?? "tree" }));
};

/**
 * Return words or frames that are seen, with their numbers.
 * @param {SceneColumns["words"] | SceneColumns["frames"]} columns
 * @param {(zone: number, x: number, y: number) => Where} where
 * @param {number} at
 */
const placed = (columns, where, at) => {
  if (!columns) return [];
  const { text, when, x, y } = columns;
  return text.map((words, i) => ({ i, words, ...placeAndTime(when[i], at) })).filter(({ seen }) => seen)
    .map(({ i, words, kind }) => ({ i, text: unescapeMarkup(words), ...where(kind, x[i], y[i]) })).filter((place) => !Number.isNaN(place.x));
};
