// The page around the player: it hands lines to it, updates the address, opens recordings and files, and saves exports.
import { el } from "../player/dom/elements.js";
import { Player } from "../player/player.js";
import { addressOf, asked, note, placeIn, write } from "./address.js";
import { answerOf, runSource } from "./answers.js";
import { Bar } from "./bar.js";
import { Beside } from "./beside.js";
import { busy, stoppable } from "./busy.js";
import { base64, catchDrops, fileMenu, save } from "./files.js";
import { landed, loadCharts } from "./first_run.js";
import { forkIn, forkQuery } from "./fork.js";
import { Fold } from "./fold.js";
import { gallery } from "./gallery.js";
import { Notice, sayAtRun } from "./notice.js";
import { Opening, opens } from "./opening.js";
import { shown } from "./shown.js";
import { growing, pulse, split, waiting } from "./streams.js";
import { turnTo } from "./tabs.js";
import { applyTheme } from "./theme.js";

/** @import { Place } from "../player/types.d.ts" */
/** @import { PageFacts, ViewerIo } from "./types.d.ts" */

const NOTE_MS = 250;
const OTHERS = ["race", "debug"]; // screens beside this one
const STARTS = ["run-go", "run-beside", "run-again"]; // the buttons that start a run

export class Viewer {
  /**
   * @param {HTMLElement} element what it is drawn into
   * @param {ViewerIo} io
   */
  constructor(element, io) {
    const { props, server, watch } = io;
    this.io = io;
    this.props = props;
    this.server = server;
    /** @type {PageFacts} */
    this.facts = {};
    this.gone = new AbortController();
    this.lost = ""; // why no more lines of the live run come
    this.ended = false; // whether the live run has
    this.begun = false; // whether it has something to show: until then, what is shown stays
    /** @type {string | undefined} the run that Gradio's value holds */
    this.live = undefined;
    this.own = ""; // its lines
    /** @type {number | undefined} the step that a run was opened at, until the visitor goes elsewhere */
    this.opened = undefined;
    /** @type {number | undefined} a timer */
    this.moving = undefined;
    /** @type {Beside | null} */
    this.beside = null;
    this.file = el("input", { type: "file", accept: ".jsonl,.gz", hidden: true, "aria-label": "Trace file" });
    this.file.addEventListener("change", () => this.open(this.file.files?.[0]));
    this.back = el("button", { type: "button", class: "app-button app-back", hidden: true,
      onclick: () => this.showLive() }, "Back to your run");
    this.branch = ""; // what the address says of the branch that is shown beside the run, or that it asks for
    this.asks = el("p", { class: "app-asks-fork", hidden: true }, "This address names a branch of the run. ",
      el("button", { type: "button", class: "app-button", onclick: () => this.fork(this.branch) }, "Decode it"));
    this.notice = new Notice();
    this.stage = el("div", { class: "app-stage" });
    const lead = el("div", { class: "app-lead" });
    this.stage.append(lead);
    this.gallery = gallery(props.gallery ?? [], (run) => this.recording(run));
    const settings = el("button", { type: "button", class: "app-button app-settings" }, "Settings");
    this.bar = new Bar(this.back, settings, ...(props.live ? this.starters() : []),
      el("button", { type: "button", class: "app-button app-recorded", onclick: () => this.gallery.showModal() },
        "Recorded runs"),
      fileMenu(() => this.file.click(), (form) => this.download(form), this.gone.signal), this.file);
    this.root = el("div", { class: "app-root" }, this.bar.node, this.asks, this.stage, this.notice.place);
    element.replaceChildren(this.root, this.gallery);
    this.fold = new Fold(this.root, settings);
    /** @type {Opening | null} what covers it at the page's own address; made when it first does */
    this.opening = null;
    if (opens()) this.cover();
    catchDrops((files) => {
      if (asked().get("screen") === "debug" && shown.debug) return shown.debug.bring(files);
      turnTo("run");
      return this.open(files[0]);
    }, this.gone.signal);
    addEventListener("popstate", () => this.returned(), { signal: this.gone.signal });
    this.player = new Player(lead, {
      source: runSource(this.server, () => this.facts.run),
      on: { link: (place) => addressOf(this.address, place ?? {}), lacks: () => this.lacks(),
        change: (place) => this.moved(place),
        fork: props.live ? (fork) => this.fork(forkQuery(fork)) : undefined,
        compare: props.live ? () => io.race(this.facts.address ?? "") : undefined },
    });
    this.take = this.taking();
    this.listen = this.listening();
    this.runs(false);
    this.pulse = pulse(() => server.run_lives(this.live), (sentence) => this.lose(sentence));
    if (props.value) this.hear(props.value);
    else this.land();
    watch("value", () => this.hear(this.props.value));
  }

  // What starts a run from the one on the screen.
  starters() {
    return [
      el("button", { type: "button", class: "app-button", id: "run-again", title: "Run these settings now",
        onclick: () => this.again() }, "Run live"),
      el("button", { type: "button", class: "app-button app-compare", title: "Change one setting and compare",
        onclick: () => this.compare() }, "Compare"),
    ];
  }

