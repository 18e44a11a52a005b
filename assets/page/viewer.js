// The page around the player: the run that is shown, and its actions.
import { el } from "../player/dom/elements.js";
import { Player } from "../player/player.js";
import { addressOf, asked } from "./address.js";
import { runSource } from "./answers.js";
import { Bar } from "./bar.js";
import { catchDrops } from "./files.js";
import { landed, loadCharts } from "./first_run.js";
import { forkQuery } from "./fork.js";
import { Fold } from "./fold.js";
import { gallery } from "./gallery.js";
import { lessonFirst } from "./lesson_first.js";
import { LiveRun } from "./live_run.js";
import { Notice, sayAtRun } from "./notice.js";
import { Opening, opens } from "./opening.js";
import { RunFiles } from "./run_files.js";
import { SecondRun } from "./second_run.js";
import { shown } from "./shown.js";
import { factsIn, linesIn } from "./streams.js";
import { turnTo } from "./tabs.js";
import { applyTheme } from "./theme.js";
import { ViewerAddress } from "./viewer_address.js";

/** @import { RunFacts, RunLine, ViewerIo } from "./types.d.ts" */

export class Viewer {
  /**
   * @param {HTMLElement} element what it is drawn into
   * @param {ViewerIo} io
   */
  constructor(element, io) {
    const { props, server } = io;
    this.io = io;
    this.props = props;
    this.server = server;
    /** @type {RunFacts} */
    this.facts = {};
    this.gone = new AbortController();
    this.notice = new Notice(() => this.player.root.focus({ preventScroll: true }));
    this.address = new ViewerAddress(this);
    this.second = new SecondRun(this);
    this.files = new RunFiles(this);
    this.stage = el("div", { class: "app-stage" });
    const lead = el("div", { class: "app-lead" });
    this.stage.append(lead);
    this.gallery = gallery(props.gallery ?? [], (run) => this.files.recording(run));
    const settings = el("button", { type: "button", class: "app-button app-settings" }, "Settings");
    this.bar = new Bar(this.second.back, settings, ...(props.live ? this.starters() : []),
      el("button", { type: "button", class: "app-button app-recorded", onclick: () => this.gallery.showModal() },
        "Recorded runs"),
      this.files.menu, this.files.chosen);
    this.root = el("div", { class: "app-root" }, this.bar.node, this.second.asks, this.stage, this.notice.place);
    element.replaceChildren(this.root, this.gallery);
    this.fold = new Fold(this.root, settings);
    /** @type {Opening | null} what covers it at the page's own address; made when it first does */
    this.opening = null;
    this.live = new LiveRun(this, io);
    if (opens()) this.cover();
    catchDrops((files) => {
      if (asked().get("screen") === "debug" && shown.debug) return shown.debug.bring(files);
      turnTo("run");
      return this.files.open(files);
    }, this.gone.signal);
    addEventListener("popstate", () => this.address.returned(), { signal: this.gone.signal });
    this.player = new Player(lead, {
      source: runSource(this.server, () => this.facts.run),
      on: { link: (place) => addressOf(this.address.query, place ?? {}), lacks: () => this.lacks(),
        change: (place) => {
          if (this.player.state.playing) this.fold.yieldRoom();
          this.second.beside?.follow();
          this.address.moved(place);
        },
        fork: props.live ? (fork) => this.fork(forkQuery(fork)) : undefined,
        compare: props.live ? () => io.race(this.facts.address ?? "") : undefined },
    });
    if (props.value) this.live.stream.read();
    else this.land();
  }

