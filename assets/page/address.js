// The page's address: reads the place that an address names, and writes the visitor's place.
import { PHASES } from "../player/stream/fates.js";

/** @import { RunRecord } from "../player/stream/record.js" */
/** @import { Place } from "../player/types.d.ts" */

const MOST = 4095; // of a step or node: the server refuses larger ones
const PLACE = /** @type {const} */ (["step", "phase", "view", "node"]);
const VIEW = /^[a-z_]{1,24}$/;
export const SCREENS = ["run", "race", "debug", "cost", "learn"];
const RUN = ["run", "beside", ...PLACE, "bare", "lesson", "at"]; // fields of the Run tab, where it has no form
export const MOST_PROBLEMS = 3; // of an address that are shown: the others mostly follow from the first
const LISTED = 3; // names of fields in a sentence
const ELSEWHERE = ["__", "utm_"]; // begin the fields of Gradio and of those who count visits

export const asked = () => new URLSearchParams(location.search);

/**
 * Return the place that an address names; the player checks it against the run.
 * @param {URLSearchParams} query
 * @returns {Partial<Place>}
 */
export const placeIn = (query) => {
  /** @param {string} name */
  const number = (name) => (/^\d{1,6}$/.test(query.get(name) ?? "") ? Number(query.get(name)) : undefined);
  return {
    step: number("step"), phase: query.get("phase") ?? undefined,
    view: query.get("view") ?? undefined, node: number("node"),
  };
};

/**
 * Say which fields of an address were ignored and why, as app/left_out.py does on the server (a test compares them).
 * @param {string[]} names
 * @param {string} why
 */
export const leftOut = (names, why) => {
  const more = names.length > LISTED ? ` and ${names.length - LISTED} more` : "";
  const listed = names.slice(0, LISTED).map((name) => `'${name.slice(0, 40)}'`).join(", ");
  return `${listed}${more} in the address ${names.length === 1 ? "was" : "were"} left out: ${why}.`;
};

/**
 * Return a sentence on the fields of an address that a tab does not know, or none.
 * @param {URLSearchParams} query
 * @param {readonly string[]} known
 * @param {string} [why]
 */
export const unknownFields = (query, known, why = "this page has no such settings") => {
  const unknown = [...new Set(query.keys())]
    .filter((name) => !["screen", ...known].includes(name) && !ELSEWHERE.some((begin) => name.startsWith(begin)));
  return unknown.length ? [leftOut(unknown, why)] : [];
};

/**
 * Return a sentence on each field of a place that cannot be read, where no server reads it.
 * @param {URLSearchParams} query
 */
export const misspelt = (query) => {
  /** @param {string} name @param {(text: string) => boolean} fits @param {string} why */
  const unless = (name, fits, why) => (query.has(name) && !fits(query.get(name) ?? "") ? [leftOut([name], why)] : []);
  const number = (/** @type {string} */ text) => /^\d{1,6}$/.test(text) && Number(text) <= MOST;
  const range = `it must be a whole number from 0 to ${MOST}`;
  return [
    ...unless("screen", (text) => SCREENS.includes(text), `choose one of ${SCREENS.join(", ")}`),
    ...unless("step", number, range), ...unless("node", number, range),
    ...unless("phase", (text) => PHASES.includes(/** @type {any} */ (text)), `choose one of ${PHASES.join(", ")}`),
    ...unless("view", (text) => VIEW.test(text), "a view's name consists of up to 24 lower-case letters"),
  ];
};

/**
 * Return a sentence on what of an address the Run tab of a page without a form does not read.
 * @param {URLSearchParams} query
 */
export const unread = (query) => {
  const elsewhere = SCREENS.slice(1).includes(query.get("screen") ?? "");
  return elsewhere ? [] : [...misspelt(query), ...unknownFields(query, RUN)];
};

/**
 * Return a sentence on what of an address the Race tab of a page without a form does not read.
 * @param {URLSearchParams} query
 */
export const unraced = (query) => (query.get("screen") === "race"
  ? unknownFields(query, [], "this page runs no races, and shows a recorded one") : []);

/**
 * Return a sentence on each thing that an address names and its run does not have. The server says what is misspelt.
 * @param {URLSearchParams} query
 * @param {RunRecord} record
 * @param {(view: string) => boolean} hasView
 */
export const lacking = (query, record, hasView) => {
  const { step, node } = placeIn(query), view = query.get("view") ?? "";
  const [branch = "", at, guess] = /^(\d{1,6})(?:n(\d{1,4})|k\d{1,4})$/.exec(query.get("branch") ?? "") ?? [];
  /** @param {string} named @param {number | undefined} k @param {number | null} [number] */
  const missing = (named, k, number) => {
    if (k === undefined || k > MOST) return [];
    if (k > record.last) return [`${named} in the address was left out: the last step of this run is ${record.last}.`];
    const count = record.nodes(k)?.count;
    const lacks = typeof number === "number" && number <= MOST && count !== undefined && !record.spot(k, number);
    return lacks ? [`${named} in the address was left out: the last node of step ${k} is ${count - 1}.`] : [];
  };
  const misnamed = VIEW.test(view) && !hasView(view);
  return [
    ...missing(`Step ${step}`, step),
    ...(step !== undefined && step > record.last ? [] : missing(`Node ${node}`, step, node)),
    ...(misnamed ? [`View ${view} in the address was left out: this run has no such view.`] : []),
    ...missing(`Branch ${branch}`, branch ? Number(at) : undefined, guess === undefined ? undefined : Number(guess)),
  ];
};

/**
 * @param {string} base the query that names the run; an empty one is the page's own address
 * @param {Partial<Place>} [place]
 */
export const addressOf = (base, place) => {
  const query = new URLSearchParams(base);
  for (const name of PLACE) {
    const value = place?.[name];
    if (value !== null && value !== undefined && value !== -1) query.set(name, String(value));
  }
  const theme = asked().get("__theme");
  if (theme === "dark" || theme === "light") query.set("__theme", theme);
  return `${location.origin}${location.pathname}${query.size ? `?${query}` : ""}`;
};

/**
 * Write the address of the visible screen; other screens write nothing. Another run is another entry of the
 * browser's history, a move within it is none.
 * @param {HTMLElement} root
 * @param {string} base
 * @param {Partial<Place>} place
 * @param {boolean} [another]
 */
export const note = (root, base, place, another = false) => {
  if (root.offsetParent) write(addressOf(base, place), another);
};

/**
 * @param {string} address
 * @param {boolean} another
 */
export const write = (address, another) => {
  try {
    if (another) history.pushState(null, "", address);
    else history.replaceState(history.state, "", address);
  } catch { /* a page that is opened as a file keeps its address */ }
};
