// Filters, which write a query, and the query itself, which can be edited.
import { el, write } from "../../player/dom/elements.js";

/** @import { Opened } from "./types.d.ts" */

/** The names of filters, as analysis/store/query.py has them; those with a kind are numbers. */
const FILTERS = /** @type {[name: string, label: string, kind?: string][]} */ ([
  ["text", "A guess contains"], ["wanted", "The target wanted"], ["question", "Question"], ["category", "Category"],
  ["accepted", "Accepted at least", "1"], ["rejected_at", "Rejected at position", "1"], ["depth", "Guess at position", "1"],
  ["slower", "Slower than, ms", "any"], ["p_from", "p from", "any"], ["p_to", "p to", "any"], ["q_from", "q from", "any"],
  ["q_to", "q to", "any"], ["context_from", "Context from", "1"], ["context_to", "Context to", "1"],
]);

export class FilterForm {
  /** @param {(fields: { [name: string]: string }) => void} go */
  constructor(go) {
    this.go = go;
    this.names = el("datalist", { id: "app-debug-categories" });
    this.inputs = new Map(FILTERS.map(([name, label, step]) => [name, el("input", {
      type: step ? "number" : "text", step, min: step ? 0 : null, maxlength: step ? null : 200, "aria-label": label,
      list: name === "category" ? "app-debug-categories" : null, autocomplete: "off", spellcheck: "false",
    })]));
    const fields = FILTERS.map(([name, label]) =>
      el("label", { class: "app-debug-field" }, el("span", {}, label), this.inputs.get(name) ?? ""));
    this.filters = el("form", { class: "app-debug-fields" }, ...fields, this.names,
      el("button", { type: "submit", class: "app-button" }, "Apply"),
      el("button", { type: "button", class: "app-button", onclick: () => this.clear() }, "Clear"));
    this.filters.addEventListener("submit", (event) => {
      event.preventDefault();
      this.apply();
    });
    this.sql = el("textarea", { class: "ss-mono", rows: 6, maxlength: 4000, spellcheck: "false", "aria-label": "SQL query" });
    this.sql.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.run();
    });
    this.refused = el("p", { class: "app-debug-notice", role: "alert", hidden: true });
    this.state = el("span", { class: "ss-quiet" });
    this.filterBox = el("details", { class: "app-debug-box" }, el("summary", {}, "Filters"), this.filters);
    this.sqlBox = el("details", { class: "app-debug-box" }, el("summary", {}, "SQL"),
      el("p", { class: "ss-quiet" }, "One SELECT over the tables runs, steps and nodes. A query that returns the columns run and " +
        "step chooses the steps of all charts; the result of any other query is shown as a table."),
      this.sql, this.refused,
      el("div", { class: "app-tools" }, el("button", { type: "button", class: "app-button", onclick: () => this.run() }, "Run query"),
        el("button", { type: "button", class: "app-button", onclick: () => this.go({ sql: "" }) }, "Back to the filters"), this.state));
    this.node = el("div", { class: "app-debug-ask" }, this.filterBox, this.sqlBox);
  }

  /** @param {Opened} opened */
  show({ filters = {}, sql = "", edited = false, refused = "", facts }) {
    for (const [name, input] of this.inputs) input.value = String(filters[name] ?? "");
    this.names.replaceChildren(...(facts?.categories ?? []).map((value) => el("option", { value })));
    this.sql.value = sql;
    write(this.state, edited ? "This query takes the place of the filters." : "Written by the filters.");
    this.refuse(refused);
    if (edited) this.sqlBox.open = true;
    const used = [...this.inputs.keys()].filter((name) => filters[name] !== undefined).length;
    if (used) this.filterBox.open = true;
    write(/** @type {HTMLElement} */ (this.filterBox.firstElementChild), used ? `Filters (${used})` : "Filters");
  }

  /** @param {string} sentence why the query cannot be run; it stays, for correction */
  refuse(sentence) {
    write(this.refused, sentence);
    this.refused.hidden = !sentence;
    if (!sentence) return;
    this.sqlBox.open = true;
    write(this.state, "This query was not run.");
  }

  apply() {
    const fields = [...this.inputs].map(([name, { value }]) => [`f.${name}`, value]);
    this.go({ ...Object.fromEntries(fields), sql: "" });
  }

  clear() {
    this.go({ ...Object.fromEntries([...this.inputs.keys()].map((name) => [`f.${name}`, ""])), sql: "" });
  }

  run() {
    this.go({ sql: this.sql.value });
  }
}
