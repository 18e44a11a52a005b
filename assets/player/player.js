// The player: one run on one page. It owns the state, and every change of it goes through `change`.
import { Cards } from "./cards/cards.js";
import { Frames } from "./charts/frames.js";
import { Legend } from "./charts/legend.js";
import { library } from "./charts/library.js";
import { Clock } from "./controls/clock.js";
import { leaveFullScreen } from "./controls/full_screen.js";
import { Help, listenToPlayerKeys } from "./controls/keys.js";
import { copyLink } from "./controls/save.js";
import { Transport } from "./controls/transport.js";
import { el } from "./dom/elements.js";
import { PHASES, isJudged } from "./stream/fates.js";
import { Fetcher } from "./stream/fetcher.js";
import { JUMPS, findStep } from "./stream/jumps.js";
import { RunRecord } from "./stream/record.js";
import { sameSpot, spot } from "./stream/spot.js";
import { Conclusion } from "./text/conclusion.js";
import { Detail } from "./text/detail.js";
import { Stage } from "./stage/stage.js";
import { Status } from "./text/status.js";
import { TextView } from "./text/text_view.js";
import { Tooltip } from "./text/tooltip.js";

/** @import { Jump } from "./stream/jumps.js" */
/** @import { AnyLine, Change, Host, Mover, Phase, Source, State, Wanted } from "./types.d.ts" */

const NARROW = 700;
const PLACE = ["step", "phase", "pin", "view"]; // the fields that `on.change` reports

/** @type {Pick<State, "step" | "phase" | "hover" | "pin" | "playing" | "follow" | "example" | "focus" | "zoom">} */
const BEGIN = {
  step: -1, phase: "commit", hover: null, pin: null, playing: false, follow: false, example: null, focus: [], zoom: [],
};

let made = 0;

export class Player {
  /**
   * @param {HTMLElement} element what it is drawn into
   * @param {{ source?: Source, on?: Host, follower?: boolean, small?: boolean }} [host] a follower has no keys
   * and no landmarks of its own; a small player is a name and a stage, of which up to six fit side by side
   */
  constructor(element, { source = {}, on = {}, follower = false, small = false } = {}) {
    made += 1;
    this.element = element;
    this.source = source;
    this.on = on;
    this.small = small;
    this.role = follower ? "group" : "region"; // of its parts: on a page with several players, those of one are landmarks
    this.number = made;
    this.destroyed = false;
    this.took = 0; // milliseconds of the last drawing
    /** @type {Wanted | null} where to go once the run is there */
    this.wanted = null;
    /** @type {number | undefined} a timer */
    this.waits = undefined;
    /** @type {number | undefined} a frame */
    this.request = undefined;
    this.record = new RunRecord();
    this.frames = new Frames(this.record);
    /** @type {Set<string>} */
    this.changed = new Set();
    /** @type {State} */
    this.state = {
      ...BEGIN, open: new Set(), view: null, facts: false, full: false, speed: "1", substeps: true, narrow: false,
      focused: -1, withheld: false, asking: false, glide: true, size: 0, // counts what may have changed the size of a card
    };
    /** @type {Phase} */
    this.phase = BEGIN.phase; // that was asked for; another is shown while what becomes of the step is withheld
    /** @type {Mover} who moves the player now */
    this.mover = "host";
    /** @type {Mover} */
    this.by = "host"; // who has moved it since it was drawn
    this.clock = new Clock(this);
    this.fetch = new Fetcher(this);
    this.tooltip = new Tooltip();
    this.detail = new Detail(this);
    this.text = new TextView(this);
    this.transport = new Transport(this);
    this.legend = new Legend(this);
    this.stage = new Stage(this);
    this.cards = new Cards(this);
    this.status = new Status(this);
    this.conclusion = new Conclusion(this);
    this.help = new Help(this);
    this.parts = [this.status, this.conclusion, this.transport, this.text, this.detail, this.stage, this.cards, this.legend]; // of the open cards
    this.root = this.build();
    this.element.replaceChildren(this.root);
    this.root.addEventListener("click", ({ target }) => {
      if (target instanceof Node && !this.transport.bar.contains(target)) this.transport.unfold(false);
    });
    for (const name of ["click", "keydown"]) this.root.addEventListener(name, ({ target }) => this.detail.pressed(target), true);
    this.root.classList.toggle("ss-follower", follower);
    this.root.classList.toggle("ss-small", small);
    this.unsubscribe = follower ? () => {} : listenToPlayerKeys(this);
    const bar = /** @type {HTMLElement} */ (this.transport.bar.parentElement);
    this.hidden = false;
    this.sized = new ResizeObserver(() => {
      const { clientWidth: width } = this.element, appears = this.hidden && width > 0;
      this.hidden = width === 0;
      if (this.hidden) return;
      this.root.style.setProperty("--ss-bar", `${bar.offsetHeight}px`); // the legend stays in sight below it
      const narrow = width < NARROW;
      if (narrow !== this.state.narrow || appears) this.change({ narrow }); // the text could not scroll while hidden
    });
    this.sized.observe(this.element);
    this.sized.observe(bar);
    this.themed = new MutationObserver(() => this.change({ theme: this.theme }));
    this.themed.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.change({ ...this.state, theme: this.theme, record: 0 });
    this.mover = "visitor";
  }

