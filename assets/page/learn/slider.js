// A slider over one setting of recorded runs: the marks are the recordings, and nothing is drawn between them.
import { el } from "../../player/dom/elements.js";

/** @import { Slider } from "./types.d.ts" */

/**
 * @param {Slider} slider
 * @param {(run: string) => void} open
 * @param {string | undefined} shown the run in the player
 */
export const sliderOf = ({ label, marks }, open, shown) => {
  const most = Math.max(...marks.map(({ number }) => number));
  const input = el("input", { type: "range", min: 0, max: marks.length - 1, step: 1, value: 0, "aria-label": label });
  const value = el("output", { class: "app-learn-value" });
  const bars = marks.map(({ number, value: mark }, i) =>
    el("button", { type: "button", class: "app-learn-mark", "aria-label": `${label} ${mark}: ${shownNumber(number)}`,
      onclick: () => choose(i) },
    el("span", { class: "app-learn-bar", style: `height: ${Math.max(4, 72 * number / most)}px` }),
    el("span", { class: "app-learn-mark-value" }, mark)));
  /** @param {number} i */
  const choose = (i) => {
    draw(i);
    const { run } = marks[i];
    if (run) open(run);
  };
  /** @param {number} i */
  const draw = (i) => {
    input.value = String(i);
    value.textContent = `${label} ${marks[i].value}: ${shownNumber(marks[i].number)}`;
    input.setAttribute("aria-valuetext", value.textContent);
    for (const [at, bar] of bars.entries()) bar.classList.toggle("app-chosen", at === i);
  };
  input.addEventListener("input", () => choose(Number(input.value)));
  draw(Math.max(0, marks.findIndex(({ run }) => run !== null && run === shown)));
  return el("div", { class: "app-learn-slider" }, value, el("div", { class: "app-learn-bars" }, ...bars), input);
};

/** @param {number} number */
const shownNumber = (number) => (Number.isInteger(number) ? String(number) : number.toFixed(2));
