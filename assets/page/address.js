// The page's address: where it wants to be, and where the visitor is.

/** @import { Place } from "../player/types.d.ts" */

const PLACE = /** @type {const} */ (["step", "phase", "view", "node"]);

export const asked = () => new URLSearchParams(location.search);

/**
 * Where an address wants to be; the player checks it against the run.
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
 * The address names the screen that is seen: what goes on elsewhere writes nothing. Another run is another entry of the
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