  build() {
    const words = el("div", { class: "ss-card ss-words", role: this.role, "aria-label": "Text" },
      this.text.node, this.status.textButtons());
    return el("div", { class: "ss", role: "group", "aria-label": "Player", tabindex: -1 },
      this.status.head,
      el("div", { class: "ss-sticky" }, this.transport.bar),
      this.status.slim, this.status.say, this.status.notice, this.conclusion.node,
      el("div", { class: "ss-body" }, words, this.stage.node, this.legend.node, this.cards.tabs, this.cards.grid,
        this.detail.node),
      this.help.strip, this.status.foot, this.tooltip.node, this.help.node);
  }

  get theme() {
    return document.body.classList.contains("dark") ? "dark" : "light";
  }

  /** @param {number} code */
  fate(code) {
    return this.record.play?.fates?.[code] ?? { label: "Unknown", words: "", colour: "$muted" };
  }

  /**
   * Change the state: there is no other way. Drawing waits for the next frame, so that only the last change counts.
   * @param {Change} values
   */
  change(values) {
    const { state } = this;
    this.phase = values.phase ?? this.phase;
    Object.assign(state, values);
    state.phase = state.withheld && isJudged(this) ? "answers" : this.phase;
    for (const name of Object.keys(values)) this.changed.add(name);
    if (this.by !== "visitor" && PLACE.some((name) => name in values)) this.by = this.mover;
    this.request ??= requestAnimationFrame(() => this.flush());
    if (values.playing) this.clock.start();
  }

  flush() {
    if (this.request !== undefined) cancelAnimationFrame(this.request);
    this.request = undefined;
    const changed = this.changed;
    this.changed = new Set();
    if (!changed.size || this.destroyed) return;
    const begin = performance.now();
    if (changed.has("theme") || changed.has("record")) this.paint();
    this.root.classList.toggle("ss-narrow", this.state.narrow);
    this.root.classList.toggle("ss-viewing", this.state.full && this.state.view !== null);
    this.fetch.thin();
    for (const part of this.parts) part.update(changed);
    if (["step", "phase", "record", "narrow", "full", "size"].some((name) => changed.has(name))) this.text.scroll();
    if (["pin", "full", "narrow"].some((name) => changed.has(name))) this.detail.avoid();
    const { step, phase } = this.state;
    this.root.dataset.at = `${step}/${phase}`;
    const by = PLACE.some((name) => changed.has(name)) && this.by;
    this.by = "run";
    if (by) this.on.change?.({ ...this.place(), by });
    this.took = performance.now() - begin;
  }

  // The theme's colours, for everything that is no chart.
  paint() {
    const colours = this.record.play?.themes?.[this.theme];
    for (const [name, colour] of Object.entries(colours ?? {})) this.root.style.setProperty(`--ss-${name}`, colour);
  }

