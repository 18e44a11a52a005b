// The metrics as cards: each is requested when it comes into view.
import { copyLink } from "../../player/controls/save.js";
import { button } from "../../player/dom/buttons.js";
import { dialog } from "../../player/dom/dialog.js";
import { el, write } from "../../player/dom/elements.js";
import { DrawnFigure } from "./drawing.js";
import { IDS, cellText, measuredText, metricText, plainTable } from "./table.js";

/** @import { CardIo, ChartFacts, Measured, Result } from "./types.d.ts" */

const AT_ONCE = 2; // questions to the server
const ROWS = 8; // of a table in a card
const STATUS_MS = 3000; // that a card says what was done
const PAIRED = ["to", "target said"]; // columns that a row is not named without

/** @param {Result} result */
const numberOf = ({ value, low, high, unit }) => {
  if (value === null) return null;
  const words = measuredText({ value, low, high, unit });
  return el("p", { class: "app-debug-value" }, el("strong", {}, words.number),
    el("span", { class: "ss-quiet" }, ` ${words.unit}${words.interval ? ` (95%: ${words.interval})` : ""}`));
};

/**
 * Return the name of a result's row: its first column, with the second if it takes two.
 * @param {ChartFacts} facts
 * @param {Result} result
 * @param {number} row
 */
const nameOf = ({ chart }, { columns, rows }, row) => {
  const cells = rows[row] ?? [];
  if (columns[0] === "of") return cells[0] === "all" ? cellText(cells[1]) : `${cells[0]} ${cellText(cells[1])}`;
  const two = chart === "heat" || PAIRED.includes(columns[1]);
  return columns.slice(0, two ? 2 : 1).map((name, place) => `${name} ${cellText(cells[place])}`).join(", ");
};

class ChartCard {
  /**
   * @param {ChartFacts} facts
   * @param {CardIo} io
   */
  constructor(facts, io) {
    this.facts = facts;
    this.io = io;
    /** @type {Measured | null} */
    this.measured = null;
    /** @type {{ [name: string]: string }} */
    this.colours = {};
    this.figure = new DrawnFigure(facts.title, (row, second) => this.behind(row, second), (row, second) => this.says(row, second));
    this.body = el("div", { class: "app-debug-body" }, el("p", { class: "ss-quiet" }, "Computing"));
    this.status = el("span", { class: "ss-quiet app-debug-status", role: "status" });
    this.tableButton = button("table", `${facts.title} as a table`, () => this.showTable());
    const head = el("div", { class: "ss-card-head" }, el("h3", {}, facts.title), el("div", { class: "ss-card-buttons" },
      this.status, button("link", `Copy a link to ${facts.title}`, () => this.copy()),
      button("info", `How ${facts.title} is computed`, () => this.explain()), this.tableButton));
    this.node = el("section", { class: "ss-card app-debug-card", tabindex: -1, "data-key": facts.key, "aria-label": facts.title },
      head, el("p", { class: "ss-look", title: facts.formula }, facts.look_for), this.body);
  }

  async load() {
    const answer = await this.io.ask(this.facts.key).catch(() => null);
    this.measured = answer?.fault ? null : answer;
    if (this.measured) this.draw();
    else this.refuse(answer?.fault ?? "The server gave no answer.", true);
  }

  /**
   * @param {string} reason
   * @param {boolean} [again] whether another attempt may end otherwise
   */
  refuse(reason, again = false) {
    this.node.classList.add("app-debug-lacking");
    this.tableButton.hidden = true;
    const retry = again ? el("button", { type: "button", class: "ss-button ss-worded app-debug-retry",
      onclick: () => this.load() }, "Try again") : null;
    this.body.replaceChildren(el("p", {}, sentence(reason)), ...(retry ? [retry] : []));
  }

