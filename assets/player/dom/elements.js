// Small makers of elements. Text reaches the page as text nodes only; no markup is ever parsed.

/**
 * What elements are made of: handlers under "on" and the event's name, all else as attributes; null, undefined and
 * false leave one out.
 * @typedef {{ [name: string]: Attribute | Handler }} Attributes
 * @typedef {string | number | boolean | null | undefined} Attribute
 * @typedef {(() => unknown) | undefined} Handler
 * @typedef {Node | string | null | undefined | false} Child
 * @typedef {[name: string, value: string][]} Facts
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {Element} T
 * @param {T} node
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
const build = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
};

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 */
export const el = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 */
export const svg = (tag, attributes = {}, ...children) =>
  build(document.createElementNS(SVG, tag), attributes, children);

/**
 * @param {Node} node
 * @param {string} text
 */
export const write = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/**
 * @param {HTMLElement} node
 * @param {boolean} wanted
 */
export const show = (node, wanted) => {
  if (node.hidden === wanted) node.hidden = !wanted;
};

/** @param {Facts} rows */
export const facts = (rows) => rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));

export const prefersCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
