// A card of the Cost tab: sentences, a chart, and the same as a table.
import { el, write } from "../../player/dom/elements.js";
import { plainTable } from "../debug/table.js";
import { chartKey, drawChart, keyMark } from "./chart.js";

/** @import { TableFacts } from "../debug/types.d.ts" */
/** @import { Figure } from "./chart.js" */
/** @import { Choices } from "./types.d.ts" */

/**
 * @typedef {string | { words: string, look: number }} Said a sentence, or one on what has this mark in the chart
 *
 * @typedef {object} Content
 * @property {Said[]} says
 * @property {{ figure: Figure, entries: Parameters<typeof chartKey>[0], level?: string }[]} charts
 * @property {() => TableFacts} table
 * @property {string[]} notes
 */

export class Card {
  /**
   * @param {string} title
   * @param {"measured" | "projected"} kind
   * @param {string} look what the card is for
   * @param {(keyof Choices)[]} uses the choices that it shows
   * @param {((row: number) => void) | null} [open] what a row of the table leads to
   */
  constructor(title, kind, look, uses, open = null) {
    this.title = title;
    this.uses = uses;
    this.open = open;
    this.width = 0; // of a chart, measured once: to ask for it between changes would lay the page out each time
    this.controls = el("div", { class: "app-cost-controls" });
    this.says = el("div", { class: "ss-verdict app-cost-says", "aria-live": "polite" });
    this.plots = el("div", { class: "app-cost-grid-of-cards" });
    this.tableBox = el("div", {});
    this.box = el("details", { class: "app-cost-box" }, el("summary", {}, "Show as a table"), this.tableBox);
    this.notes = el("div", { class: "app-cost-small" });
    this.node = el("section", { class: "ss-card", "aria-label": title },
      el("div", { class: "ss-card-head" }, el("h3", {}, title), el("span", { class: `app-cost-${kind}` }, kind)),
      el("p", { class: "ss-look" }, look), this.controls, this.says, this.plots, this.box, this.notes);
    /** @type {Content | null} */
    this.content = null;
    this.box.addEventListener("toggle", () => this.fillTable());
  }

  /** @param {Content} content */
  draw(content) {
    this.content = content;
    const { says, charts, notes } = content;
    lines(this.says, says);
    lines(this.notes, notes);
    while (this.plots.childElementCount > charts.length) this.plots.lastElementChild?.remove();
    while (this.plots.childElementCount < charts.length) this.plots.append(el("div", { class: "app-cost-plot" }));
    for (const [at, { figure, entries, level }] of charts.entries()) {
      const plot = this.plots.children[at];
      this.width ||= plot.clientWidth;
      plot.replaceChildren(drawChart(figure, Math.max(280, this.width)), chartKey(entries, level));
    }
    this.box.hidden = !charts.length;
    this.fillTable();
  }

  fillTable() {
    if (!this.box.open || !this.content) return;
    const held = this.tableBox.contains(document.activeElement);
    this.tableBox.replaceChildren(plainTable(this.content.table(), `${this.title}, as a table`, this.open));
    if (held) this.tableBox.querySelector("button")?.focus();
  }
}

/**
 * Sentences as paragraphs; those that stay the same are not read out again.
 * @param {HTMLElement} node
 * @param {Said[]} sentences
 */
const lines = (node, sentences) => {
  while (node.childElementCount > sentences.length) node.lastElementChild?.remove();
  for (const [at, said] of sentences.entries()) {
    const { words, look } = typeof said === "string" ? { words: said, look: -1 } : said;
    if (!node.children[at]) node.append(el("p", {}, el("span", {})));
    const line = /** @type {HTMLElement} */ (node.children[at]);
    write(/** @type {HTMLElement} */ (line.lastElementChild), words);
    if (line.dataset.look === String(look)) continue;
    line.dataset.look = String(look);
    line.replaceChildren(...(look < 0 ? [] : [keyMark(look, true, false)]), /** @type {HTMLElement} */ (line.lastElementChild));
  }
};