  draw() {
    const { results, names, figure } = /** @type {Measured} */ (this.measured);
    const known = results.filter(({ reason }) => reason === null);
    if (!known.length) return this.refuse(results[0].reason ?? "");
    const parts = results.flatMap((result, place) => this.part(result, results.length > 1 ? names[place] : ""));
    if (figure) parts.splice(0, 0, this.figure.node);
    this.node.classList.remove("app-debug-lacking");
    this.body.replaceChildren(...parts);
    this.tableButton.hidden = !known.some(({ rows }) => rows.length);
    this.paint(this.colours);
    return undefined;
  }

  /**
   * Show the result of one selection: its number, its sentence and, if no figure shows them, its first rows.
   * @param {Result} result
   * @param {string} name
   */
  part(result, name) {
    if (result.reason !== null) return [el("p", { class: "ss-quiet" }, `${name}: ${result.reason}.`)];
    const title = name ? el("p", { class: "app-debug-side" }, name) : null;
    const said = el("p", { class: "app-debug-says" }, result.sentence);
    const alone = !this.measured?.figure && this.facts.chart !== "number" && result.rows.length > 0;
    const table = alone ? [this.rows(result, ROWS, name)] : [];
    const run = result.run && this.io.live ? el("p", {}, el("a", { class: "ss-button ss-worded", href: `?${result.run}` },
      "Open a run with these settings")) : null;
    return [title, numberOf(result), said, run, ...table].filter((each) => each !== null);
  }

  /**
   * @param {Result} result
   * @param {number} most
   * @param {string} name
   */
  rows(result, most, name) {
    const second = this.measured?.results.indexOf(result) === 1;
    const kept = result.columns.map((_, place) => place).filter((place) => most === Infinity || !IDS.has(result.columns[place])); // a card is narrow
    const columns = kept.map((place) => result.columns[place]);
    const rows = result.rows.slice(0, most).map((cells) => kept.map((place) => cells[place]));
    const more = result.more > 0 || rows.length < result.rows.length;
    return plainTable({ columns, rows, more }, `Rows of ${this.facts.title}${name && `, ${name}`}`,
      (row) => this.behind(row, second), (place, value) => metricText(columns, place, value));
  }

  /**
   * @param {number} row
   * @param {boolean} second
   */
  behind(row, second) {
    const { facts: { key, title }, measured } = this;
    const result = measured?.results[second ? 1 : 0];
    if (!result) return;
    this.io.behind({ key, row, second, title: `${title}: ${nameOf(this.facts, result, row)}` });
  }

  /**
   * A point in words.
   * @param {number} row
   * @param {boolean} second
   */
  says(row, second) {
    const { results = [], names = [] } = this.measured ?? {};
    const result = results[second ? 1 : 0];
    const of = results.length > 1 ? `${names[second ? 1 : 0]}: ` : "";
    return of + result.columns.map((name, place) => `${name} ${metricText(result.columns, place, result.rows[row]?.[place] ?? null)}`).join(", ");
  }

  copy() {
    copyLink({ on: { link: () => this.io.link(this.facts.key) }, root: this.node, place: () => null,
      announce: (words) => this.announce(words) });
  }

  /** @param {string} words */
  announce(words) {
    write(this.status, words);
    setTimeout(() => write(this.status, ""), STATUS_MS);
  }

  explain() {
    const { title, formula, look_for: look } = this.facts;
    this.pop(title, el("p", {}, sentence(formula)), el("p", { class: "ss-quiet" }, look));
  }

  showTable() {
    if (!this.measured) return;
    const { results, names } = this.measured;
    const tables = results.filter(({ reason }) => reason === null).flatMap((result) => {
      const name = results.length > 1 ? names[results.indexOf(result)] : "";
      return [name ? el("h3", {}, name) : null, this.rows(result, Infinity, name)];
    });
    this.pop(this.facts.title, ...tables);
  }

