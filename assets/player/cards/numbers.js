// Views of plain numbers: counters with their formulas, and the outcome of the lossless check.
import { el, show, write } from "../dom/elements.js";
import { isJudged } from "../stream/fates.js";
import { explained } from "../text/tooltip.js";

/** @import { Player } from "../player.js" */
/** @import { Check, CheckedPlace, NumberRow, View } from "../types.d.ts" */

/**
 * @param {NumberRow} row
 * @param {string | number | null | undefined} value
 */
const formatted = (row, value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "not known";
  if (typeof value !== "number") return String(value);
  return `${(value * (row.scale ?? 1)).toFixed(row.digits ?? 2)}${row.unit ?? ""}`;
};

export class NumbersView {
  /**
   * @param {Player} player
   * @param {View} view
   */
  constructor(player, view) {
    this.player = player;
    this.view = view;
    this.list = el("dl", { class: "ss-numbers" });
    this.say = el("p", { class: "ss-verdict" });
    this.places = el("ul", { class: "ss-places" });
    this.box = el("div", { class: "ss-figure ss-numeric" }, this.say, this.list, this.places);
    this.rows = (view.base.rows ?? []).map((row) => this.row(row));
    this.list.append(...this.rows.map(({ node }) => node));
    this.drawn = "";
  }

  /** @param {NumberRow} row */
  row(row) {
    const value = el("dd", {});
    const bars = row.parts || row.first; // which keep their room where nothing is known yet
    const unit = bars && row.unit ? `, in ${row.unit.trim()}` : ""; // there is no room for it above every bar
    const label = el("dt", { tabindex: 0 }, row.label + unit);
    explained(label, this.player, () => row.formula);
    return { row, value, node: el("div", { class: bars ? "ss-number ss-wide" : "ss-number" }, label, value) };
  }

  values() {
    const { record } = this.player;
    const patch = record.steps[this.step]?.views?.[this.view.name];
    /** @type {{ [key: string]: string | number | null | undefined }} known once the run has ended */
    const ofRun = { speedup: record.speedup, bandwidth: record.end?.bandwidth };
    return (this.view.base.rows ?? []).map(({ key = "" }, i) =>
      (Object.hasOwn(ofRun, key) ? ofRun[key] : patch?.values?.[i]) ?? null);
  }

  // A step is counted when its guesses are judged.
  get step() {
    const { state } = this.player;
    return state.step - Number(!isJudged(state));
  }

  draw() {
    const { record } = this.player;
    const { thin } = record.steps[this.step] ?? {};
    const wanted = [record.version, this.step, record.speedup, record.end?.bandwidth, record.check?.say, thin].join("|");
    if (this.drawn === wanted) return true;
    this.drawn = wanted;
    const values = this.values();
    this.rows.forEach(({ row, value }, i) => {
      const number = values[i];
      if (Array.isArray(number)) drawBars(value, row, number);
      else value.replaceChildren(formatted(row, number));
      value.classList.toggle("ss-sentence", typeof number === "string" && number.endsWith(".")); // why there is no number
    });
    this.drawCheck();
    return true;
  }

  drawCheck() {
    const { record } = this.player;
    /** @type {Check} */
    const outcome = "say" in this.view.base ? (record.check ?? this.view.base) : {};
    write(this.say, outcome.say ?? "");
    show(this.say, Boolean(outcome.say));
    this.say.dataset.tone = outcome.tone ?? "";
    this.places.replaceChildren(...(outcome.places ?? []).map((place) => this.place(place)));
  }

  /** @param {CheckedPlace} place */
  place({ position, token, choice, margin }) {
    const { record } = this.player;
    const words = `Token ${position}: ${record.visible(token)}, the target's choice ${record.visible(choice)}, `
      + `margin ${margin.toPrecision(2)}`;
    return el("li", {}, el("button", {
      type: "button", class: "ss-button ss-worded", onclick: () => this.player.seekToken(position),
    }, words));
  }

  // Headings and rows, for "show as table".
  table() {
    const rows = (this.view.base.rows ?? []).map((row, i) => {
      const value = this.values()[i];
      return [row.label, [value].flat().map((each) => formatted(row, each)).join("; "), row.formula];
    });
    if (!rows.length) rows.push(["Check", this.say.textContent, this.view.look_for]);
    return { headings: ["Number", "Value", "Formula"], rows };
  }

  close() {
    this.drawn = "";
  }
}

/**
 * Draw some numbers of one kind: each a small bar between its value and its name.
 * @param {HTMLElement} node
 * @param {NumberRow} row
 * @param {number[]} values
 */
const drawBars = (node, row, values) => {
  const most = Math.max(...values, 1e-9);
  node.replaceChildren(el("div", { class: row.parts ? "ss-bars ss-named" : "ss-bars" }, ...values.map((value, i) => {
    const bar = el("i", {});
    bar.style.height = `${Math.round((Math.max(0, value) / most) * 100)}%`;
    const text = (value * (row.scale ?? 1)).toFixed((row.scale ?? 1) > 1 ? 0 : row.digits);
    const name = row.parts?.[i] ?? (row.first === undefined ? "" : String(row.first + i));
    return el("span", { title: `${name}: ${formatted(row, value)}` }, el("b", {}, text, bar), name);
  })));
};
