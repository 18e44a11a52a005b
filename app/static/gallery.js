import { el } from "../../assets/player/dom/elements.js";

/** @import { Recording } from "./types.d.ts" */

/**
 * The recorded runs to choose from, method by method.
 * @param {Recording[]} recordings
 * @param {(run: string) => void} open
 */
export const gallery = (recordings, open) => {
  /** @type {Map<string, Recording[]>} */
  const groups = new Map();
  for (const each of recordings) groups.set(each.label, [...(groups.get(each.label) ?? []), each]);
  /** @param {string} run */
  const choose = (run) => {
    dialog.close();
    open(run);
  };
  /** @param {Recording} each */
  const card = ({ id, title, tokens_per_step: pace }) =>
    el("button", { type: "button", class: "app-card", "data-run": id, onclick: () => choose(id) },
      el("strong", {}, title), el("span", {}, `${pace.toFixed(2)} tokens per step`));
  const sections = [...groups].map(([label, rows]) => el("section", {}, el("h3", {}, label),
    el("p", {}, rows[0].shows), el("div", { class: "app-cards" }, ...rows.map(card))));
  /** @type {HTMLDialogElement} */
  const dialog = el("dialog", { class: "app-gallery", "aria-label": "Recorded runs" },
    el("div", { class: "app-gallery-head" }, el("h2", {}, "Recorded runs"),
      el("button", { type: "button", class: "app-button", onclick: () => dialog.close() }, "Close")), ...sections);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return dialog;
};
