// The Debug tab: run folders with filters and SQL, their metrics as cards, and the steps that every bar counts.
import { copyLink } from "../../player/controls/save.js";
import { button } from "../../player/dom/buttons.js";
import { el, write } from "../../player/dom/elements.js";
import { addressOf, asked, write as writeAddress } from "../address.js";
import { answerOf } from "../answers.js";
import { base64, save } from "../files.js";
import { onceInSight, showInPlayer, untilSeen } from "../show_in_player.js";
import { shown } from "../shown.js";
import { linesIn } from "../streams.js";
import { ChartCards } from "./cards.js";
import { Chooser } from "./chooser.js";
import { FilterForm } from "./filters.js";
import { showSteps } from "./steps.js";
import { count, plainTable } from "./table.js";

/** @import { Behind, DebugIo, Opened } from "./types.d.ts" */

const ABOUT = "What a drafter did over many prompts. Every bar, cell and row opens its steps. Run folders, traces and other " +
  "engines' records can be dropped anywhere.";
const QUESTIONS = { key: "questions", title: "Every question", group: "A against B", chart: "table",
  formula: "tokens written / steps of every question, in A and in B", look_for: "The questions that lost most come first." };
const COMPARED = { key: "compared", title: "Difference, question by question", group: "A against B", chart: "table",
  formula: "B - A over the questions that both have; intervals by resampling questions",
  look_for: "Filled marks are beyond noise, all positions and categories tested together." };

export class Debug {
  /**
   * @param {HTMLElement} element
   * @param {DebugIo} io
   */
  constructor(element, { props, server }) {
    this.server = server;
    this.largest = props.largest;
    this.address = "screen=debug";
    this.filtered = ""; // the last address without a query
    /** @type {Opened} */
    this.opened = { folders: [] };
    this.asks = 0; // how many times an address was asked for: an answer to an earlier one is not shown
    this.gone = new AbortController();
    this.scrolled = 0; // where the page was left for the player
    /** @type {HTMLDialogElement | null} the list that it was left from */
    this.list = null;
    /** @type {Element | null} what that list was opened with */
    this.opener = null;
    this.chooser = new Chooser((fields) => this.go(fields), (files) => this.bring(files),
      (form) => this.download(form), () => copyLink(this));
    this.filters = new FilterForm((fields) => this.go(fields));
    this.sentence = el("span", { role: "alert" });
    this.notice = el("div", { class: "app-debug-notice", hidden: true }, this.sentence,
      button("close", "Close", () => {
        this.say("");
        this.root.querySelector("select")?.focus(); // the button that had it is gone
      }));
    this.says = el("p", { class: "ss-verdict", hidden: true });
    this.count = el("p", { class: "app-debug-count", "aria-live": "polite" }, "Opening a run folder");
    this.table = el("div", { class: "app-debug-answer" });
    this.cards = new ChartCards({
      ask: (key) => this.server.debug_chart([this.address, key]), behind: (behind) => this.behind(behind),
      link: (key) => this.linkTo(key), live: props.live, signal: this.gone.signal,
    });
    this.root = el("div", { class: "ss ss-debug" }, el("p", { class: "ss-quiet app-debug-about" }, ABOUT), this.chooser.node, this.notice, this.says, this.filters.node,
      this.count, this.table, this.cards.node);
    element.replaceChildren(this.root);
    this.on = { link: () => addressOf(this.address) };
    this.themed = new MutationObserver(() => this.paint());
    this.themed.observe(document.body, { attributeFilter: ["class"] });
    onceInSight(this.root, () => this.load(asked().get("screen") === "debug" ? location.search : this.address));
    this.sized = new ResizeObserver(() => this.cards.resized());
    this.sized.observe(this.root);
  }

  get theme() {
    return document.body.classList.contains("dark") ? "dark" : "light";
  }

  /** @param {string} key of a chart */
  linkTo(key) {
    const query = new URLSearchParams(this.address);
    query.set("chart", key);
    return addressOf(String(query));
  }

  // The interface that `copyLink` needs: the whole tab is one place.
  place() {
    return null;
  }

  /** @param {string} words */
  announce(words) {
    this.chooser.announce(words);
  }

  /** @param {string} sentence */
  say(sentence) {
    write(this.sentence, sentence);
    this.notice.hidden = !sentence;
  }

  paint() {
    const colours = this.opened.themes?.[this.theme] ?? {};
    for (const [name, colour] of Object.entries(colours)) this.root.style.setProperty(`--ss-${name}`, colour);
    this.cards.paint(colours);
  }

