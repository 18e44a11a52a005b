// Small makers of elements. Text reaches the page as text nodes only; no markup is ever parsed.


const SVG = "http://www.w3.org/2000/svg";

const build = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
};

export const el = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

export const write = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

export const show = (node, wanted) => {
  if (node.hidden === wanted) node.hidden = !wanted;
};

export const facts = (rows) => rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);

export const prefersCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