  again() {
    if (!this.facts.address) return;
    this.io.fill(this.facts.address); // it may have been changed since
    this.io.again(this.facts.address);
  }

  /**
   * Decode on from a place of the run, beside it.
   * @param {string} query that names the place
   */
  fork(query) {
    if (this.facts.run) this.io.branch(`run=${this.facts.run}&${query}`);
  }

  /** @param {boolean} going whether a live run goes on */
  runs(going) {
    busy(STARTS, going);
    stoppable("run", going);
  }

  // The query that names what is shown.
  get address() {
    const { address = "" } = this.facts;
    const beside = this.second && !this.branch ? `beside=${this.second}` : this.branch;
    return address && beside ? `${address}&${beside}` : address;
  }

  // The id of the run beside the one that is shown.
  get second() {
    return this.beside?.facts.run ?? "";
  }

  // What is too long for the address is found by it only as long as the server stores the run.
  lacks() {
    const { left_out: text } = this.facts;
    const words = `The ${text} is too long for a link, so this one works only while the server stores the run: ` +
      "share the trace file instead.";
    return text ? { words, save: () => this.download("trace") } : null;
  }

  compare() {
    this.fold.choose(false);
    sayAtRun("Change one setting, then press Run beside: both runs are shown in step.");
  }

  /**
   * A live run goes on while another is looked at: its lines wait for the visitor to come back. Until it has begun, what
   * is shown stays, and only a sentence says what it waits for.
   * @param {string | null | undefined} value
   */
  hear(value) {
    const text = String(value ?? "");
    const [{ run, live, refused, branch }] = split(text.split("\n", 1)[0] + "\n");
    if (refused) return this.notice.answer(refused);
    if (!run) return this.take(text); // a sentence about the address
    const another = run !== this.live;
    if (another || this.lost) this.fresh();
    if (another) this.begun = false;
    this.live = run;
    this.own = text;
    this.listen(text);
    const begins = !this.begun && /^\{"kind":"play"/m.test(text);
    if (begins) this.begin(live === "beside", branch);
    if (!this.begun) this.notice.answer(waiting(text));
    else if (this.beside?.facts.run === run) this.beside.take(text);
    else if ((begins && !this.beside) || run === this.facts.run) this.take(text);
    this.pulse(!this.ended);
    this.runs(!this.ended);
    return undefined;
  }

  /**
   * The lines of a run are there: it takes the place of what is shown, or one beside it.
   * @param {boolean} beside
   * @param {string} [branch] what names it as a branch of the run that is shown
   */
  begin(beside, branch = "") {
    this.begun = true;
    this.notice.say("");
    this.apart();
    if (!beside) return this.leave();
    this.lay(this.live, () => this.showLive());
    this.name(branch);
    this.put(this.player.place());
    this.offerOwn();
    return undefined;
  }

  /**
   * @param {string | undefined} run
   * @param {() => void} alone
   */
  lay(run, alone) {
    this.beside = new Beside(this.stage, this.player, run, {
      source: (of) => runSource(this.server, of), close: () => this.close(), alone, of: this.facts.run,
    });
  }

  /**
   * Show what an address names beside the run: another that is recorded or stored.
   * @param {string} run none: nothing is beside it
   */
  async follow(run) {
    if (run === this.second) return;
    this.apart();
    if (!run) return;
    const first = this.facts.run;
    const answer = await this.server.open_recording(run).catch(() => null);
    if (this.facts.run !== first || this.second) return;
    const { lines } = answer ?? {};
    if (!lines) {
      this.say("The second run of this address is not here any more: start it again with Run beside.");
      return;
    }
    this.lay(run, () => this.show(lines));
    this.beside?.take(lines);
    this.offerOwn();
  }

  close() {
    this.apart();
    this.put(this.player.place());
  }

  // The second player goes.
  apart() {
    this.beside?.destroy();
    this.beside = null;
    this.name("");
    this.offerOwn();
  }

  /**
   * The address names a branch of the run from now on, or none.
   * @param {string} branch
   */
  name(branch) {
    this.branch = branch;
    this.asks.hidden = !branch || Boolean(this.beside);
  }

  offerOwn() {
    this.back.hidden = !this.hasLive || this.live === this.facts.run || Boolean(this.beside);
  }

  // Whether a run that was started here has something to show.
  get hasLive() {
    return Boolean(this.live && this.begun);
  }

  showLive() {
    if (this.live === this.facts.run) this.reveal();
    else this.show(this.own);
  }

  cover() {
    this.opening ??= new Opening(this);
    this.opening.enter();
  }

  // What the opening covers is seen again, as another entry of the browser's history.
  reveal() {
    if (this.opening?.leave()) this.put(this.player.place(), true);
  }

  // To the opening, from wherever the visitor is. A live run goes on: it is found again by going back.
  home() {
    this.leave(this.live === this.facts.run);
    const address = addressOf("", {});
    write(address, address !== location.href);
    this.returned();
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
    this.runs(false);
    if (!this.begun) this.notice.answer(sentence);
    else if (this.beside) this.beside.player.lose(sentence);
    else if (this.facts.run === this.live) this.player.lose(sentence);
  }

  destroy() {
    this.gone.abort();
    this.opening?.destroy();
    clearTimeout(this.moving);
    this.beside?.destroy();
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
      this.name("");
      this.facts = {};
      this.opened = undefined;
      this.player.reset();
      this.say("");
    }
    Object.assign(this.facts, facts);
    if (facts.notice) this.say(facts.notice);
    this.player.feed(rest);
    if (facts.step !== undefined) this.player.change({ example: facts.step });
    this.bar.show(this.facts, this.player.record);
    if (this.lost && this.facts.run === this.live) this.player.lose(this.lost);
    loadCharts();
    if (anew) this.place();
    if (anew && navigator.userActivation?.hasBeenActive) {
      requestAnimationFrame(() => this.inSight()); // laid out by then
    }
    this.root.dataset.run = this.facts.run ?? "";
    this.offerOwn();
  }