  /**
   * Fields of the address change: empty ones are left out of it, and the chart that it pointed to.
   * @param {{ [name: string]: string }} fields
   */
  go(fields) {
    const query = fields.sql === "" ? this.withFilters() : new URLSearchParams(this.address);
    query.delete("chart");
    if (fields.sql) for (const name of [...query.keys()]) if (name.startsWith("f.")) query.delete(name);
    for (const [name, value] of Object.entries(fields)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    return this.load(String(query), true);
  }

  /** The address with the filters that its query took the place of. */
  withFilters() {
    const query = new URLSearchParams(this.address), before = new URLSearchParams(this.filtered);
    const same = (/** @type {string} */ name) => query.get(name) === before.get(name);
    for (const [name, value] of before) {
      if (same("folder") && (name.startsWith("f.") || (name.startsWith("b.") && same("against")))) query.set(name, value);
    }
    return query;
  }

  /**
   * @param {string} query
   * @param {boolean} [another] whether it is another entry of the browser's history
   */
  async load(query, another = false) {
    this.asks += 1;
    const { asks } = this;
    this.root.setAttribute("aria-busy", "true");
    const answer = await this.ask(() => this.server.debug_open(query));
    if (asks !== this.asks) return;
    this.root.removeAttribute("aria-busy");
    if (!answer) return this.failed();
    if (answer.refused && this.opened.facts && another) return this.refuse(answer.refused); // for correction
    this.opened = answer;
    this.address = answer.address ?? "screen=debug";
    if (!answer.edited) this.filtered = this.address;
    this.root.dataset.address = this.address;
    if (this.root.offsetParent && asked().get("screen") === "debug") writeAddress(addressOf(this.address), another);
    this.show();
    return undefined;
  }

  // The earlier view stays.
  failed() {
    if (this.opened.facts) this.chooser.show(this.opened);
    else this.count.replaceChildren();
  }

  /** @param {string} sentence why the query was not run */
  refuse(sentence) {
    this.say("");
    this.chooser.show(this.opened);
    this.filters.refuse(sentence);
  }

  show() {
    const { opened } = this;
    this.say(opened.notice ?? "");
    this.chooser.show(opened);
    this.filters.show(opened);
    this.showCount();
    this.says.hidden = true;
    this.table.replaceChildren(...(opened.table ? [plainTable(opened.table, "The query's answer")] : []));
    const charts = opened.chosen === undefined ? [] : (opened.charts ?? []);
    this.cards.show(opened.against && charts.length ? [COMPARED, QUESTIONS, ...charts] : charts, opened.chart ?? "");
    this.paint();
    if (charts.length) this.conclude();
  }

  // How much was chosen.
  showCount() {
    const { chosen, against_chosen: other, facts, table } = this.opened;
    const whole = facts ? ` of ${count(facts.steps, "step")}` : "";
    const words = table ? (table.more ? `The first ${count(table.rows.length, "row")}` : count(table.rows.length, "row")) :
      chosen === undefined ? "" : `${chosen.toLocaleString("en")}${whole} chosen` +
        (other === undefined ? "" : `, ${other.toLocaleString("en")} to compare with`);
    const list = chosen ? [el("button", { type: "button", class: "ss-button ss-worded",
      onclick: () => this.behind({ key: "", title: "Chosen steps", row: -1, second: false }) }, "List them")] : [];
    this.count.replaceChildren(words, ...list);
  }

  // Above all charts: the difference between two selections, or the result of one, the main thing first.
  async conclude() {
    const { asks } = this;
    const key = this.opened.against ? COMPARED.key : "speedup";
    const answer = await this.server.debug_chart([this.address, key]).catch(() => null);
    const [result] = answer?.results ?? [];
    if (asks !== this.asks || !result) return;
    const [, first = "", rest = ""] = /^(.*?[.])(?= |$)(.*)$/s.exec(result.sentence) ?? [];
    this.says.replaceChildren(el("strong", {}, first), rest);
    this.says.hidden = Boolean(result.reason) || !first;
  }

  /** @param {Behind} behind */
  behind(behind) {
    const { address, opened: { folder = "", against = "", names = [] } } = this;
    const both = behind.key === COMPARED.key || behind.key === QUESTIONS.key; // their rows are of both selections
    this.list?.remove();
    this.opener = document.activeElement;
    this.list = showSteps(this.root, behind.title, both ? names : [], behind.second, {
      steps: (second, offset, say) =>
        this.ask(() => this.server.debug_steps([address, behind.key, behind.row, second, offset]), say),
      run: ({ run, step }, second, say) =>
        this.ask(() => this.server.debug_play([second ? against : folder, run, step]), say),
      play: (lines, run, step) => this.play(lines, run, step),
    });
  }

  /**
   * A step in the player, on the page of runs.
   * @param {string} lines
   * @param {string} run
   * @param {number} step
   */
  async play(lines, run, step) {
    this.scrolled = scrollY;
    await showInPlayer(linesIn(lines), run, step);
  }

  /** @param {File[]} files */
  async bring(files) {
    if (!files.length) return;
    if (files.reduce((sum, { size }) => sum + size, 0) > this.largest) {
      this.say(`The files are larger than ${Math.round(this.largest / 2 ** 20)} MB: open a smaller run folder.`);
      return;
    }
    const contents = await Promise.all(files.map(async (file) => [file.name, await base64(file)]));
    const answer = await this.ask(() => this.server.debug_bring(contents.flat()));
    if (answer?.folder) await this.load(`screen=debug&folder=${answer.folder}`, true);
  }

  /** @param {string} form */
  async download(form) {
    const answer = await this.ask(() => this.server.debug_export([this.address, form]));
    if (answer) save(answer);
  }

  // Back or forward: what the address names is shown again, and the list from which a step was played.
  async returned() {
    if (addressOf(this.address) !== location.href) return this.load(location.search);
    await untilSeen(this.root);
    if (!this.list?.isConnected || this.list.open) return undefined;
    scrollTo({ top: this.scrolled });
    if (this.opener instanceof HTMLElement) this.opener.focus({ preventScroll: true }); // where keys go on after the list
    return this.list.showModal();
  }

  /**
   * An answer of the server, or null after its sentence has been shown.
   * @template {{ fault?: string }} T
   * @param {() => Promise<T | null>} call
   * @param {(sentence: string) => void} [say]
   */
  ask(call, say = (sentence) => this.say(sentence)) {
    return answerOf(call, say);
  }

  destroy() {
    this.asks += 1;
    this.gone.abort();
    this.themed.disconnect();
    this.sized.disconnect();
    this.cards.destroy();
  }
}

/**
 * @param {HTMLElement} element
 * @param {DebugIo} io
 */
export const showDebug = (element, io) => {
  shown.debug?.destroy();
  shown.debug = new Debug(element, io);
};
