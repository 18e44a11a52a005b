// Tables that Python made (viz/tables.py), as far as they are known at a phase.
import { PHASES } from "../stream/fates.js";

/** @import { CellValue, MadeCell, MadeTable, Phase, Rows } from "../types.d.ts" */

/**
 * Return what a cell says at a phase; one that changes says nothing before its first change.
 * @param {MadeCell} cell
 * @param {Phase} phase
 * @returns {CellValue}
 */
export const cellAt = (cell, phase) => {
  if (cell === null || typeof cell !== "object") return cell;
  const last = PHASES.slice(0, PHASES.indexOf(phase) + 1).findLast((each) => each in cell);
  return last && cell[last];
};

/**
 * @param {MadeTable} table
 * @param {Phase} phase
 * @returns {Rows}
 */
export const madeRows = ({ headings, rows, say, count }, phase) => {
  const now = PHASES.indexOf(phase);
  const seen = rows.filter(({ since = "propose", until }) =>
    PHASES.indexOf(since) <= now && (!until || now < PHASES.indexOf(until)));
  return {
    headings, count: count ?? seen.length,
    say: say.map((cell) => cellAt(cell, phase)).filter((words) => typeof words === "string"),
    rows: seen.map(({ cells, node }) => ({ node, cells: cells.map((cell) => cellAt(cell, phase)) })),
  };
};
