// The page around the player: it hands lines to it, updates the address, opens recordings and files, and saves exports.
import { el } from "../../assets/player/dom/elements.js";
import { Player } from "../../assets/player/player.js";
import { addressOf, asked, note, placeIn } from "./address.js";
import { busy } from "./busy.js";
import { base64, catchDrops, downloads, save } from "./files.js";
import { landed, loadCharts } from "./first_run.js";
import { gallery } from "./gallery.js";
import { Opening, opens } from "./opening.js";
import { shown } from "./shown.js";
import { growing, pulse, split } from "./streams.js";
import { turnTo } from "./tabs.js";
import { applyTheme } from "./theme.js";

/** @import { Place } from "../../assets/player/types.d.ts" */
/** @import { PageFacts, ViewerIo } from "./types.d.ts" */

const NOTE_MS = 250;

export class Viewer {
  /**
   * @param {HTMLElement} element what it is drawn into
   * @param {ViewerIo} io
   */
  constructor(element, { props, server, watch, race }) {
    this.props = props;
    this.server = server;
    /** @type {PageFacts} */
    this.facts = {};
    this.gone = new AbortController();
    this.lost = ""; // why no more lines of the live run come
    this.ended = false; // whether the live run has
    /** @type {string | undefined} the run that Gradio's value holds */
    this.live = undefined;
    /** @type {number | undefined} the step that a run was opened at, until the visitor goes elsewhere */
    this.opened = undefined;
    /** @type {number | undefined} a timer */
    this.moving = undefined;
    this.title = el("p", { class: "app-title" });
    this.shows = el("p", { class: "app-shows" });
    this.machine = el("p", { class: "app-shows app-machine" });
    this.file = el("input", { type: "file", accept: ".jsonl,.gz", hidden: true, "aria-label": "Trace file" });
    this.file.addEventListener("change", () => this.open(this.file.files?.[0]));
    this.back = el("button", { type: "button", class: "app-button app-back", hidden: true,
      onclick: () => this.show(this.props.value ?? "") }, "Back to your run");
    this.notice = el("p", { class: "app-notice", role: "alert", hidden: true });
    this.stage = el("div", { class: "app-stage" });
    this.gallery = gallery(props.gallery ?? [], (run) => this.recording(run));
    this.menu = downloads((form) => this.download(form));
    this.root = el("div", { class: "app-root" }, this.bar(), this.notice, this.stage, this.gallery);
    element.replaceChildren(this.root);
    /** @type {Opening | null} what stands in front of it at first */
    this.opening = opens() ? new Opening(this) : null;
    if (this.opening) element.prepend(this.opening.node);
    catchDrops((file) => {
      turnTo("run");
      this.open(file);
    }, this.gone.signal);
    this.player = new Player(this.stage, {
      source: {
        detail: (k) => this.lines("run_detail", k), step: (k) => this.lines("run_step", k),
        rows: (k) => this.lines("run_rows", k),
      },
      on: { link: (place) => addressOf(this.facts.address ?? "", place ?? {}), change: (place) => this.moved(place),
        compare: props.races ? () => race(this.facts.address ?? "") : undefined },
    });
    this.take = this.taking();
    this.listen = this.listening();
    this.pulse = pulse(() => server.run_lives(this.live), (sentence) => this.lose(sentence));
    if (props.value) this.hear(props.value);
    else this.land();
    watch("value", () => this.hear(this.props.value));
  }

  /**
   * A live run goes on while another is looked at: its lines wait for the visitor to come back.
   * @param {string | null | undefined} value
   */
  hear(value) {
    const [{ run }] = split(String(value ?? "").split("\n", 1)[0] + "\n");
    const begins = run !== this.live;
    if (begins || this.lost) this.fresh();
    this.live = run;
    this.listen(value);
    if (begins || !run || run === this.facts.run) this.take(value);
    const goes = Boolean(run) && !this.ended;
    this.pulse(goes);
    busy("run-go", goes);
  }

  // What is heard from now on is heard from its beginning.
  fresh() {
    this.lost = "";
    this.take = this.taking();
    this.listen = this.listening();
  }

  taking() {
    return growing((tail, anew) => this.feed(tail, anew));
  }

