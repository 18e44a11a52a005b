// A view as a table: the content of its picture as rows of words.
import { dialog } from "../dom/dialog.js";
import { el } from "../dom/elements.js";
import { NumbersView } from "../cards/numbers.js";
import { madeRows } from "./made_rows.js";
import { MOST_ROWS, branchRows, nodeRows, queryRows } from "./node_rows.js";
import { pinnedRows } from "./pinned_rows.js";
import { stepRows } from "./step_rows.js";

/** @import { Player } from "../player.js" */
/** @import { CellValue, Rows, Seen, Table, View, Viewed, WordRow } from "../types.d.ts" */

const LONG = 40; // characters of a sentence

/** @param {CellValue} value */
const cell = (value) => {
  if (value === null || value === undefined || value === "" || Number.isNaN(value)) return "–";
  return typeof value === "number" ? String(Math.round(value * 1e4) / 1e4) : String(value);
};

/**
 * Return what has to be fetched before a view's table can be made; null where all is here.
 * @param {Player} player
 * @param {View} view
 * @param {number} k
 */
const missing = ({ record }, view, k) => {
  if (view.rows && !record.tables.has(k)) return "rows";
  const detailed = view.pinned || view.columns.some(([, column]) => column === "sees");
  return detailed && !record.details.has(k) ? "detail" : null;
};

/**
 * @param {Player} player
 * @param {Viewed} card
 * @param {Seen} at
 * @returns {Rows}
 */
const rowsOf = (player, { view, content }, at) => {
  const { record } = player;
  if (content instanceof NumbersView) {
    const { headings, rows } = content.table();
    return { headings, rows: rows.map((cells) => ({ cells })) };
  }
  if (view.rows) {
    const made = record.tables.get(at.step)?.[view.name];
    return made ? madeRows(made, at.phase) : { rows: [] };
  }
  const kind = view.base.table?.kind;
  if (kind === "steps") return stepRows(player);
  if (record.steps[at.step]?.thin) return { rows: [] };
  if (view.pinned) return pinnedRows(player, view, at);
  if (kind === "queries") return queryRows(player, view, at);
  return kind === "branches" ? branchRows(player, view, at) : nodeRows(player, view, at);
};

/**
 * Return a table as words: a row is its cells and the node or step that it leads to; `say` are sentences.
 * @param {Player} player
 * @param {Viewed} card
 * @param {Seen} at
 * @returns {Table}
 */
const tableOf = (player, card, at) => {
  const made = rowsOf(player, card, at);
  const rows = made.rows.slice(0, MOST_ROWS).map((row) => ({ ...row, cells: row.cells.map(cell) }));
  const headings = card.view.columns.map(([heading]) => heading);
  return { headings, say: [], count: made.rows.length, ...made, rows };
};

/**
 * Return the first cell of a row, which leads to its node or step.
 * @param {Player} player
 * @param {HTMLDialogElement} box
 * @param {Seen} at
 * @param {WordRow} row
 */
const lead = (player, box, at, row) => {
  const act = () => {
    box.close();
    if (row.step !== undefined) player.seek(row.step);
    else if (row.node !== undefined) player.pin(at.step, row.node);
  };
  return el("button", {
    type: "button", class: "ss-button ss-worded", onclick: act,
    title: row.step === undefined ? "Pin this token" : "Go to this step",
  }, row.cells[0]);
};

/**
 * @param {Player} player
 * @param {HTMLDialogElement} box
 * @param {Seen} at
 * @param {WordRow} row
 */
const line = (player, box, at, row) =>
  el("tr", {}, ...row.cells.map((text, j) => {
    const leads = j === 0 && (row.step !== undefined || (row.node ?? -1) >= 0);
    return el("td", { class: text.length > LONG ? "ss-long" : null }, leads ? lead(player, box, at, row) : text);
  }));

/**
 * Return why a table has no rows.
 * @param {Player} player
 * @param {View} view
 * @param {number} k
 */
const noRows = (player, view, k) => {
  const kind = missing(player, view, k);
  if (kind) return player.fetch.missingTable(kind, k);
  return player.record.steps[k]?.thin ? "This step is not loaded yet." : "This step has nothing to show here.";
};

/**
 * Shows the table of a view as it is now, and fetches what it lacks.
 * @param {Player} player
 * @param {Viewed} card
 */
export const showTable = async (player, card) => {
  const { view } = card;
  const { step, phase, pin } = player.state; // it may move on while the table is open
  const at = { step, phase, pin };
  const title = `${view.label}, step ${step}`;
  const content = el("div", { class: "ss-contents" });
  const box = dialog(title, content);
  const fill = () => {
    const { headings, rows, count, say } = tableOf(player, card, at);
    const body = el("tbody", {}, ...rows.map((row) => line(player, box, at, row)));
    const head = el("thead", {}, el("tr", {}, ...headings.map((heading) => el("th", { scope: "col" }, heading))));
    const quiet = [...say];
    if (!rows.length) quiet.push(noRows(player, view, step));
    if (count > rows.length) quiet.push(`The first ${rows.length} of ${count} rows.`);
    const table = el("div", { class: "ss-scroll", tabindex: 0, role: "region", "aria-label": title },
      el("table", { class: "ss-table" }, head, body));
    content.replaceChildren(...quiet.map((words) => el("p", { class: "ss-quiet" }, words)), table);
    table.hidden = !headings.length;
  };
  fill();
  box.addEventListener("close", () => box.remove());
  player.root.append(box);
  box.showModal();
  const kind = missing(player, view, step);
  if (!kind) return;
  await player.fetch.ask(kind, step);
  fill();
};
