// A view as a table: what its figure shows, as rows of words.
import { dialog } from "../dom/dialog.js";
import { el } from "../dom/elements.js";
import { unescapeMarkup } from "../stream/escape.js";
import { NumbersView } from "../cards/numbers.js";
import { figureRows } from "./figure_rows.js";
import { MOST_ROWS, allNodes, nodeRows } from "./node_rows.js";

/** @import { Player } from "../player.js" */
/** @import { CellValue, Figure, Rows, Table, TableRow, View, Viewed, WordRow } from "../types.d.ts" */

const LONG = 40; // characters of a sentence

/**
 * One column of a view's table, which a path names: "data.0.x" of the figure.
 * @param {Figure} figure
 * @param {string} where
 * @returns {CellValue[]}
 */
const column = (figure, where) => {
  /** @type {unknown} */
  let values = figure.data;
  for (const name of where.split(".").slice(1)) {
    values = /** @type {{ [name: string]: unknown } | undefined} */ (values)?.[name];
  }
  const known = /** @type {ArrayLike<CellValue> | undefined} */ (values);
  return Array.from(known ?? [], (value) => (typeof value === "string" ? unescapeMarkup(value) : value));
};

/**
 * @param {View} view
 * @param {Figure} figure
 * @returns {TableRow[]}
 */
const columnRows = (view, figure) => {
  const columns = view.columns.map(([, where]) => column(figure, where));
  const count = Math.max(0, ...columns.map((values) => values.length));
  return Array.from({ length: count }, (_, i) => ({ cells: columns.map((values) => values[i]) }));
};

/**
 * @param {Player} player
 * @param {View} view
 * @param {() => Figure} figure
 */
const plainTable = (player, view, figure) => {
  const nodes = view.columns.every(([, where]) => where.startsWith("nodes."));
  const rows = nodes ? nodeRows(player, view, allNodes(player)) : columnRows(view, figure());
  return { rows, count: nodes ? allNodes(player).length : rows.length };
};

/** @param {CellValue} value */
const cell = (value) => {
  if (value === null || value === undefined || value === "" || Number.isNaN(value)) return "–";
  return typeof value === "number" ? String(Math.round(value * 1e4) / 1e4) : String(value);
};

/**
 * A row is its cells, as words, and the node or step that it leads to; `say` are sentences.
 * @param {Player} player
 * @param {Viewed} card
 * @returns {Table}
 */
export const tableOf = (player, { view, content }) => {
  if (content instanceof NumbersView) {
    const { headings, rows } = content.table();
    return { headings, rows: rows.map((cells) => ({ cells })), count: rows.length, say: [] };
  }
  const { record, state } = player;
  const headings = view.columns.map(([heading]) => heading);
  const figure = () => player.frames.whole(view, state.step, state.phase, player.theme, state.pin);
  const spec = view.base?.table;
  const missing = record.steps[state.step]?.thin && !view.grows;
  /** @type {Rows} */
  const found = missing ? { rows: [] }
    : spec ? figureRows(player, { view, spec, figure }) : plainTable(player, view, figure);
  const rows = found.rows.slice(0, MOST_ROWS).map((row) => ({ ...row, cells: row.cells.map(cell) }));
  return { headings, say: [], count: found.rows.length, ...found, rows };
};

/**
 * The row's first cell leads to its node or step.
 * @param {Player} player
 * @param {HTMLDialogElement} box
 * @param {WordRow} row
 */
const lead = (player, box, row) => {
  const act = () => {
    box.close();
    if (row.step !== undefined) player.seek(row.step);
    else if (row.node !== undefined) player.pin(player.state.step, row.node);
  };
  return el("button", {
    type: "button", class: "ss-button ss-worded", onclick: act,
    title: row.step === undefined ? "Pin this token" : "Go to this step",
  }, row.cells[0]);
};

/**
 * @param {Player} player
 * @param {HTMLDialogElement} box
 * @param {WordRow} row
 */
const line = (player, box, row) =>
  el("tr", {}, ...row.cells.map((text, j) => {
    const leads = j === 0 && (row.step !== undefined || (row.node ?? -1) >= 0);
    return el("td", { class: text.length > LONG ? "ss-long" : null }, leads ? lead(player, box, row) : text);
  }));

/**
 * @param {Player} player
 * @param {Viewed} card
 */
export const showTable = (player, card) => {
  const { headings, rows, count, say } = tableOf(player, card);
  const { step } = player.state;
  const title = `${card.view.label}, step ${step}`;
  const body = el("tbody", {});
  const box = dialog(title, ...say.map((words) => el("p", { class: "ss-quiet" }, words)),
    el("div", { class: "ss-scroll", tabindex: 0, role: "region", "aria-label": title },
      el("table", { class: "ss-table" }, el("thead", {}, el("tr", {}, ...headings.map(
        (heading) => el("th", { scope: "col" }, heading)))), body)));
  body.append(...rows.map((row) => line(player, box, row)));
  const none = player.record.steps[step]?.thin ? "This step is not loaded yet." : "This step has nothing here.";
  if (!rows.length) box.append(el("p", { class: "ss-quiet" }, none));
  if (count > rows.length) box.append(el("p", { class: "ss-quiet" }, `The first ${rows.length} of ${count} rows.`));
  box.addEventListener("close", () => box.remove());
  player.root.append(box);
  box.showModal();
};
