// Buttons and their icons.
import { el, svg } from "./elements.js";

/** @import { Attributes } from "./elements.js" */
/** @typedef {keyof typeof ICONS} IconName */

const ICONS = {
  first: "M4 4v12 M15 4L7 10l8 6z",
  back: "M13 4l-7 6 7 6z",
  play: "M6 3l11 7-11 7z",
  pause: "M6 4v12 M13 4v12",
  forward: "M7 4l7 6-7 6z",
  last: "M16 4v12 M5 4l8 6-8 6z",
  table: "M3 4h14v12H3z M3 8h14 M3 12h14 M9 8v8",
  full: "M3 8V3h5 M12 3h5v5 M17 12v5h-5 M8 17H3v-5",
  image: "M3 4h14v12H3z M3 14l4-4 3 3 3-4 4 5",
  vector: "M4 15C7 3 13 17 16 5 M2 15h4 M14 5h4",
  link: "M8 12l4-4 M9 6l2-2a3 3 0 0 1 4 4l-2 2 M11 14l-2 2a3 3 0 0 1-4-4l2-2",
  info: "M10 10m-7 0a7 7 0 1 0 14 0a7 7 0 1 0-14 0 M10 9.500v4 M10 6.500h.01",
  close: "M5 5l10 10 M15 5L5 15",
  more: "M2 10a2 2 0 1 0 4 0a2 2 0 1 0-4 0 M8 10a2 2 0 1 0 4 0a2 2 0 1 0-4 0 M14 10a2 2 0 1 0 4 0a2 2 0 1 0-4 0",
  live: "M10 10m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
  restart: "M4 10a6 6 0 1 0 2-4.5 M4 3v4h4",
};

/** @type {Set<IconName>} */
const SOLID = new Set(["first", "back", "play", "forward", "last", "live", "more"]);

/** @param {IconName} name */
const drawIcon = (name) =>
  svg("svg", {
    viewBox: "0 0 20 20", class: SOLID.has(name) ? "ss-icon ss-solid" : "ss-icon", "aria-hidden": "true",
  }, svg("path", { d: ICONS[name] }));

/**
 * Return a button that shows an icon and says its words; `text` puts the words on it as well.
 * @param {IconName | null} icon
 * @param {string} label
 * @param {() => void} onclick
 * @param {Attributes & { key?: string, text?: string }} [options]
 */
export const button = (icon, label, onclick, { key, text, ...attributes } = {}) => {
  const words = key ? `${label} (${key})` : label;
  const content = [icon ? drawIcon(icon) : null, text ? el("span", {}, text) : null];
  return el("button", {
    type: "button", class: "ss-button", "aria-label": words, title: words, onclick, ...attributes,
  }, ...content);
};

/**
 * @param {HTMLElement} node
 * @param {IconName} name
 * @param {string} label
 */
export const setIcon = (node, name, label) => {
  node.replaceChildren(drawIcon(name));
  node.setAttribute("aria-label", label);
  node.title = label;
};
