// Sliders and menus of the Cost tab. A slider acts while it moves; the address follows when it is released.
import { el, write } from "../../player/dom/elements.js";

/**
 * @typedef {object} Control
 * @property {HTMLElement} node
 * @property {(value: any) => void} show
 */

/**
 * Return a slider over numbers, or over the entries of a list.
 * @param {object} options
 * @param {string} options.label
 * @param {readonly number[]} [options.values]
 * @param {{ low: number, high: number, step: number }} [options.span]
 * @param {(value: number) => string} options.words
 * @param {(value: number, done: boolean) => void} options.changed
 * @returns {Control}
 */
export const slider = ({ label, values, span, words, changed }) => {
  const { low, high, step } = span ?? { low: 0, high: (values?.length ?? 1) - 1, step: 1 };
  const input = el("input", { type: "range", min: low, max: high, step, "aria-label": label });
  const output = el("output", {});
  const value = () => (values ? values[Number(input.value)] : Number(input.value));
  const said = (/** @type {number} */ number) => {
    write(output, words(number));
    input.setAttribute("aria-valuetext", words(number));
  };
  input.addEventListener("input", () => {
    said(value());
    changed(value(), false);
  });
  input.addEventListener("change", () => changed(value(), true));
  return {
    node: el("div", { class: "app-cost-slider" }, el("span", { "aria-hidden": "true" }, label), output, input),
    show(number) {
      input.value = String(values ? values.indexOf(number) : number);
      said(number);
    },
  };
};

/**
 * @param {string} label
 * @param {(value: string) => void} changed
 * @returns {Control & { fill: (groups: { name: string, options: [value: string, words: string][] }[]) => void }}
 */
export const menu = (label, changed) => {
  const select = el("select", { class: "ss-select" });
  select.addEventListener("change", () => changed(select.value));
  return {
    node: el("label", { class: "app-cost-field" }, label, select),
    show(value) {
      select.value = String(value);
    },
    fill(groups) {
      select.replaceChildren(...groups.flatMap(({ name, options }) => {
        const made = options.map(([value, words]) => el("option", { value }, words));
        return name ? [el("optgroup", { label: name }, ...made)] : made;
      }));
    },
  };
};