  listening() {
    return growing((tail, anew) => {
      this.ended = (!anew && this.ended) || /^\{"kind":"(end|fault)"/m.test(tail);
    });
  }

  /**
   * The stream of the live run broke.
   * @param {string} sentence
   */
  lose(sentence) {
    this.lost = sentence;
    busy("run-go", false);
    if (this.facts.run === this.live) this.player.lose(sentence);
  }

  bar() {
    const count = (this.props.gallery ?? []).length;
    return el("div", { class: "app-bar" }, el("div", { class: "app-what" }, this.title, this.shows, this.machine),
      el("div", { class: "app-tools" }, this.back,
        el("button", { type: "button", class: "app-button app-recorded", onclick: () => this.gallery.showModal() },
          `Recorded runs (${count})`),
        el("button", { type: "button", class: "app-button", onclick: () => this.file.click() }, "Open a trace"),
        this.file, this.menu));
  }

  destroy() {
    this.gone.abort();
    this.opening?.destroy();
    this.player.destroy();
  }

  // What there is to see before anything was asked for.
  async land(anyway = false) {
    await this.opening?.painted; // it comes first
    const run = asked().get("run");
    if (run && run !== this.props.landing && !anyway) return;
    const lines = await landed;
    if (lines && !this.facts.run) this.take(lines);
  }

  /**
   * New lines of the run that is shown, or the lines of another.
   * @param {string} text
   * @param {boolean} anew
   */
  feed(text, anew) {
    const [facts, rest] = split(text);
    if (!rest && facts.notice) { // of an address that could not be followed
      const there = this.facts.run ? Promise.resolve() : this.land(true);
      there.then(() => this.say(facts.notice ?? ""));
      return;
    }
    if (anew) {
      if (facts.run !== this.props.landing) this.opening?.leave();
      this.facts = {};
      this.opened = undefined;
      this.player.reset();
      this.say("");
    }
    Object.assign(this.facts, facts);
    if (facts.notice) this.say(facts.notice);
    this.title.textContent = this.facts.title ?? "Your run";
    this.shows.textContent = this.facts.shows ?? "";
    this.machine.textContent = this.facts.machine ?? "";
    this.player.feed(rest);
    if (this.lost && this.facts.run === this.live) this.player.lose(this.lost);
    loadCharts();
    if (anew) this.place();
    if (anew && navigator.userActivation?.hasBeenActive) {
      requestAnimationFrame(() => this.inSight()); // laid out by then
    }
    this.root.dataset.run = this.facts.run ?? "";
    this.back.hidden = !this.live || this.live === this.facts.run;
  }

  // An address is followed once; otherwise a recording opens at its instructive step.
  place() {
    const query = asked();
    const ours = !shown.placed && (query.get("run") ?? this.props.landing) === this.facts.run;
    /** @type {Partial<Place>} */
    const place = ours ? placeIn(query) : {};
    if (ours) shown.placed = true;
    const step = place.step ?? this.facts.step;
    this.opened = step;
    if (step !== undefined) this.player.goto({ ...place, step });
  }

  /**
   * The address follows the visitor, but only once there was a move to follow.
   * @param {Place} place
   */
  moved(place) {
    if (place.step === this.opened && place.node === null) return;
    this.opened = undefined;
    if (!this.facts.address || !navigator.userActivation?.hasBeenActive || this.player.state.playing) return;
    clearTimeout(this.moving);
    this.moving = setTimeout(() => this.note(), NOTE_MS);
  }

  // A browser may fetch the page's icon anew for every address: not while a run goes on that is followed.
  note() {
    const { record, state } = this.player;
    if (record.live && state.follow && this.root.offsetParent) this.moving = setTimeout(() => this.note(), NOTE_MS);
    else if (this.facts.address && record.play) note(this.root, this.facts.address, this.player.place());
  }

  // On a phone the form stands below the player, whose foot may still be seen: a new run must not begin out of sight.
  inSight() {
    const { state, text, transport } = this.player;
    const { top, bottom } = (state.narrow ? text.node : this.root).getBoundingClientRect();
    const head = Number(transport.bar.parentElement?.offsetHeight);
    if (bottom < 80 + head || top > innerHeight - 80) this.root.scrollIntoView({ block: "start" });
  }

  /** @param {string} sentence */
  say(sentence) {
    this.notice.textContent = sentence;
    this.notice.hidden = !sentence;
  }

  /**
   * An answer of the server, or null after its sentence has been shown; what is on the screen stays.
   * @template {{ fault?: string }} T
   * @param {() => Promise<T | null>} call
   */
  async ask(call) {
    try {
      const answer = await call();
      if (answer && !answer.fault) return answer;
      this.say(answer?.fault ?? "The server gave no answer: try again.");
    } catch {
      this.say("The server could not be reached: try again.");
    }
    return null;
  }

  /**
   * @param {"run_detail" | "run_step" | "run_rows"} name
   * @param {number} k
   */
  async lines(name, k) {
    const answer = await this.server[name]([this.facts.run, k]);
    if (!answer?.lines) throw new Error(answer?.fault);
    return answer.lines;
  }

  /** @param {string} run */
  async recording(run) {
    const answer = await this.ask(() => this.server.open_recording(run));
    if (answer) this.show(answer.lines ?? "");
  }

  /** @param {string} lines */
  show(lines) {
    this.take(lines);
    const { address, step } = this.facts;
    if (address) note(this.root, address, { step });
    this.player.root.focus({ preventScroll: true }); // it has the keys, and not the button that opened it
  }

  /** @param {File | null | undefined} file */
  async open(file) {
    this.file.value = "";
    if (!file) return;
    if (file.size > this.props.largest) {
      this.say(`The file is larger than ${Math.round(this.props.largest / 2 ** 20)} MB: open a smaller trace.`);
      return;
    }
    this.say("");
    const content = await base64(file);
    const answer = await this.ask(() => this.server.open_trace(content));
    if (answer) this.show(answer.lines ?? "");
  }

  /** @param {string} form */
  async download(form) {
    const answer = await this.ask(() => this.server.run_export([this.facts.run ?? "", form]));
    if (answer) save(answer);
  }
}

/**
 * @param {HTMLElement} element
 * @param {ViewerIo} io
 */
export const showViewer = (element, io) => {
  shown.viewer?.destroy();
  applyTheme();
  shown.viewer = new Viewer(element, io);
};