  /**
   * @param {string} title
   * @param {...(Node | null)} content
   */
  pop(title, ...content) {
    const box = dialog(title, el("div", { class: "ss-contents" }, ...content));
    box.addEventListener("close", () => box.remove());
    box.addEventListener("click", ({ target }) => {
      if (target instanceof Element && target.closest(".app-debug-opens tbody tr")) box.close(); // its steps are shown instead
    });
    this.node.append(box);
    box.showModal();
  }

  /** @param {{ [name: string]: string }} colours */
  paint(colours) {
    this.colours = colours;
    if (this.measured?.figure && this.figure.node.isConnected) this.figure.draw(this.measured.figure, colours);
  }

  destroy() {
    this.figure.destroy();
  }
}

/**
 * With a capital letter, unless a name such as vLLM comes first, and a full stop.
 * @param {string} text
 */
const sentence = (text) => (text ? `${text.replace(/^[a-z]+(?!\w|\.\w)/, (word) => word[0].toUpperCase() + word.slice(1)).replace(/\.$/, "")}.` : "");

export class ChartCards {
  /** @param {CardIo} io */
  constructor(io) {
    this.io = io;
    this.node = el("div", { class: "app-debug-groups" });
    /** @type {ChartCard[]} */
    this.cards = [];
    /** @type {ChartCard[]} those in sight that wait for their turn */
    this.waiting = [];
    this.asking = 0;
    /** @type {ChartCard | null} the one that an address points to, until the visitor goes elsewhere */
    this.linked = null;
    /** @type {{ [name: string]: string }} */
    this.colours = {};
    this.width = 0;
    for (const name of ["wheel", "touchstart", "pointerdown", "keydown"]) {
      addEventListener(name, () => { this.linked = null; }, { passive: true, signal: io.signal });
    }
    this.seen = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        const card = this.cards.find(({ node }) => node === target);
        if (!isIntersecting || !card) continue;
        this.seen.unobserve(target);
        this.waiting.push(card);
      }
      this.next();
    }, { rootMargin: "200px" });
  }

  /**
   * @param {ChartFacts[]} charts
   * @param {string} chosen the one that an address points to
   */
  show(charts, chosen) {
    this.clear();
    this.cards = charts.map((facts) => new ChartCard(facts, this.io));
    const groups = [...new Set(charts.map(({ group }) => group))];
    this.node.replaceChildren(...groups.map((group) => {
      const own = this.cards.filter(({ facts }) => facts.group === group);
      const numbers = own.filter(({ facts }) => facts.chart === "number"); // low, and so in a row of their own
      const rows = [numbers, own.filter((card) => !numbers.includes(card))].filter(({ length }) => length);
      return el("section", { class: "app-debug-group" }, el("h2", {}, group),
        ...rows.map((cards) => el("div", { class: "ss-grid" }, ...cards.map(({ node }) => node))));
    }));
    for (const card of this.cards) this.seen.observe(card.node);
    this.linked = this.cards.find(({ facts }) => facts.key === chosen) ?? null;
    this.linked?.node.focus({ preventScroll: true });
    this.keepInSight();
  }

  // Cards above it grow once they are drawn.
  keepInSight() {
    this.linked?.node.scrollIntoView({ block: "center" });
  }

  async next() {
    while (this.asking < AT_ONCE && this.waiting.length) {
      const card = /** @type {ChartCard} */ (this.waiting.shift());
      this.asking += 1;
      card.paint(this.colours);
      card.load().finally(() => {
        this.asking -= 1;
        this.keepInSight();
        this.next();
      });
    }
  }

  /** @param {{ [name: string]: string }} colours */
  paint(colours) {
    this.colours = colours;
    for (const card of this.cards) card.paint(colours);
  }

  resized() {
    const { clientWidth } = this.node;
    if (clientWidth === this.width || !clientWidth) return;
    this.width = clientWidth;
    this.paint(this.colours);
  }

  clear() {
    this.seen.disconnect();
    this.waiting = [];
    for (const card of this.cards) card.destroy();
  }

  destroy() {
    this.clear();
    this.cards = [];
  }
}