  // What starts a run from the one on the screen.
  starters() {
    return [
      el("button", { type: "button", class: "app-button", id: "run-again", title: "Run these settings now",
        onclick: () => this.again() }, "Run live"),
      el("button", { type: "button", class: "app-button app-change", title: "Run it beside this one with a setting changed",
        onclick: () => this.change() }, "Change", el("span", { class: "app-rest" }, "\u00a0a setting")),
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

  change() {
    this.fold.choose(false);
    sayAtRun("Change one setting, then press Run beside: both runs are shown in step.");
  }

  // Texts too long for the address can be found only while the server stores the run.
  lacks() {
    const { left_out: text } = this.facts;
    const words = `The ${text} is too long for a link, so this one works only while the server stores the run: ` +
      "share the trace file instead.";
    return text ? { words, save: () => this.files.download("trace") } : null;
  }

  // The run that the page's address names, or leads to by itself.
  get asked() {
    return asked().get("run") ?? this.props.landing;
  }

  // Where a run opens that was sent nowhere else: a live one at its end, a recording at a step to learn from.
  get opensAt() {
    const { record } = this.player;
    if (!this.facts.live) return this.facts.step;
    return record.end ? record.last : undefined;
  }

  // The run that is shown before the visitor asks for one.
  async land(anyway = false) {
    await Promise.all([this.opening?.painted, lessonFirst]); // they come first
    const run = asked().get("run");
    if (run && run !== this.props.landing && !anyway) return;
    const lines = linesIn(await landed ?? "");
    if (lines.length && !this.facts.run) this.feed(lines, true);
  }

  /**
   * New lines of the run that is shown, or the lines of another.
   * @param {RunLine[]} lines
   * @param {boolean} anew
   */
  feed(lines, anew) {
    /** @type {RunFacts} */
    const facts = factsIn(lines);
    const { notice } = facts;
    if (notice && lines.every(({ kind }) => kind === "host")) { // of an address that could not be followed
      const there = this.facts.run ? Promise.resolve() : this.land(true);
      there.then(() => this.notice.say(notice));
      return;
    }
    if (anew) {
      this.second.name("");
      this.facts = {};
      this.address.opened = undefined;
      this.player.reset();
      this.notice.say("");
    }
    Object.assign(this.facts, facts);
    if (notice) this.notice.say(notice);
    this.player.feed(lines);
    if (facts.step !== undefined) this.player.change({ example: facts.step });
    this.bar.show(this.facts, this.player.record);
    if (this.live.lost && this.facts.run === this.live.run) this.player.lose(this.live.lost);
    loadCharts();
    if (anew) this.address.open();
    if (anew && navigator.userActivation?.hasBeenActive) {
      requestAnimationFrame(() => this.inSight()); // laid out by then
    }
    this.root.dataset.run = this.facts.run ?? "";
    this.second.offerOwn();
  }

  /** @param {RunLine[]} lines */
  show(lines) {
    this.address.leave();
    const covered = this.opening?.leave();
    this.second.leave();
    this.feed(lines, true);
    const { address } = this.facts;
    this.address.put({ step: this.opensAt }, covered || undefined);
    this.player.root.focus({ preventScroll: true }); // it has the keys, and not the button that opened it
    if (address) this.io.fill(address);
  }

  showLive() {
    if (this.live.run === this.facts.run) this.reveal();
    else this.show(this.live.lines);
  }

  cover() {
    this.opening ??= new Opening(this);
    this.opening.enter();
  }

  // What the opening covers is seen again, as another entry of the browser's history.
  reveal() {
    if (this.opening?.leave()) this.address.put(this.player.place(), true);
  }

  // On a phone the form is below the player, whose foot may still be seen: a new run must not begin out of sight.
  inSight() {
    const { state, text, transport } = this.player;
    const { top, bottom } = (state.narrow ? text.node : this.root).getBoundingClientRect();
    const head = Number(transport.bar.parentElement?.offsetHeight);
    if (bottom < 80 + head || top > innerHeight - 80) this.root.scrollIntoView({ block: "start" });
  }

  destroy() {
    this.gone.abort();
    this.opening?.destroy();
    this.address.stop();
    this.second.beside?.destroy();
    this.player.destroy();
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
