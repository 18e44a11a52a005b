// The views: each in a card that can be opened, closed, shown as a table, filled to the screen and saved.
import { Card } from "./card.js";
import { unfill } from "../controls/full_screen.js";
import { el, prefersCalm } from "../dom/elements.js";

/** @import { Player } from "../player.js" */
/** @import { View } from "../types.d.ts" */

const REST_MS = 500; // between two drawings of a live run's charts
const FRAME = 34; // pixels of a card around its figure
const PATIENCE_MS = 1000; // the same while no later step comes

export class Cards {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    /** @type {Map<string, Card>} those of the open views, by their names */
    this.cards = new Map();
    /** @type {View[] | null} all but the text */
    this.views = null;
    this.built = ""; // the views that the cards were built for, as JSON
    /** @type {Map<string, HTMLButtonElement>} */
    this.buttons = new Map();
    this.waiting = false; // whether charts are still to be drawn for the first time
    this.drew = 0; // when the charts were drawn last, and up to which step
    this.upto = 0;
    /** @type {number | undefined} a timer */
    this.rested = undefined;
    this.tabs = el("div", { class: "ss-tabs", role: "group", "aria-label": "Views" });
    this.grid = el("div", { class: "ss-grid" });
    this.version = -1;
    this.seen = new IntersectionObserver((entries) => this.scrolled(entries), { rootMargin: "120px" });
    this.sized = new ResizeObserver(() => this.resized());
  }

  /** @param {Set<string>} changed */
  update(changed) {
    const { player } = this;
    const { record, state } = player;
    if (record.fault && !record.play) this.clear();
    if (["open", "narrow", "full", "view", "record", "asking"].some((name) => changed.has(name))) this.prepare();
    if (!record.play || state.step < 0) return;
    const marksOnly = [...changed].every((name) => name === "hover");
    this.waiting = false;
    const resting = this.rest();
    let first = true;
    for (const card of this.cards.values()) {
      if (!card.onScreen || (resting && card.plot)) continue;
      const { fresh } = card; // one in a frame, so that the page stays awake
      if (fresh && !first) {
        this.waiting = true;
        continue;
      }
      if (fresh) first = false;
      if (marksOnly && card.plot) card.plot.marks.draw();
      else if (card.ready() && !card.content.draw()) player.waitForPlotly();
    }
    if (this.waiting) this.resized();
    if (!resting && !marksOnly && !this.waiting) {
      [this.drew, this.upto] = [performance.now(), record.last];
    }
  }

  // The cards of a run, without their pictures.
  prepare() {
    const { record } = this.player;
    if (record.play && this.version !== record.version) this.build();
    this.arrange();
  }

  // None is open until the visitor opens it. Another run with the same views finds its cards as they were left, and
  // nothing on the page moves.
  build() {
    const { record } = this.player;
    const given = JSON.stringify(record.views);
    this.version = record.version;
    [this.drew, this.upto] = [performance.now(), 0]; // the first step comes with the run
    if (this.views && given === this.built) return;
    this.clear();
    this.built = given;
    this.views = record.views.filter((view) => view.kind !== "text" && view.kind !== "stage");
    this.buttons = new Map(this.views.map((view) => [view.name, this.tab(view)]));
    this.tabs.replaceChildren(el("span", { class: "ss-quiet", "aria-hidden": "true" }, "More views"),
      ...this.buttons.values());
    const { state } = this.player;
    state.open = new Set([...state.open].filter((name) => this.buttons.has(name)));
    if (!this.buttons.has(state.view ?? "")) state.view = null;
  }

  /**
   * Return the key that opens a view: its position among those that are offered.
   * @param {View} view
   */
  key(view) {
    return String((this.views ?? []).indexOf(view) + 1);
  }

  /** @param {View} view */
  tab(view) {
    return el("button", {
      type: "button", class: "ss-tab", title: view.look_for, onclick: () => this.press(view.name),
    }, el("kbd", { "aria-hidden": "true" }, this.key(view)), view.label);
  }

  /** @param {string} name */
  press(name) {
    if (this.isShown(name)) this.toggle(name, false);
    else this.goto(name);
  }

  /**
   * @param {string} name
   * @param {boolean} wanted
   */
  toggle(name, wanted) {
    const { state } = this.player;
    const open = new Set(state.open);
    if (wanted) open.add(name);
    else open.delete(name);
    const left = state.view === name ? null : state.view;
    this.player.change({ open, view: wanted ? name : left });
  }

  /**
   * Open a view and bring it to the eye. On the full screen it takes the stage's place, and gives it back.
   * @param {string} name
   */
  goto(name) {
    if (this.buttons.get(name)?.disabled !== false) return;
    if (this.player.state.full && this.isShown(name)) {
      this.toggle(name, false);
      return;
    }
    this.toggle(name, true);
    this.reveal(name)?.focus({ preventScroll: true });
  }

  /**
   * Scroll to an open view.
   * @param {string} name
   */
  reveal(name) {
    this.player.flush();
    const node = this.cards.get(name)?.node;
    node?.scrollIntoView({ block: "nearest", behavior: prefersCalm() ? "auto" : "smooth" });
    return node;
  }

  shown() {
    const { state } = this.player;
    const views = (this.views ?? []).filter(({ name }) => !this.isKeptBack(name));
    if (state.narrow || state.full) return views.filter((view) => view.name === state.view);
    return views.filter((view) => state.open.has(view.name));
  }

  /**
   * Return true for the mask while a question is open: it says what each node sees.
   * @param {string} name
   */
  isKeptBack(name) {
    return this.player.state.asking && name === "mask";
  }

  /** @param {string} name */
  isShown(name) {
    return this.shown().some((view) => view.name === name);
  }

  arrange() {
    if (!this.views) return;
    const shown = new Set(this.shown().map((view) => view.name));
    for (const view of this.views) {
      const tab = this.buttons.get(view.name), kept = this.isKeptBack(view.name);
      tab?.setAttribute("aria-pressed", String(shown.has(view.name)));
      if (tab) Object.assign(tab, { disabled: kept, title: kept ? "Kept back until the question is answered" : view.look_for });
      const card = this.cards.get(view.name);
      if (shown.has(view.name) && !card) this.open(view);
      else if (!shown.has(view.name) && card) this.remove(view.name, card);
    }
  }

  /** @param {View} view */
  open(view) {
    const card = new Card(this.player, view);
    this.cards.set(view.name, card);
    const order = (this.views ?? []).map((each) => each.name);
    const next = order.slice(order.indexOf(view.name) + 1).find((name) => this.cards.has(name));
    this.grid.insertBefore(card.node, next === undefined ? null : this.cards.get(next)?.node ?? null);
    this.seen.observe(card.node);
    this.sized.observe(card.node);
  }

  /**
   * @param {string} name
   * @param {Card} card
   */
  remove(name, card) {
    card.close();
    unfill(card.node);
    this.seen.unobserve(card.node);
    this.sized.unobserve(card.node);
    card.node.remove();
    this.cards.delete(name);
  }

  /** @param {IntersectionObserverEntry[]} entries */
  scrolled(entries) {
    for (const { target, isIntersecting } of entries) {
      const card = this.cards.get(target.getAttribute("data-view") ?? "");
      if (card) card.onScreen = isIntersecting;
    }
    this.resized();
  }

  // A figure that is wider than its column is given all columns; on a narrow page its card scrolls.
  spread() {
    const columns = getComputedStyle(this.grid).gridTemplateColumns.split(" ").map(parseFloat);
    for (const { node, view } of this.cards.values()) {
      const wide = columns.length > 1 && Number(view.base.least ?? 0) + FRAME > columns[0];
      node.classList.toggle("ss-spread", wide);
    }
  }

  resized() {
    this.spread();
    this.player.change({ size: this.player.state.size + 1 });
  }

  // Charts of a live run that is followed are drawn some time after its text, with the text of later steps if there is
  // any: they cost more than anything else on the page, and every change of the page slows the run.
  rest() {
    const { record, state } = this.player;
    const left = this.drew + (record.last > this.upto ? REST_MS : PATIENCE_MS) - performance.now();
    if (!record.live || !state.follow || left <= 0) return false;
    clearTimeout(this.rested);
    this.rested = setTimeout(() => this.resized(), left);
    return true;
  }

  // Their pictures are of a run that is no longer shown.
  expire() {
    for (const { content } of this.cards.values()) content.box.classList.add("ss-past");
  }

  clear() {
    for (const [name, card] of [...this.cards]) this.remove(name, card);
    this.tabs.replaceChildren();
    this.views = null;
  }

  destroy() {
    this.clear();
    clearTimeout(this.rested);
    this.seen.disconnect();
    this.sized.disconnect();
  }
}
