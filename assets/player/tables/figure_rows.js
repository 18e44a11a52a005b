// The rows of the tables of figures, by the kind that a view's base names: read off what the figure shows.
import { unescapeMarkup } from "../stream/escape.js";
import { FATE, isJudged } from "../stream/fates.js";
import { isRejection } from "../stream/jumps.js";
import { treeRows } from "../stream/tree.js";
import { allNodes, nodeRows } from "./node_rows.js";
import { fillTemplate } from "../text/words.js";

/** @import { Player } from "../player.js" */
/** @import { RunRecord } from "../stream/record.js" */
/** @import { BoardSpec, CellSpec, Figure, LayoutAxis, PlotTrace, SlotSpec } from "../types.d.ts" */

const MOST_CHUNKS = 400;

/**
 * The places of a step's unread tokens, chunk by chunk: the counterpart of chunks in decoding/memory.py.
 * @param {RunRecord} record
 * @param {number} k
 */
const chunks = ({ play, steps }, k) => {
  const root = steps[k].start - 1;
  const size = Math.max(1, play.header.prefill_chunk, Math.ceil(steps[k].pending / MOST_CHUNKS));
  const found = [];
  for (let first = root - steps[k].pending; first < root; first += size) {
    found.push({ first, stop: Math.min(first + size, root), name: `chunk ${found.length + 1}` });
  }
  return found.length > 1 ? found : found.map((chunk) => ({ ...chunk, name: "unread text" }));
};

/**
 * The points of a trace that are seen: places, and what is told of each.
 * @param {Player} player
 * @param {Figure} figure
 * @param {number} number
 */
const points = (player, { data }, number) => {
  const trace = data[number];
  if (!trace?.x || trace.visible === false) return [];
  const fates = typeof trace.marker?.color === "object" ? trace.marker.color : [];
  return Array.from({ length: Math.min(trace.x.length, trace.y.length) }, (_, i) => ({
    x: trace.x[i], y: trace.y[i], text: unescapeMarkup(trace.text?.[i] ?? ""), node: trace.customdata?.[i] ?? -1,
    fate: fates[i] === undefined ? null : player.fate(fates[i]).label, symbol: trace.marker?.symbol?.[i],
  }));
};

/**
 * @param {Seen} a
 * @param {Seen} b
 */
const byPlace = (a, b) => a.y - b.y || a.x - b.x;

/**
 * The attention mask: first the text that is still unread, chunk by chunk, then a row for every node.
 * @param {Player} player
 * @param {Ask<QuerySpec>} ask
 */
const queries = (player, { view, spec }) => {
  const { record, state } = player;
  const { window } = record.head.header;
  const words = record.head.words?.mask ?? {};
  const sees = fillTemplate(window ? words["unread.window"] : words.unread, { window });
  const unread = chunks(record, state.step).map(({ first, stop, name }) =>
    ({ cells: ["text", `${first} to ${stop - 1}`, player.fate(FATE.PROMPT).label, sees, name, null] }));
  const nodes = allNodes(player);
  const rows = [...unread, ...nodeRows(player, view, nodes.slice(0, spec.most))];
  return { rows: nodes.length ? rows : [], count: nodes.length ? unread.length + nodes.length : 0 };
};

/**
 * The tree: its nodes, and behind the accepted path the target's own token.
 * @param {Player} player
 * @param {Ask<unknown>} ask
 */
const branches = (player, { view }) => {
  const { record, state } = player;
  const nodes = record.nodes(state.step);
  if (!nodes) return { rows: [] };
  const known = treeRows(nodes);
  const rows = nodeRows(player, view, allNodes(player).filter((node) => known[node] !== null));
  const own = record.emitted(state.step).findLast((token) => token.own);
  if (!own || !isJudged(state)) return { rows };
  const { token, fate, node } = own;
  const told = [record.visible(token), null, nodes.depth[node] + 1, node, "the target itself"];
  return { rows: [...rows, { cells: [...told, player.fate(fate).label, null, null] }] };
};

/**
 * The timeline, from the steps themselves: all that are known, as in the chart.
 * @param {Player} player
 */
const steps = (player) => {
  const { ACCEPTED, CORRECTION, BONUS } = FATE;
  const headings = ["Step", "Accepted", "The target's own", "A guess was rejected", "Tokens read",
    ...["Forward", "Draft", "Accept", "Commit", "Other", "Whole"].map((part) => `${part} ms`)];
  const rows = player.record.steps.map((step, k) => {
    const own = step.emitted_fates.find((fate) => fate === CORRECTION || fate === BONUS);
    const accepted = step.emitted_fates.filter((fate) => fate === ACCEPTED).length;
    const [draft, forward, accept, commit, whole] = step.ms;
    const other = Math.max(0, whole - draft - forward - accept - commit);
    return { step: k, cells: [k, accepted, own === undefined ? "none" : player.fate(own).label,
      isRejection(step) ? "yes" : "no", step.pending && !k ? `${step.fed}, with the prompt` : step.fed,
      forward, draft, accept, commit, other, whole] };
  });
  return { headings, rows };
};

