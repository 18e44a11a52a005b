import { el } from "../player/dom/elements.js";

/** @import { RecordedRun } from "./types.d.ts" */

/**
 * The recorded runs to choose from, in the server's order: models, and below each its prompts or methods.
 * @param {RecordedRun[]} recordings
 * @param {(run: string) => void} open
 */
export const gallery = (recordings, open) => {
  /** @param {string} run */
  const choose = (run) => {
    dialog.close();
    open(run);
  };
  /** @param {RecordedRun} each */
  const card = (each) =>
    el("button", { type: "button", class: "app-card", "data-run": each.id, onclick: () => choose(each.id) },
      // Below the heading of a method, only the title says what is different.
      el("strong", {}, each.group === each.label ? each.title : each.label), el("span", {}, pace(each)));
  /** @type {(group: [string, RecordedRun[]]) => HTMLElement} */
  const section = ([group, rows]) => el("section", {}, el("h4", {}, group), el("p", {}, rows[0].about),
    el("div", { class: "app-cards" }, ...rows.map(card)));
  const families = groupBy(recordings, ({ family }) => family).map(([family, rows]) =>
    el("section", { class: "app-family" }, el("h3", {}, family),
      ...groupBy(rows, ({ group }) => group).map(section)));
  /** @type {HTMLDialogElement} */
  const dialog = el("dialog", { class: "app-gallery", "aria-label": "Recorded runs" },
    el("div", { class: "app-gallery-head" }, el("h2", {}, "Recorded runs"),
      el("button", { type: "button", class: "app-button", onclick: () => dialog.close() }, "Close")), ...families);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return dialog;
};

/**
 * The hyphen is one that no line ends with.
 * @param {RecordedRun} recording
 */
const pace = ({ tokens_per_step: tokens, speedup }) =>
  `${tokens.toFixed(2)} tokens per step${speedup ? `, speed‑up ${speedup.toFixed(2)}×` : ""}`;

/**
 * @template T
 * @param {T[]} rows
 * @param {(row: T) => string} key
 */
export const groupBy = (rows, key) => {
  /** @type {Map<string, T[]>} */
  const groups = new Map();
  for (const row of rows) groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
  return [...groups];
};
