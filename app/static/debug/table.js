// Tables of the Debug page.
import { el } from "../../../assets/player/dom/elements.js";

/** @import { Cell, TableFacts } from "./types.d.ts" */

/** @param {Cell} value */
export const cellText = (value) => {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return String(Number(value.toPrecision(4)));
};

const LONG = 60; // characters of a cell; all of it is its title

/**
 * @param {TableFacts} table
 * @param {string} label
 * @param {((row: number) => void) | null} [open] shows the steps behind a row
 */
export const plainTable = ({ columns, rows, more }, label, open = null) => {
  const line = (/** @type {Cell[]} */ cells, /** @type {number} */ row) => el("tr", {}, ...cells.map((value, place) => {
    const text = cellText(value);
    const leads = open && place === 0;
    const cut = text.length > LONG ? `${text.slice(0, LONG)}…` : text;
    return el("td", { class: typeof value === "number" ? "app-debug-number" : null, title: cut === text ? null : text }, leads ?
      el("button", { type: "button", class: "ss-button ss-worded", title: "Show the steps behind this row",
        onclick: () => open(row) }, cut) : cut);
  }));
  const head = el("thead", {}, el("tr", {}, ...columns.map((name) => el("th", { scope: "col" }, name))));
  return el("div", { class: "ss-scroll", tabindex: 0, role: "region", "aria-label": label },
    el("table", { class: "ss-table" }, head, el("tbody", {}, ...rows.map(line))),
    more ? el("p", { class: "ss-quiet" }, `The first ${rows.length} rows.`) : null);
};