/**
 * Slots: neighbours that look alike are one row, unless something begins there.
 * @param {Player} player
 * @param {Ask<SlotSpec>} ask
 */
const slots = ({ record, state }, { spec: { words, page }, figure }) => {
  const { data } = figure();
  const uses = words.flatMap((_, number) => pieces(data[number], page, number));
  const lost = pieces(data[words.length], page);
  const marks = slotMarks(data.slice(words.length + 1), page, record, state.step);
  const cuts = new Set([...[...uses, ...lost].flatMap(({ first, stop }) => [first, stop]), ...marks.keys()]);
  const bounds = [...cuts].sort((a, b) => a - b);
  const rows = [];
  for (const [i, first] of bounds.slice(0, -1).entries()) {
    /** @param {Piece} piece */
    const here = (piece) => piece.first <= first && first < piece.stop;
    const row = { use: uses.findLast(here)?.use, gone: lost.some(here), first, stop: bounds[i + 1] }; // seen: the top
    const before = rows.at(-1);
    const same = before?.use === row.use && before?.gone === row.gone && before?.stop === first && !marks.has(first);
    if (same) before.stop = row.stop;
    else if (row.use !== undefined) rows.push(row);
  }
  const gone = "overwritten: held text";
  const sign = (row) => [...(marks.get(row.first) ?? []), ...(row.gone ? [gone] : [])].join(", ");
  return {
    headings: ["What", "First slot", "Last slot", "Slots", "Sign"],
    rows: rows.map((row) => ({ cells: [words[row.use], row.first, row.stop - 1, row.stop - row.first, sign(row)] })),
  };
};

/**
 * The bars of a trace, as slots. Those of another height lie a little lower in their line.
 * @param {PlotTrace} trace
 * @param {number} page
 * @param {number} [use]
 */
const pieces = ({ x, y, base, visible }, page, use) =>
  (visible === false ? [] : Array.from(x, (length, i) => {
    const first = Math.floor(y[i]) * page + base[i];
    return { use, first, stop: first + length };
  }));

// What begins in a slot: a chunk, the window, or what is written next.
const SIGNS = { window: "the window begins", next: "written next" };

/**
 * @param {PlotTrace[]} signs
 * @param {number} page
 * @param {RunRecord} record
 * @param {number} k
 */
const slotMarks = (signs, page, record, k) => {
  const found = new Map();
  /**
   * @param {number} slot
   * @param {string} name
   */
  const mark = (slot, name) => found.set(slot, [...(found.get(slot) ?? []), name]);
  const named = chunks(record, k);
  const ring = record.head.header.slots || Infinity;
  if (named.length > 1) for (const { first, name } of named) mark(first % ring, name);
  for (const { x, y, text, visible } of signs) {
    const name = visible === false ? null : SIGNS[text?.[0]];
    if (name) Array.from(x ?? [], (at, i) => mark(Math.round(y[i] + 0.5) * page + Math.floor(at), name));
  }
  return found;
};

/**
 * Target against drafter: a row for every token that has a bar.
 * @param {Player} player
 * @param {Ask<unknown>} ask
 */
const shares = (player, { view, figure }) => {
  const { target, names, marks, say } = view.base.detail;
  const { data } = figure();
  const signs = points(player, { data }, marks);
  const sign = (row) => signs.filter(({ y }) => y === row)
    .map(({ symbol }) => (symbol === "diamond" ? "taken" : "the guess")).join(", ");
  const rows = Array.from(data[names].text ?? [], (text, row) => {
    const node = data[target].customdata[row];
    const p = data[target].visible === false ? null : data[target].x[row];
    return { node, cells: [unescapeMarkup(text), p, data[names].customdata?.[row], node < 0 ? null : node, sign(row)] };
  });
  const words = data[say].visible === false ? [] : Array.from(data[say].text ?? [], unescapeMarkup);
  const headings = ["Token", "p of the target", "q of the drafter", "Guessed at node", "Sign"];
  return { headings, rows, say: words.filter(Boolean) };
};

// Tokens side by side: one that is written from right to left stays in its place among them.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;

/** @param {Seen} point */
const apart = ({ text }) => (RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text);

/** @param {Seen[]} row */
const joined = (row) => row.map(apart).join(" ");

/**
 * A window: a row for every cell, and behind an answer the n-gram that was harvested from its diagonal.
 * @param {Player} player
 * @param {Ask<CellSpec>} ask
 */