  /**
   * Add new lines, or a text of them. A live run is followed until the visitor goes elsewhere in it.
   * @param {string | AnyLine[]} lines
   */
  feed(lines) {
    const before = this.record.last;
    const kinds = this.record.feed(lines);
    const { record } = this;
    if (kinds.has("play")) {
      this.frames.clear();
      this.moved("run", () => this.change({ ...BEGIN, follow: record.live }));
    }
    if (record.last >= 0 && this.state.step < 0) {
      if (!record.live) this.change({ step: 0 });
      this.goto(this.wanted ?? {});
    }
    const draw = () => this.moved("run", () => this.change(this.state.follow && record.last > this.state.step
      ? { record: record.last, step: record.last, phase: "commit" } : { record: record.last }));
    if (record.live && record.last > before && before >= 0) this.clock.look(draw);
    else draw();
    if (!record.live) this.state.follow = false;
  }

  /**
   * Note that the stream broke: nothing more will come.
   * @param {string} sentence
   */
  lose(sentence) {
    this.record.fail({ sentence });
    this.change({ record: this.record.last, follow: false });
  }

  reset() {
    this.clock.stop();
    this.record.reset();
    this.frames.clear();
    this.cards.expire();
    this.wanted = null;
    this.moved("host", () => this.change({ ...BEGIN, record: -1 }));
  }

  /**
   * @param {number} step
   * @param {Phase} [phase]
   * @param {boolean} [glide] whether tokens may be seen moving there
   */
  seek(step, phase = "commit", glide = true) {
    const { record } = this;
    if (record.last < 0 || !Number.isFinite(step)) return;
    const at = Math.min(Math.max(0, Math.trunc(step)), record.last);
    this.tooltip.hide();
    this.change({ step: at, phase, glide, playing: false, follow: false, hover: null });
  }

  /**
   * While a question is open, hide the run's end and length, what each node sees, and the outcome of the step, unless the
   * host shows that itself.
   * @param {boolean} withheld
   * @param {boolean} [asking]
   */
  withhold(withheld, asking = withheld) {
    this.moved("host", () => this.change({ withheld, asking, phase: this.phase }));
  }

  /** The step on the screen, in words. */
  get at() {
    const { record, state } = this;
    return `step ${state.step}${state.asking ? "" : ` of ${record.last}`}`;
  }

  /**
   * Act for another than the visitor.
   * @param {Mover} by
   * @param {() => void} act
   */
  moved(by, act) {
    const before = this.mover;
    this.mover = by;
    act();
    this.mover = before;
  }

  /** Return how many steps may be shown: not those ahead while phases are shown, nor this one before it is judged. */
  get told() {
    const { record, state, clock } = this;
    const whole = state.phase === "commit" && !(state.playing && clock.byPhases);
    return whole ? record.last + 1 : state.step + Number(isJudged(state));
  }

  /** @param {number} count */
  stepBy(count) {
    this.seek(this.state.step + count);
  }

  /**
   * Go one phase on or back, over the ends of steps.
   * @param {1 | -1} direction
   */
  sub(direction) {
    const at = PHASES.indexOf(this.state.phase) + direction;
    const { step } = this.state;
    if (at < 0 && step > 0) this.seek(step - 1, "commit");
    else if (at >= PHASES.length && step < this.record.last) this.seek(step + 1, "propose");
    else if (PHASES[at]) this.seek(step, PHASES[at]);
  }

  /**
   * @param {Jump} kind
   * @param {1 | -1} direction
   */
  jump(kind, direction) {
    const { record } = this;
    const at = findStep(record, this.state.step, direction, kind);
    if (at >= 0) this.seek(at, "commit");
    else this.announce(`No ${direction > 0 ? "later" : "earlier"} ${JUMPS[kind].label} in this run.`);
  }

  /**
   * Go to the step that writes a token of the text.
   * @param {number} index
   * @param {Phase} [phase]
   */
  seekToken(index, phase) {
    const at = this.record.steps.findIndex((step) =>
      index < step.start - this.record.head.header.prompt_length + step.emitted.length);
    if (at >= 0) this.seek(at, phase);
  }

