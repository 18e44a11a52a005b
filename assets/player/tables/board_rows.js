// A window's cells, and boards of n-grams and guesses, as rows of tables.
import { byPlace, joined, points } from "./points.js";

/** @import { Player } from "../player.js" */
/** @import { BoardSpec, CellSpec, CellValue, Figure, Layout, LayoutAxis, Rows } from "../types.d.ts" */
/** @import { Seen } from "./points.js" */

/**
 * A window: a row for every cell, and behind an answer the n-gram that was harvested from its diagonal.
 * @param {Player} player
 * @param {CellSpec} spec
 * @param {Figure} figure
 * @returns {Rows}
 */
export const cellRows = (player, spec, figure) => {
  const { start } = player.record.steps[player.state.step];
  const known = spec.cells.flatMap(([number, kind]) => points(player, figure, number)
    .filter(({ text }) => text).map((point) => ({ ...point, kind: kind ?? point.fate }))).sort(byPlace);
  const signs = new Map(points(player, figure, spec.harvest)
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
 * What belongs together on a board: its cells, and the words and signs that stand there.
 * @typedef {{ side: number, cells: Seen[], label: string[], told: string[], signs: string[] }} Group
 */

/**
 * A board: its cells by row, by column or each alone, with the words and signs that stand there.
 * @param {Player} player
 * @param {BoardSpec} spec
 * @param {Figure} figure
 * @returns {Rows}
 */
export const boardRows = (player, spec, figure) => {
  /** @param {Seen} point */
  const side = ({ x }) => Number(x >= (spec.split ?? Infinity));
  /** @param {Seen} point */
  const key = (point) => `${side(point)} ${BY[spec.by](point)}`;
  /** @param {...number} numbers */
  const seen = (...numbers) => numbers.flatMap((number) => points(player, figure, number));
  /** @type {Map<string, Group>} */
  const groups = new Map();
  for (const point of seen(0, 2, 3).filter(({ text }) => text)) {
    const group = groups.get(key(point)) ?? { side: side(point), cells: [], label: [], told: [], signs: [] };
    group.cells.push(point);
    groups.set(key(point), group);
  }
  /** @type {string[]} words that stand at no cell */
  const say = [];
  for (const point of seen(4)) (groups.get(key(point))?.label ?? say).push(point.text);
  for (const point of seen(5)) (groups.get(key(point))?.told ?? say).push(point.text);
  for (const point of seen(...spec.signs)) groups.get(key(point))?.signs.push(spec.signed[point.symbol]);
  for (const group of groups.values()) group.cells.sort(byPlace);
  const order = [...groups.values()].sort((a, b) => a.side - b.side || byPlace(a.cells[0], b.cells[0]));
  const { headings, row } = BOARDS[spec.by](spec, figure.layout);
  const held = figure.data[spec.total]?.y;
  if (held?.length) say.push(`${spec.totals}: ${held[0]}.`);
  /** @param {Group} group */
  const node = (group) => group.cells.find((cell) => cell.node >= 0)?.node ?? -1;
  return { headings, say, rows: order.map((group) => ({ node: node(group), cells: row(group) })) };
};

/** @param {Seen} point */
const columnOf = ({ x }) => Math.round(x) + 0; // no -0

/** @type {{ [by in BoardSpec["by"]]: (point: Seen) => string | number }} */
const BY = { row: ({ y }) => y, column: columnOf, cell: ({ x, y }) => `${x} ${y}` };

/** @param {Seen[]} known */
const fates = (known) => known.map(({ fate }) => fate).join(", ");

/**
 * The label that an axis has at a value.
 * @param {LayoutAxis | undefined} axis
 * @param {number} value
 */
const tick = (axis, value) => axis?.ticktext?.[axis.tickvals?.indexOf(value) ?? -1];

/**
 * What a row of a board holds. The colours of n-grams that were learned say nothing of their tokens.
 * @typedef {{ headings: string[], row: (group: Group) => CellValue[] }} Board
 * @type {{ [by in BoardSpec["by"]]: (spec: BoardSpec, layout: Layout) => Board }}
 */
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
    row: ({ cells: [cell], ...words }) => [cell.text, columnOf(cell) || "root", cell.fate, words.told.join(", ")],
  }),
  cell: ({ label, column }, { xaxis, yaxis }) => ({
    headings: ["Token", column, label, "Fate", "Sign"],
    row: ({ cells: [cell], signs }) =>
      [cell.text, tick(xaxis, cell.x), tick(yaxis, cell.y), cell.fate, signs.join(", ")],
  }),
};