const cells = (player, { spec, figure }) => {
  const drawn = figure();
  const { start } = player.record.steps[player.state.step];
  const known = spec.cells.flatMap(([number, kind]) => points(player, drawn, number)
    .filter(({ text }) => text).map((point) => ({ ...point, kind: kind ?? point.fate }))).sort(byPlace);
  const signs = new Map(points(player, drawn, spec.harvest)
    .map(({ x, y, symbol }) => [`${Math.floor(x)},${Math.floor(y)}`, spec.signed[symbol]]));
  /** @param {Seen} cell */
  const harvest = ({ x, y }) => {
    const sign = signs.get(`${x},${y}`);
    return sign && `${joined(known.filter((other) => other.x - other.y === x - y && other.y <= y))}: ${sign}`;
  };
  const rows = known.map((cell) => {
    const told = [cell.text, spec.rows[cell.y], spec.ahead ? start - 1 + cell.x : cell.x, cell.kind];
    return { node: cell.node, cells: spec.ahead ? [...told, harvest(cell)] : told };
  });
  return { headings: ["Token", "Row", "Place", "What", ...(spec.ahead ? ["Harvested n-gram"] : [])], rows };
};

/**
 * A board: its cells by row, by column or each alone, with the words and signs that stand there.
 * @param {Player} player
 * @param {Ask<BoardSpec>} ask
 */
const board = (player, { spec, figure }) => {
  const drawn = figure();
  /** @param {Seen} point */
  const side = ({ x }) => Number(x >= (spec.split ?? Infinity));
  /** @param {Seen} point */
  const key = (point) => `${side(point)} ${BY[spec.by](point)}`;
  /** @param {...number} numbers */
  const seen = (...numbers) => numbers.flatMap((number) => points(player, drawn, number));
  const groups = new Map();
  for (const point of seen(0, 2, 3).filter(({ text }) => text)) {
    const group = groups.get(key(point)) ?? { side: side(point), cells: [], label: [], told: [], signs: [] };
    group.cells.push(point);
    groups.set(key(point), group);
  }
  const say = []; // words that stand at no cell
  for (const point of seen(4)) (groups.get(key(point))?.label ?? say).push(point.text);
  for (const point of seen(5)) (groups.get(key(point))?.told ?? say).push(point.text);
  for (const point of seen(...spec.signs)) groups.get(key(point))?.signs.push(spec.signed[point.symbol]);
  for (const group of groups.values()) group.cells.sort(byPlace);
  const order = [...groups.values()].sort((a, b) => a.side - b.side || byPlace(a.cells[0], b.cells[0]));
  const { headings, row } = BOARDS[spec.by](spec, drawn.layout);
  const held = drawn.data[spec.total]?.y;
  if (held?.length) say.push(`${spec.totals}: ${held[0]}.`);
  /** @param {Group} group */
  const node = (group) => group.cells.find((cell) => cell.node >= 0)?.node ?? -1;
  return { headings, say, rows: order.map((group) => ({ node: node(group), cells: row(group) })) };
};

const BY = { row: ({ y }) => y, column: ({ x }) => Math.round(x) + 0, cell: ({ x, y }) => `${x} ${y}` };

/** @param {Seen[]} known */
const fates = (known) => known.map(({ fate }) => fate).join(", ");

/**
 * @param {LayoutAxis} axis
 * @param {number} value
 */
const tick = ({ tickvals, ticktext }, value) => ticktext?.[tickvals.indexOf(value)];

// What a row of a board holds. The colours of n-grams that were learned say nothing of their tokens.
const BOARDS = {
  row: ({ label, sides, depth }) => ({
    headings: ["Tokens", ...(sides ? ["Which"] : []), label, ...(depth ? ["From depth"] : []), "Fates",
      "What became of it"],
    row: ({ side, cells: found, ...words }) => [joined(found), ...(sides ? [sides[side]] : []),
      words.label.join(", "), ...(depth ? [found[0].x > 0 ? found[0].x : null] : []), side ? null : fates(found),
      [...words.told, ...words.signs].join(", ")],
  }),
  column: ({ label, told }) => ({
    headings: ["Token", label, "Fate", told],
    row: ({ cells: [cell], ...words }) =>
      [cell.text, BY.column(cell) || "root", cell.fate, words.told.join(", ")],
  }),
  cell: ({ label, column }, { xaxis, yaxis }) => ({
    headings: ["Token", column, label, "Fate", "Sign"],
    row: ({ cells: [cell], signs }) =>
      [cell.text, tick(xaxis, cell.x), tick(yaxis, cell.y), cell.fate, signs.join(", ")],
  }),
};

export const ROWS = { queries, branches, shares, steps, slots, cells, board };