  togglePlay() {
    const { state, record } = this;
    if (record.last < 0) return;
    if (state.playing) return this.change({ playing: false });
    const ended = state.step >= record.last && state.phase === "commit" && !record.live;
    /** @type {Change} */
    const again = { step: 0, phase: this.clock.byPhases ? "propose" : "commit" };
    return this.change({ playing: true, follow: false, ...(ended ? again : {}) });
  }

  follow() {
    this.change({ follow: true, playing: false, step: this.record.last, phase: "commit" });
  }

  /**
   * `own` means the token that the target chose itself at the node.
   * @param {number} step -1 where nothing is hovered any more
   * @param {number} [node]
   * @param {Event} [event]
   * @param {boolean} [own]
   */
  hover(step, node = 0, event = undefined, own = false) {
    const next = step < 0 ? null : spot(step, node, own);
    if (next) this.tooltip.rows(this.detail.about(next, false), event);
    else this.tooltip.hide();
    if (!sameSpot(next, this.state.hover)) this.change({ hover: next });
  }

  /**
   * @param {number} step
   * @param {number} node
   * @param {boolean} [own]
   */
  pin(step, node, own) {
    const { state } = this;
    this.change({ pin: spot(step, node, own), playing: false, follow: false,
      ...(step === state.step ? {} : { step, phase: "commit" }) });
  }

  /**
   * @param {number} step
   * @param {number} node
   * @param {boolean} [own]
   */
  togglePin(step, node, own) {
    if (sameSpot(this.state.pin, spot(step, node, own))) this.release();
    else this.pin(step, node, own);
  }

  release() {
    this.tooltip.hide();
    this.change({ pin: null, hover: null, facts: false });
  }

  escape() {
    leaveFullScreen(this);
    this.release();
    this.change({ focus: [], zoom: [] });
  }

  place() {
    const { step, phase, view, pin } = this.state;
    return { step, phase, view, node: pin && pin.step === step ? this.record.number(pin) : null };
  }

  /**
   * Go where the host or an address asks. Nothing in it is trusted; the player waits for what has not arrived yet. Null
   * means no view or no node; fields that are left out keep their values, except focus and zoom.
   * @param {Wanted} [place]
   */
  goto(place = {}) {
    this.wanted = this.record.last < 0 ? place : null;
    if (!this.wanted) this.moved("host", () => this.move(place));
  }

  /** @param {Wanted} place */
  move({ step, phase, view, node, focus, zoom }) {
    this.cards.prepare();
    const exists = typeof step === "number" && Number.isInteger(step) && step >= 0 && step <= this.record.last;
    if (exists) this.seek(step, PHASES.find((each) => each === phase));
    if (typeof view === "string" && this.cards.buttons.has(view)) this.cards.toggle(view, true);
    if (view === null) this.change({ open: new Set(), view });
    const pin = this.record.spot(this.state.step, node);
    if (pin || node === null) this.change({ pin });
    this.change({ focus: Array.isArray(focus) ? focus : [], focused: this.state.step, zoom: Array.isArray(zoom) ? zoom : [] });
  }

  /** @param {string} words */
  announce(words) {
    this.status.announce(words);
  }

  copyLink() {
    if (this.on.link) copyLink(this);
  }

  // The page loads the charts' library after its text, and says in `noCharts` where that failed.
  waitForPlotly() {
    if (globalThis.Plotly || this.waits) return;
    if (library.failed) {
      this.status.drawNotice();
      return;
    }
    this.waits = setTimeout(() => {
      this.waits = undefined;
      if (!this.destroyed) this.cards.resized();
    }, 50);
  }

  destroy() {
    this.destroyed = true;
    this.clock.stop();
    if (this.request !== undefined) cancelAnimationFrame(this.request);
    clearTimeout(this.waits);
    this.unsubscribe();
    this.stage.destroy();
    this.cards.destroy();
    this.sized.disconnect();
    this.themed.disconnect();
    this.element.replaceChildren();
  }
}
