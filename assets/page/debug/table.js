// Tables of the Debug tab.
import { el } from "../../player/dom/elements.js";

/** @import { Cell, Result, TableFacts } from "./types.d.ts" */

/** @param {Cell} value */
export const cellText = (value) => {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value !== "number") return seen(String(value));
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return String(Number(value.toPrecision(4)));
};

const SHARES = new Set(["share", "share up to it", "acceptance rate"]); // shown as per cent, as sentences have them
const ENDS = new Set(["low", "high"]); // of an interval
/** Columns of token ids. */
export const IDS = new Set(["token", "wanted"]);

/**
 * A cell of a metric's table, by its column; an interval is of the column before it that is no count of steps.
 * @param {string[]} columns
 * @param {number} place
 * @param {Cell} value
 */
export const metricText = (columns, place, value) => {
  const isEnd = ENDS.has(columns[place]);
  const name = isEnd ? columns.findLast((each, at) => at < place && !ENDS.has(each) && each !== "steps") ?? "" : columns[place];
  if (typeof value !== "number") return cellText(value);
  if (SHARES.has(name)) return `${(100 * value).toFixed(1)}%`;
  return IDS.has(name) ? String(value) : cellText(value);
};

/**
 * A text in which ends of lines are seen, and spaces where it begins and ends: tokens differ in these.
 * @param {string} text
 */
export const seen = (text) => text.replace(/\n/g, "↵").replace(/^ +| +$/g, (spaces) => "·".repeat(spaces.length));

/**
 * So many of something.
 * @param {number} number
 * @param {string} one
 */
export const count = (number, one) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;

const ONE = new Map([["tokens", "token"], ["guesses", "guess"], ["experts", "expert"], ["rows per token", "row per token"],
  ["autoregressive steps", "autoregressive step"]]);

/**
 * A measured number and the ends of its interval with as many digits as sentences have, and its unit.
 * @param {Pick<Result, "low" | "high" | "unit"> & { value: number }} result
 */
export const measuredText = ({ value, low, high, unit }) => {
  const percent = unit === "share", size = Math.abs(value);
  const isWhole = [value, low, high].every((each) => each === null || Number.isInteger(each));
  const digits = isWhole ? 0 : size >= 100 ? 1 : size >= 0.1 ? 2 : 3;
  const text = (/** @type {number} */ each) => (percent ? `${(100 * each).toFixed(1)}%`
    : each.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
  return { number: text(value), interval: low === null || high === null ? "" : `${text(low)} to ${text(high)}`,
    unit: percent ? "" : isWhole && value === 1 ? (ONE.get(unit) ?? unit) : unit };
};

const LONG = 60; // characters of a cell; all of it is its title

/**
 * @param {TableFacts} table
 * @param {string} label
 * @param {((row: number) => void) | null} [open] shows the steps behind a row
 * @param {(place: number, value: Cell) => string} [textOf] a cell's text by its column
 */
export const plainTable = ({ columns, rows, more, opens = rows.length }, label, open = null, textOf = (_, value) => cellText(value)) => {
  const right = columns.map((_, place) => rows.some((cells) => typeof cells[place] === "number"));
  const look = (/** @type {number} */ place) => (right[place] ? "app-debug-number" : null);
  const line = (/** @type {Cell[]} */ cells, /** @type {number} */ row) => el("tr", {
    onclick: open && row < opens ? () => String(getSelection() ?? "") || open(row) : undefined, // unless a text was marked
  }, ...cells.map((value, place) => {
    const text = textOf(place, value);
    const leads = open && row < opens && place === 0;
    const cut = text.length > LONG ? `${text.slice(0, LONG)}…` : text;
    return el("td", { class: look(place), title: cut === text ? null : text }, leads ?
      el("button", { type: "button", class: "ss-button ss-worded", title: "Show the steps behind this row" }, cut) : cut);
  }));
  const head = el("thead", {}, el("tr", {}, ...columns.map((name, place) => el("th", { scope: "col", class: look(place) }, name))));
  return el("div", { class: open ? "ss-scroll app-debug-opens" : "ss-scroll", tabindex: 0, role: "region", "aria-label": label },
    el("table", { class: "ss-table" }, head, el("tbody", {}, ...rows.map(line))),
    more ? el("p", { class: "ss-quiet" }, `The first ${rows.length} rows.`) : null);
};