  // Where a run opens that was sent nowhere else: a live one at its end, a recording at a step to learn from.
  get opensAt() {
    const { record } = this.player;
    if (!this.facts.live) return this.facts.step;
    return record.end ? record.last : undefined;
  }

  // An address is followed once.
  place() {
    const query = asked();
    const ours = !shown.placed && (query.get("run") ?? this.props.landing) === this.facts.run;
    /** @type {Partial<Place>} */
    const place = ours ? placeIn(query) : {};
    if (ours) shown.placed = true;
    if (ours && this.props.live) this.name(forkIn(query));
    const step = place.step ?? this.opensAt;
    this.opened = step;
    if (step !== undefined) this.player.goto({ ...place, step });
    if (ours && query.has("beside")) this.follow(query.get("beside") ?? "");
  }

  /**
   * The address follows the visitor, but only once there was a move to follow.
   * @param {Place} place
   */
  moved(place) {
    if (this.player.state.playing) this.fold.yieldRoom();
    this.beside?.follow();
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
    else this.put(this.player.place());
  }

  // The run that is left is found again by going back, at the place where it was left.
  leave(anyway = false) {
    if (this.moving || anyway) this.put(this.player.place());
  }

  /** Whether the address names another run than the one that is shown, or another beside it. */
  get elsewhere() {
    const query = asked(), second = this.branch ? "" : this.second;
    return (query.get("run") ?? this.props.landing) !== this.facts.run || (query.get("beside") ?? "") !== second;
  }

  /**
   * @param {Partial<Place>} place
   * @param {boolean} [another] whether it is another entry of the browser's history
   */
  put(place, another = this.elsewhere) {
    clearTimeout(this.moving);
    this.moving = undefined;
    if (this.address && this.player.record.play) note(this.root, this.address, place, another);
  }

  // Back or forward: what the address names is shown again.
  async returned() {
    const query = asked();
    const screen = query.get("screen") ?? "run";
    turnTo(OTHERS.includes(screen) ? screen : "run");
    clearTimeout(this.moving);
    this.moving = undefined;
    this.gallery.close();
    if (screen === "debug") shown.debug?.returned();
    if (OTHERS.includes(screen)) return;
    if (opens()) {
      this.cover();
      return;
    }
    this.opening?.leave();
    const run = query.get("run") ?? this.props.landing ?? "";
    if (run !== this.facts.run) {
      const lines = run === this.live ? this.own : await this.linesOf(run);
      if (!lines || (asked().get("run") ?? this.props.landing) !== run) return;
      this.apart();
      this.take(lines);
      this.io.fill(query.has("run") ? location.search : (this.facts.address ?? ""));
    }
    await this.follow(query.get("beside") ?? (query.has("branch") ? this.second : ""));
    this.player.release();
    this.player.goto({ step: this.opensAt, ...defined(placeIn(query)) });
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
    this.notice.say(sentence);
  }

  /**
   * An answer of the server, or null after its sentence has been shown.
   * @template {{ fault?: string }} T
   * @param {() => Promise<T | null>} call
   */
  ask(call) {
    return answerOf(call, (sentence) => this.say(sentence));
  }

  /** @param {string} run */
  async linesOf(run) {
    const answer = await this.ask(() => this.server.open_recording(run));
    return answer?.lines ?? "";
  }

  /** @param {string} run */
  async recording(run) {
    const lines = await this.linesOf(run);
    if (lines) this.show(lines);
  }

  /** @param {string} lines */
  show(lines) {
    this.leave();
    const covered = this.opening?.leave();
    this.apart();
    this.take(lines);
    const { address } = this.facts;
    this.put({ step: this.opensAt }, covered || undefined);
    this.player.root.focus({ preventScroll: true }); // it has the keys, and not the button that opened it
    if (address) this.io.fill(address);
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
 * @template {object} T
 * @param {T} fields
 * @returns {Partial<T>}
 */
const defined = (fields) =>
  /** @type {Partial<T>} */ (Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));

/**
 * @param {HTMLElement} element
 * @param {ViewerIo} io
 */
export const showViewer = (element, io) => {
  shown.viewer?.destroy();
  applyTheme();
  shown.viewer = new Viewer(element, io);
};
